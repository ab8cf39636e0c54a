"""Convolutions and poolings read and write channels last, depthwise and grouped ones too.

    image (n, c, h, w)      filter (oc, ic, kh, kw)      result (n, oc, oh, ow)
                                          =>
    image (n, h, w, c)      filter (kh, kw, ic, oc)      result (n, oh, ow, oc)      loops (n, oh, ow, oc, kh, kw, ic)

with a transpose around each operand, which propagate-transposes cancels against its neighbours or lands in the weights.
Groups are a loop of their own (`depth`) that comes before the channels of a group. Any number of spatial dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import linalg
from xdsl.ir.affine import AffineMap

from fuseline.analysis.convolution_dims import ConvolutionDims, convolution_dims
from fuseline.analysis.indexing_maps import dims_of
from fuseline.analysis.structured import StructuredOp, is_generic
from fuseline.ir.build import Emitter
from fuseline.ir.fast.direct import body_of, operand_of, ops_of
from fuseline.ir.fast.identity import by_first_identity
from fuseline.passes.layout.rewriting.absorb import write_results
from fuseline.passes.layout.rewriting.generics import order_loops, permuted_results, plain_loops, set_input
from fuseline.passes.layout.rewriting.permutation import Permutation, is_identity, transpose
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass


@dataclass(frozen=True)
class ConvertConvolutionsToChannelsLastPass(ScopedPass):
    """Makes every convolution and pooling channels-last."""

    name = "convert-convolutions-to-channels-last"

    def rewrite(self, scope: Scope) -> None:
        """Convert each generic by itself."""
        for inner in ops_of(scope.block):
            if is_generic(inner):
                _convert(scope, inner)
        scope.sweep()


def _convert(scope: Scope, op: linalg.ops.GenericOp) -> None:
    view = StructuredOp(op)
    dims = convolution_dims(view)
    if dims is None or len(op.results) != 1:
        return
    batch, channels = _batch_and_channels(view, dims)
    order = (
        *batch,
        *dims.image_loops,
        *dims.depth,
        *channels,
        *dims.output_channel,
        *dims.window_loops,
        *dims.input_channel,
    )
    if sorted(order) != list(range(view.rank)):
        return
    _transpose_input(scope, op, dims.image, (*batch, *dims.image_loops, *dims.depth, *channels, *dims.input_channel))
    if uses_input(op, dims.filter):
        _transpose_input(
            scope, op, dims.filter, (*dims.window_loops, *dims.depth, *dims.input_channel, *dims.output_channel)
        )
    _transpose_result(scope, op, order)


def _batch_and_channels(view: StructuredOp, dims: ConvolutionDims) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The loops that come before and after the spatial ones, of those that image and result share.

    Nothing in a pooling tells its batch from its channels but their places: where none lies behind the spatial
    dimensions, the first of several is the batch and the others are channels.
    """
    if view.reduction and (dims.depth or dims.output_channel or dims.input_channel):
        return dims.batch, ()
    exprs = view.input_maps[dims.image].results
    position = {loop: axis for axis, expr in enumerate(exprs) for loop in dims_of(expr)}
    behind = tuple(loop for loop in dims.batch if position[loop] > max(dims.spatial_axes))
    if behind or not dims.batch:
        return tuple(loop for loop in dims.batch if loop not in behind), behind
    ordered = sorted(dims.batch, key=lambda loop: position[loop])
    count = 1 if len(ordered) > 1 else 0
    return tuple(ordered[:count]), tuple(ordered[count:])


def uses_input(op: linalg.ops.GenericOp, index: int) -> bool:
    """Whether the body reads input `index` (it does not read the window operand of a pooling)."""
    return body_of(op).args[index].first_use is not None


def _transpose_input(scope: Scope, op: linalg.ops.GenericOp, index: int, roles: Sequence[int]) -> None:
    """Order the dimensions of input `index` as the loops in `roles` come that traverse them; constant coordinates go
    first."""
    map_ = StructuredOp(op).maps[index]
    permutation = _order_by(map_, tuple(roles))
    if is_identity(permutation):
        return
    value = transpose(scope, Emitter.before(op), operand_of(op, index), permutation)
    set_input(op, index, value, permuted_results(map_, permutation))


@by_first_identity
def _order_by(map_: AffineMap, roles: tuple[int, ...]) -> Permutation:
    rank = {loop: i for i, loop in enumerate(roles)}
    keys = [min((rank[loop] for loop in dims_of(expr) if loop in rank), default=-1) for expr in map_.results]
    return tuple(sorted(range(len(keys)), key=lambda axis: keys[axis]))


def _transpose_result(scope: Scope, op: linalg.ops.GenericOp, order: Sequence[int]) -> None:
    if not is_identity(order):
        order_loops(op, order)
    loops = plain_loops(StructuredOp(op).output_maps[0])
    if loops is None or loops == sorted(loops):
        return
    permutation: Permutation = tuple(sorted(range(len(loops)), key=lambda axis: loops[axis]))
    write_results(scope, op, [permutation])


EXPORT = ConvertConvolutionsToChannelsLastPass
