"""What a structured op is, inferred from its maps, iterators and body, never from a name.

Answers are values; nothing here changes the IR. Every question about a `linalg.generic` that passes, rules and kernel
families ask in common is asked here, so that they agree.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, cast

from xdsl.dialects import arith, func, linalg, tensor
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, TensorType
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.indexing_maps import is_projected_permutation, used_dims
from fuseline.analysis.structured_op import StructuredOp, is_generic
from fuseline.ir.fast.direct import body_of, last_of, operand_of, operands_of, ops_of, result_of
from fuseline.ir.fast.identity import by_identities
from fuseline.ir.fast.nesting import ops_inside
from fuseline.ir.splats import one_element


class Kind(Enum):
    """What an op does, as far as fusion and code generation care."""

    ELEMENTWISE = "elementwise"
    COPY = "copy"
    TRANSPOSE = "transpose"
    BROADCAST = "broadcast"
    GATHER = "gather"
    CONTRACTION = "contraction"
    CONVOLUTION = "convolution"
    DEPTHWISE = "depthwise"
    POOLING = "pooling"
    REDUCTION = "reduction"
    FILL = "fill"
    PAD = "pad"
    RESHAPE = "reshape"
    SLICE = "slice"
    CONCAT = "concat"
    CONSTANT = "constant"
    EMPTY = "empty"
    SCALAR = "scalar"
    OTHER = "other"

    # Members are single objects: Enum's own hash is that of the name, in Python.
    __hash__ = object.__hash__


FREE = frozenset({Kind.CONSTANT, Kind.EMPTY, Kind.FILL, Kind.SCALAR})
"""Kinds that cost nothing: cloned into every dispatch that uses them, and members of none."""

DENSE = frozenset({Kind.CONTRACTION, Kind.CONVOLUTION})
"""Kinds that sum over all channels: their operands are packed, and read again for every block of results."""

PRODUCTS = DENSE | {Kind.DEPTHWISE}
"""Kinds that multiply by weights and sum."""

WINDOWS = frozenset({Kind.CONVOLUTION, Kind.DEPTHWISE, Kind.POOLING})
"""Kinds that slide a window over an image."""

CHANNEL_WINDOWS = frozenset({Kind.DEPTHWISE, Kind.POOLING})
"""Kinds that slide a window over an image channel by channel: a few taps per point, of stored tensors mostly."""

HEAVY = PRODUCTS | WINDOWS
"""Kinds that read an element many times: a dispatch tiles the loops of one, and has at most one."""

COMPUTING = HEAVY | {Kind.REDUCTION}
"""Kinds that a dispatch is named after, where it has one."""


def is_reduction(op: Operation) -> bool:
    """Whether `op` is a generic with reduction loops."""
    return is_generic(op) and bool(StructuredOp(op).reduction)


def producer_of(value: SSAValue) -> Operation | None:
    """The op that makes `value`, None for an argument."""
    return value.op if type(value) is OpResult else None


def captured(op: Operation) -> list[SSAValue]:
    """Values defined outside `op` that its regions use, in first-use order (tensor.extract sources, scalar
    constants)."""
    blocks: set[int] = set()
    inner = ops_inside(op, blocks)
    found: dict[SSAValue, None] = {}
    for user in inner:
        for value in operands_of(user):
            if id(value.op.parent if type(value) is OpResult else value.owner) not in blocks:
                found[value] = None
    return list(found)


def captured_tensors(op: Operation) -> list[SSAValue]:
    """The tensors among `captured(op)`."""
    return [value for value in captured(op) if isinstance(value.type, TensorType)]


def tensor_operands(op: Operation) -> list[SSAValue]:
    """Every tensor that `op` reads: operands, then captured ones."""
    found = dict.fromkeys(value for value in operands_of(op) if isinstance(value.type, TensorType))
    for value in captured_tensors(op) if op.regions else ():
        found[value] = None
    return list(found)


def yielded(op: linalg.ops.GenericOp) -> tuple[SSAValue, ...]:
    """The values that the body of `op` yields."""
    last = last_of(body_of(op))
    return operands_of(last) if last is not None else ()


_NOT_COMPUTED = frozenset((linalg.ops.YieldOp, arith.ConstantOp))


def body_ops(op: linalg.ops.GenericOp) -> Iterator[Operation]:
    """The scalar ops of the body, without the yield and without constants."""
    for inner in ops_of(body_of(op)):
        if type(inner) not in _NOT_COMPUTED:
            yield inner


_SUMS = (arith.AddfOp, arith.AddiOp)
_PRODUCTS = (arith.MulfOp, arith.MuliOp)
_CASTS = (arith.ExtSIOp, arith.ExtUIOp, arith.ExtFOp, arith.SIToFPOp, arith.UIToFPOp)


def _strip_casts(value: SSAValue) -> SSAValue:
    while type(value) is OpResult and type(value.op) in _CASTS:
        value = operand_of(value.op, 0)
    return value


def multiply_add_operands(op: linalg.ops.GenericOp) -> tuple[int, int] | None:
    """The positions of the two inputs in a body `out + a * b` (either order, widening casts and zero-point subtractions
    of inputs looked through); None for any other body."""
    if len(op.results) != 1:
        return None
    total = yielded(op)[0]
    if type(total) is not OpResult or type(total.op) not in _SUMS:
        return None
    block = body_of(op)
    accumulator = block.args[-1]
    terms = list(operands_of(total.op))
    if accumulator not in terms:
        return None
    term = terms[1] if terms[0] is accumulator else terms[0]
    if type(term) is not OpResult or type(term.op) not in _PRODUCTS:
        return None
    sides = [_strip_casts(side) for side in operands_of(term.op)]
    if all(
        type(side) is BlockArgument and side.owner is block and side.index < len(operands_of(op)) - 1 for side in sides
    ):
        first, second = (side.index for side in sides if type(side) is BlockArgument)
        return first, second
    return None


def _reduction_kind(view: StructuredOp) -> Kind:
    sides = multiply_add_operands(view.op)
    windowed = any(not is_projected_permutation(map_) for map_ in view.input_maps)
    if sides is not None and sides[0] != sides[1] and view.input_count == 2:
        return _product_kind((*view.maps, view.iterators))
    if windowed or _has_window_operand(view):
        return Kind.POOLING
    return Kind.REDUCTION


def _has_window_operand(view: StructuredOp) -> bool:
    args = view.body.args
    return any(args[i].first_use is None and type(producer_of(v)) is tensor.EmptyOp for i, v in enumerate(view.inputs))


@by_identities
def _product_kind(signature: tuple[Any, ...]) -> Kind:
    """The kind of a sum of products of two inputs, by the maps of the inputs and of the result, and the iterators."""
    first, second, written, iterators = cast(tuple[AffineMap, AffineMap, AffineMap, tuple[str, ...]], signature)
    reduced = [loop for loop, kind in enumerate(iterators) if kind == "reduction"]
    image, filter_ = sorted((first, second), key=is_projected_permutation)
    if is_projected_permutation(image):
        return Kind.CONTRACTION if used_dims(first) & used_dims(second) & set(reduced) else Kind.REDUCTION
    only_filter = (used_dims(filter_) & used_dims(written)) - used_dims(image)
    channels = any(type(expr) is AffineDimExpr and expr.position in reduced for expr in image.results)
    return Kind.CONVOLUTION if only_filter or channels else Kind.DEPTHWISE


def _parallel_kind(view: StructuredOp) -> Kind:
    body = view.body
    if any([type(inner) is tensor.ExtractOp for inner in ops_of(body)]):
        return Kind.GATHER
    results = yielded(view.op)
    if (
        len(results) == 1
        and type(results[0]) is BlockArgument
        and results[0].index < view.input_count
        and results[0].owner is body
    ):
        read, written = view.input_maps[results[0].index], view.output_maps[0]
        if len(read.results) < len(written.results) or not is_projected_permutation(read, allow_zero=False):
            return Kind.BROADCAST
        return Kind.COPY if read == written else Kind.TRANSPOSE
    return Kind.ELEMENTWISE


_BY_TYPE: dict[type[Operation], Kind] = {
    linalg.ops.FillOp: Kind.FILL,
    linalg.ops.TransposeOp: Kind.TRANSPOSE,
    linalg.ops.BroadcastOp: Kind.BROADCAST,
    tensor.PadOp: Kind.PAD,
    tensor.ExpandShapeOp: Kind.RESHAPE,
    tensor.CollapseShapeOp: Kind.RESHAPE,
    tensor.CastOp: Kind.RESHAPE,
    tensor.ExtractSliceOp: Kind.SLICE,
    tensor.InsertSliceOp: Kind.SLICE,
    tensor.ConcatOp: Kind.CONCAT,
    tensor.EmptyOp: Kind.EMPTY,
    tensor.DimOp: Kind.SCALAR,
}


def kind(op: Operation) -> Kind:
    """What `op` does."""
    found = _BY_TYPE.get(type(op))
    if found is not None:
        return found
    if is_generic(op):
        view = StructuredOp(op)
        return _reduction_kind(view) if "reduction" in view.iterators else _parallel_kind(view)
    if type(op) is arith.ConstantOp:
        return Kind.CONSTANT if isinstance(result_of(op).type, TensorType) else Kind.SCALAR
    if type(op) is func.CallOp:
        return Kind.OTHER
    scalar = bool(op.results) and not any(isinstance(result.type, TensorType) for result in op.results)
    return Kind.SCALAR if scalar and not op.regions else Kind.OTHER


def splat_value(value: SSAValue) -> float | int | None:
    """The number that every element of `value` is, where it is a scalar or splat constant, a fill of one, or a reshape
    of one."""
    op = producer_of(value)
    if type(op) is arith.ConstantOp:
        return _splat_attribute(op)
    if type(op) is linalg.ops.FillOp:
        return splat_value(op.inputs[0])
    if type(op) is tensor.ExpandShapeOp or type(op) is tensor.CollapseShapeOp:
        return splat_value(op.src)
    return None


def _splat_attribute(op: arith.ConstantOp) -> float | int | None:
    attribute = op.value
    if isinstance(attribute, FloatAttr | IntegerAttr):
        return attribute.value.data
    return one_element(attribute) if isinstance(attribute, DenseIntOrFPElementsAttr) else None


def is_constant(value: SSAValue) -> bool:
    """Whether `value` is a constant (of any form)."""
    return type(value) is OpResult and type(value.op) is arith.ConstantOp
