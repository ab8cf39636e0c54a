"""A part of a tensor that something is added to and that is put back beside the rest: it is added to all of the tensor,
with numbers around it that change nothing.

    x ──> slice [0, 16) ──> + s ─┐                          s ──> pad with -0 ─┐
    x ──> slice [16, 64) ────────┴─> concat       =>        x ─────────────────┴─> +

So it is an op like any other behind what makes `x`: half a residual, as ReXNet has them (Han et al. 2020,
"Rethinking Channel Dimensions", arXiv:2007.00992).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, AnyFloat, TensorType
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from fuseline.analysis.indexing_maps import is_identity
from fuseline.analysis.structured import StructuredOp, is_generic, yielded
from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.ir.fast.create import create_pad
from fuseline.ir.fast.direct import body_of, operands_of, users_of_value
from fuseline.ir.provenance import carry
from fuseline.passes.cleanup.folds.dims import asked, size_value
from fuseline.passes.cleanup.folds.worklist import Worklist

_NEUTRAL: dict[type[Operation], float] = {arith.AddfOp: -0.0, arith.SubfOp: 0.0, arith.MulfOp: 1.0}
"""The second operand that leaves any first one, -0 and NaN among them, as it is."""


def fold_part_put_back(op: tensor.ConcatOp, work: Worklist) -> bool:
    """A concat of neighbouring slices that are together all of one tensor, one of them added to (or multiplied by,
    or less) another tensor."""
    axis, parts = op.dim.value.data, list(op.inputs)
    computed = [part for part in parts if not isinstance(part, OpResult) or type(part.op) is not tensor.ExtractSliceOp]
    sum_ = _sum(computed[0]) if len(computed) == 1 and len(parts) > 1 else None
    if sum_ is None:
        return False
    at = parts.index(computed[0])
    slices = [part if i != at else sum_[1] for i, part in enumerate(parts)]
    source = _whole(slices, axis)
    if source is None or source.type != op.result.type:
        return False
    sizes = [shape_of(part)[axis] for part in parts]
    around = sum(sizes[:at]), sum(sizes[at + 1 :])
    work.replace(op, [], [_added(op, sum_[0], source, sum_[2], (axis, around))])
    return True


def _sum(value: SSAValue) -> tuple[linalg.ops.GenericOp, SSAValue, SSAValue] | None:
    """The op that adds the second of two tensors to the first, a slice; of floats, for one reader."""
    op = value.owner
    if not is_generic(op) or len(users_of_value(value)) != 1 or len(op.inputs) != 2:
        return None
    if not all(map(is_identity, StructuredOp(op).maps)) or not isinstance(element_of(value), AnyFloat):
        return None
    made = yielded(op)[0].owner
    if type(made) not in _NEUTRAL or len(body_of(op).ops) != 2:
        return None
    assert isinstance(made, Operation)
    order = [one.index for one in operands_of(made) if type(one) is BlockArgument and one.index < 2]
    ways = [order] if type(made) is arith.SubfOp else [order, order[::-1]]
    for first, second in ways if len(order) == 2 else ():
        x, other = op.inputs[first], op.inputs[second]
        if isinstance(x, OpResult) and type(x.op) is tensor.ExtractSliceOp and element_of(x) == element_of(value):
            return op, x, other
    return None


def _whole(slices: Sequence[SSAValue], axis: int) -> SSAValue | None:
    """The tensor that these slices along `axis` are all of, in this order."""
    ops = [part.op for part in slices if isinstance(part, OpResult) and isinstance(part.op, tensor.ExtractSliceOp)]
    source, begin = ops[0].source, 0
    for op in ops:
        if op.source is not source or not _takes(op, axis, begin):
            return None
        begin += op.static_sizes.get_values()[axis]
    return source if begin == shape_of(source)[axis] else None


def _takes(op: tensor.ExtractSliceOp, axis: int, begin: int) -> bool:
    """Whether a slice is what lies from `begin` on along `axis`, of all else all."""
    offsets, sizes, whole = op.static_offsets.get_values(), op.static_sizes.get_values(), shape_of(op.source)
    if DYNAMIC_INDEX in (whole[axis], sizes[axis]) or set(op.static_strides.get_values()) > {1}:
        return False
    if any(offset != (begin if i == axis else 0) for i, offset in enumerate(offsets)) or len(whole) != len(sizes):
        return False
    unknown = [i for i, size in enumerate(sizes) if size == DYNAMIC_INDEX]
    known = all(size == whole[i] for i, size in enumerate(sizes) if i != axis and i not in unknown)
    return known and all(asked(size) == size_value(op.source, i) for i, size in zip(unknown, op.sizes, strict=True))


def _added(
    op: tensor.ConcatOp,
    sum_: linalg.ops.GenericOp,
    source: SSAValue,
    other: SSAValue,
    place: tuple[int, tuple[int, int]],
) -> SSAValue:
    """`source` with `other` added so many elements from its ends along an axis."""
    axis, (low, high) = place
    emit, rank, made = Emitter.before(op), len(shape_of(source)), yielded(sum_)[0].owner
    assert isinstance(source.type, TensorType) and isinstance(made, Operation)
    neutral = emit.scalar(_NEUTRAL[type(made)], element_of(source))
    below, above = ([size if i == axis else 0 for i in range(rank)] for size in (low, high))
    padded = emit.add(create_pad(other, below, above, neutral, source.type, emit.location))
    result = emit.elementwise(
        [source, padded.result], emit.empty_like(source), lambda b: b.op(type(made), b.args[0], b.args[1])
    )
    carry([sum_, op], [result.owner])  # pyright: ignore[reportArgumentType]
    return result
