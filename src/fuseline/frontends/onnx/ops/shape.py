"""Operators that move data or only rename dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import linalg
from xdsl.dialects.builtin import i64

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.computed_sizes import sizes_of
from fuseline.frontends.onnx.dtypes import mlir_element
from fuseline.frontends.onnx.emission import broadcast_to, reshape, result
from fuseline.frontends.onnx.node import OnnxNode, normal_axis
from fuseline.frontends.onnx.ops.slices import slice_of
from fuseline.frontends.onnx.ops.spreading import require_to_broadcast, spread
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known
from fuseline.ir.build import tensor_type
from fuseline.ir.dim import Dim, add, floor_div, mul, product, to_text
from fuseline.ir.fast.create import create_concat


@onnx_op("Reshape", since=5)
def reshape_op(node: OnnxNode) -> Tensor:
    """0 copies a size (unless allowzero), -1 takes what is left. Raises FuselineError: E0107 for another number of
    elements, more than one -1, sizes below -1, and -1 beside a size 0."""
    x, wanted = node[0], node[1].sizes()
    dims: list[Dim] = [
        x.dims[i] if size == 0 and not node.integer("allowzero") else size for i, size in enumerate(wanted)
    ]
    if sum(size == -1 for size in dims) > 1 or any(isinstance(size, int) and size < -1 for size in dims):
        raise FuselineError("E0107", f"the shape {wanted} has more than one -1, or sizes below")
    if not node.integer("allowzero"):
        _require_not_copied(node, x, wanted)
    if -1 in dims:
        at = dims.index(-1)
        rest = product(dims[:at] + dims[at + 1 :])
        if rest == 0:
            raise FuselineError("E0107", f"-1 beside a size 0 in the shape {wanted} is ambiguous")
        dims[at] = floor_div(product(x.dims), rest)
    total, count = product(x.dims), product(dims)
    if total != count and isinstance(total, int) and isinstance(count, int):
        raise FuselineError("E0107", f"{total} elements cannot have the shape {wanted}")
    return reshape(node, x, dims)


def _require_not_copied(node: OnnxNode, x: Tensor, wanted: Sequence[Dim]) -> None:
    """A size that only the run tells must not be 0, which would copy another one, unless that is the same."""
    for axis, size in enumerate(wanted):
        if not isinstance(size, int) and (axis >= x.rank or x.dims[axis] != size):
            node.program.require_at_least(size, 1, node.label)


@onnx_op("Flatten")
def flatten(node: OnnxNode) -> Tensor:
    """Two dimensions: the axes before `axis`, and the rest."""
    x = node[0]
    axis = node.integer("axis", 1)
    axis = axis + x.rank if axis < 0 else axis
    return reshape(node, x, (product(x.dims[:axis]), product(x.dims[axis:])))


@onnx_op("Squeeze")
def squeeze(node: OnnxNode) -> Tensor:
    """Without the given axes, which must have size 1. By default all that have: one that an input's size tells must not
    be 1 then, and with one that is computed even the rank is unknown until the run. Raises FuselineError: E0107 for an
    axis whose size is known not to be 1."""
    x, given = node[0], node.ints_or_input("axes", 1)
    axes = (
        [normal_axis(a, x.rank) for a in given]
        if given is not None
        else [i for i, size in enumerate(x.dims) if size == 1]
    )
    for size in x.dims if given is None else ():
        if not node.program.is_fed(size):
            raise NoNativeLowering("symbolic-size", f"{size} may be 1")
        if not isinstance(size, int):
            node.program.require_other(size, 1, node.label)
    return reshape(node, _with_unit_axes(node, x, axes), [size for i, size in enumerate(x.dims) if i not in axes])


def _with_unit_axes(node: OnnxNode, x: Tensor, axes: Sequence[int]) -> Tensor:
    """`x` with size 1 along `axes`: sizes that only the run tells are required to be 1 then. Raises FuselineError
    (E0107) for any other size."""
    for axis in axes:
        size = x.dims[axis]
        if isinstance(size, int) and size != 1:
            raise FuselineError(
                "E0107",
                f"axis {axis} has size {size} and cannot be squeezed",
                hint="only axes of size 1 can be left out",
            )
        node.program.require_equal(size, 1, node.label)
    return slice_of(node, x, [0] * x.rank, [1 if i in axes else size for i, size in enumerate(x.dims)], [1] * x.rank)


@onnx_op("Unsqueeze")
def unsqueeze(node: OnnxNode) -> Tensor:
    """With axes of size 1 put in."""
    x, given = node[0], node.ints_or_input("axes", 1) or []
    rank = x.rank + len(given)
    axes = {normal_axis(a, rank) for a in given}
    rest = iter(x.dims)
    return reshape(node, x, [1 if i in axes else next(rest) for i in range(rank)])


@onnx_op("Transpose")
def transpose(node: OnnxNode) -> Tensor:
    """Axes in another order. Raises FuselineError: E0107 for a `perm` that is no order of the axes."""
    x = node[0]
    order = node.integers("perm") if node.has("perm") else list(range(x.rank))[::-1]
    if sorted(order) != list(range(x.rank)):
        raise FuselineError("E0107", f"perm {order} is no order of {x.rank} axes")
    return transposed(node, x, order)


def transposed(node: OnnxNode, x: Tensor, order: Sequence[int]) -> Tensor:
    """Dimension i of the answer is dimension `order[i]` of `x`."""
    dims = [x.dims[axis] for axis in order]
    if list(order) == list(range(x.rank)):
        return x
    if x.array is not None:
        return known(x.array.transpose(order), x.dtype, x.name)
    out = node.program.empty(dims, x.dtype, node.emit)
    op = node.emit.add(linalg.ops.TransposeOp(node.ssa(x), out, _i64s(order), out.type))
    return result(op.results[0], dims, x.dtype)


def _i64s(values: Sequence[int]):
    from xdsl.dialects.builtin import DenseArrayBase

    return DenseArrayBase.from_list(i64, list(values))


@onnx_op("Expand")
def expand(node: OnnxNode) -> Tensor:
    """Broadcast to the sizes given."""
    wanted = sizes_of(node, node[1])
    dims = node.broadcast(node[0].dims, wanted)
    require_to_broadcast(node, wanted, dims)
    return broadcast_to(spread(node, node[0], dims), dims)


@onnx_op("Concat")
def concat(node: OnnxNode) -> Tensor:
    """Inputs one after the other along an axis. Raises FuselineError: E0107 for inputs that differ beside the axis."""
    parts = node.present()
    return joined(node, parts, node.axis("axis", 0, parts[0].rank))


def joined(node: OnnxNode, parts: Sequence[Tensor], axis: int) -> Tensor:
    """Tensors one after the other along `axis`. Raises FuselineError: E0107, as `concat` does."""
    _check_parts(node, [t.dims for t in parts], axis)
    if (
        all(t.array is not None for t in parts)
        and sum(int(np.prod(t.array.shape)) for t in parts if t.array is not None) <= 4096
    ):
        return known(np.concatenate([t.array for t in parts if t.array is not None], axis=axis), parts[0].dtype)
    total: Dim = 0
    for t in parts:
        for size, first in zip(_beside(t.dims, axis), _beside(parts[0].dims, axis), strict=True):
            node.program.require_equal(size, first, node.label)
        total = add(total, t.dims[axis])
    dims = (*parts[0].dims[:axis], total, *parts[0].dims[axis + 1 :])
    filled = [t for t in parts if t.dims[axis] != 0] or list(parts[:1])
    if len(filled) == 1:
        return filled[0]
    op = create_concat([node.ssa(t) for t in filled], axis, tensor_type(mlir_element(parts[0].dtype), dims))
    whole = result(node.emit.add(op).result, dims, parts[0].dtype)
    whole.parts = tuple(parts) if whole.rank == 1 else ()
    return whole


def _beside(dims: Sequence[Dim], axis: int) -> list[Dim]:
    return [size for i, size in enumerate(dims) if i != axis]


def _check_parts(node: OnnxNode, parts: Sequence[Sequence[Dim]], axis: int) -> None:
    """Refuse (E0107) parts whose sizes beside `axis` are other numbers; symbols are compared when the program runs."""
    first = parts[0]
    for part in parts[1:]:
        beside = [(a, b) for i, (a, b) in enumerate(zip(first, part, strict=False)) if i != axis]
        if len(part) != len(first) or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in beside):
            found, other = (", ".join(map(to_text, dims)) for dims in (first, part))
            raise FuselineError(
                "E0107",
                f"one part has sizes [{found}], another one [{other}]: they differ beside axis {axis}",
                node=node.label,
            )


@onnx_op("Split")
def split(node: OnnxNode) -> list[Tensor]:
    """Pieces along an axis: of the sizes given, or as equal as they can be."""
    x = node[0]
    axis = node.axis("axis", 0, x.rank)
    given = node.ints_or_input("split", 1)
    sizes: list[Dim] = list(given) if given is not None else _equal(x.dims[axis], node.output_count)
    if given is not None:
        node.program.require_equal(sum(given), x.dims[axis], node.label)
    out: list[Tensor] = []
    offset: Dim = 0
    for size in sizes:
        out.append(piece(node, x, axis, offset, size))
        offset = add(offset, size)
    return out


def _equal(total: Dim, count: int) -> list[Dim]:
    if not isinstance(total, int):
        return [floor_div(total, count)] * count
    size = -(-total // count)
    return [min(size, total - i * size) for i in range(count)]


def piece(node: OnnxNode, x: Tensor, axis: int, offset: Dim, size: Dim) -> Tensor:
    """`size` elements along `axis` from `offset` on."""
    offsets: list[Dim] = [offset if i == axis else 0 for i in range(x.rank)]
    sizes = [size if i == axis else dim for i, dim in enumerate(x.dims)]
    if x.array is not None and isinstance(offset, int) and isinstance(size, int):
        return known(
            x.array[tuple(slice(offset, offset + size) if i == axis else slice(None) for i in range(x.rank))], x.dtype
        )
    return slice_of(node, x, offsets, sizes, [1] * x.rank)


@onnx_op("Tile", since=6)
def tile(node: OnnxNode) -> Tensor:
    """The tensor repeated along each axis. Raises FuselineError: E0107 for more or fewer numbers than axes."""
    x, repeats = node[0], sizes_of(node, node[1])
    if len(repeats) != x.rank:
        raise FuselineError("E0107", f"{len(repeats)} repeats for {x.rank} axes", node=node.label)
    opened: list[Dim] = [v for dim in x.dims for v in (1, dim)]
    repeated: list[Dim] = [v for dim, count in zip(x.dims, repeats, strict=True) for v in (count, dim)]
    wide = broadcast_to(reshape(node, x, opened), repeated)
    return reshape(
        node,
        result(node.ssa(wide), wide.dims, x.dtype),
        [mul(dim, count) for dim, count in zip(x.dims, repeats, strict=True)],
    )


@onnx_op("DepthToSpace", ranks=(4,))
def depth_to_space(node: OnnxNode) -> Tensor:
    """Channels become blocks of positions."""
    x, block = node[0], node.integer("blocksize")
    n, c, h, w = x.dims
    depth = floor_div(c, block * block)
    if node.text("mode", "DCR") == "DCR":
        split_, order = (n, block, block, depth, h, w), (0, 3, 4, 1, 5, 2)
    else:
        split_, order = (n, depth, block, block, h, w), (0, 1, 4, 2, 5, 3)
    return reshape(node, transposed(node, reshape(node, x, split_), order), (n, depth, mul(h, block), mul(w, block)))


@onnx_op("SpaceToDepth", ranks=(4,))
def space_to_depth(node: OnnxNode) -> Tensor:
    """Blocks of positions become channels."""
    x, block = node[0], node.integer("blocksize")
    n, c, h, w = x.dims
    rows, columns = floor_div(h, block), floor_div(w, block)
    order = (0, 3, 5, 1, 2, 4) if node.text("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    wide = transposed(node, reshape(node, x, (n, c, rows, block, columns, block)), order)
    return reshape(node, wide, (n, mul(c, block * block), rows, columns))
