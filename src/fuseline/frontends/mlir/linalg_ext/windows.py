"""Windows of an image as a matrix: a copy with a loop for each number that a result dimension counts through, and a
reshape that makes one of those of a dimension.

    image[n, y * stride + ky * dilation, ..]    ->    [n, y, x, ky, kx, c]    ->    [n, y * x, ky * kx * c]
"""

from __future__ import annotations

from xdsl.dialects import tensor
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.frontends.mlir.wrappers import unsupported
from fuseline.ir.build import PARALLEL, Emitter, element_of, identity_map, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.fast.build import create_op
from fuseline.ir.linalg_ext import Im2colOp


def im2col(op: Im2colOp) -> list[SSAValue]:
    """The windows. Raises FuselineError: E0306 for windows that start elsewhere than at the first, sizes that only the
    run tells, and windows that do not fit the sizes of the op."""
    rows, order = op.rows(), op.numbers("output_perm")
    if any(op.numbers("offsets")):
        raise unsupported(op, "windows from an offset on", "hand over the program before it was tiled")
    if min(size for row in rows for size in row) < 0 or min(shape_of(op.inputs[0])) < 0:
        raise unsupported(op, "sizes that only the run tells")
    flat = [size for place in order for size in rows[place]]
    read = _read(op, rows, _loops(rows, order), len(flat))
    emit, element = Emitter.before(op), element_of(op.inputs[0])
    out = emit.empty(element, flat)
    copied = emit.generic(
        [op.inputs[0]], [out], [read, identity_map(len(flat))], [PARALLEL] * len(flat), lambda b: [b.args[0]]
    ).results[0]
    groups, first = list[list[int]](), 0
    for place in order:
        groups.append(list(range(first, first + len(rows[place]))))
        first += len(rows[place])
    if all(len(group) == 1 for group in groups):
        return [copied]
    properties = {"reassociation": attributes.reassociation(groups)}
    return [emit.add(create_op(tensor.CollapseShapeOp, [copied], [op.res[0].type], properties)).result]


def _loops(rows: list[list[int]], order: tuple[int, ...]) -> list[list[int]]:
    """The loops of each row, which stand in the order of the result's dimensions."""
    loops: list[list[int]] = [[] for _ in rows]
    first = 0
    for place in order:
        loops[place] = list(range(first, first + len(rows[place])))
        first += len(rows[place])
    return loops


def _read(op: Im2colOp, rows: list[list[int]], loops: list[list[int]], rank: int) -> AffineMap:
    """Where each dimension of the image is read. Raises FuselineError (E0306) where the numbers do not fit."""
    batch, places, channels = (op.numbers(word) for word in ("batch_pos", "m_pos", "k_pos"))
    counted = [loop for row in loops[len(batch) :] for loop in row]
    sizes = [size for row in rows[len(batch) :] for size in row]
    inner = [dim for dim in range(len(shape_of(op.inputs[0]))) if dim not in batch]
    kernel = dict(zip(places, op.numbers("kernel_size"), strict=True))
    wanted = {**kernel, **{dim: shape_of(op.inputs[0])[dim] for dim in channels}}
    ordered = [inner[i] for i in op.numbers("input_k_perm")]
    inside = dict(zip(ordered, counted[len(places) :], strict=False))
    found = dict(zip(ordered, sizes[len(places) :], strict=False))
    if len(counted) != len(places) + len(inner) or found != wanted or any(len(row) != 1 for row in rows[: len(batch)]):
        raise unsupported(op, "windows that are cut otherwise than by the kernel and the channels")
    read: list[AffineExpr] = [AffineExpr.constant(0)] * len(shape_of(op.inputs[0]))
    for dim, row in zip(batch, loops, strict=False):
        read[dim] = AffineExpr.dimension(row[0])
    for dim in channels:
        read[dim] = AffineExpr.dimension(inside[dim])
    for number, dim in enumerate(places):
        moved = AffineExpr.dimension(counted[number]) * op.numbers("strides")[number]
        read[dim] = moved + AffineExpr.dimension(inside[dim]) * op.numbers("dilations")[number]
    return AffineMap(rank, 0, tuple(read))
