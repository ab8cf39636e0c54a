"""`tensor.dim`: of a known size a constant, of a computed tensor the size of what it was made from."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, IntegerAttr
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.ir.build import shape_of
from fuseline.ir.fast import attributes
from fuseline.passes.cleanup.folds.worklist import Fold, Worklist


def _axis(op: tensor.DimOp) -> int | None:
    index = op.index.op if type(op.index) is OpResult else None
    if type(index) is arith.ConstantOp and isinstance(index.value, IntegerAttr):
        return index.value.value.data
    return None


def fold_static_dim(op: tensor.DimOp, work: Worklist) -> bool:
    """The size of a dimension that the type tells."""
    axis = _axis(op)
    if axis is None or not 0 <= axis < len(shape_of(op.source)) or shape_of(op.source)[axis] == DYNAMIC_INDEX:
        return False
    work.replace(op, [arith.ConstantOp(IntegerAttr(shape_of(op.source)[axis], IndexType()))])
    return True


def fold_dim_of_result(op: tensor.DimOp, work: Worklist) -> bool:
    """The size of a computed tensor: an index operand of its op, or the size of the tensor whose shape it takes
    over."""
    axis, value = _axis(op), op.source
    if axis is None or type(value) is not OpResult:
        return False
    size = _given_size(value.op, axis)
    if size is not None:
        work.replace(op, [], [size])
        return True
    same = _same_shape(value, axis)
    new = _asked_of(*same) if same is not None else computed_size(value.op, axis)
    if new:
        work.replace(op, new)
    return bool(new)


def _asked_of(source: SSAValue, axis: int) -> list[Operation]:
    """`tensor.dim` of `source`, and its axis."""
    index = arith.ConstantOp(IntegerAttr(axis, IndexType()))
    return [index, tensor.DimOp(source, index.result)]


def computed_size(op: Operation, axis: int) -> list[Operation]:
    """Ops that compute the size of the result of `op` along `axis` from the sizes of its operands, the last of them the
    size; none where there is no such rule. No size may be asked of a tensor that is computed: whoever needs the size
    would wait for the data."""
    if type(op) is tensor.PadOp:
        return _padded_size(op, axis)
    if type(op) is tensor.ConcatOp:
        return _reduced(arith.AddiOp, [_asked_of(part, axis) for part in op.inputs])
    if type(op) is tensor.CollapseShapeOp:
        group = [i.value.data for i in op.reassociation.data[axis].data]  # pyright: ignore[reportAttributeAccessIssue]
        return _reduced(arith.MuliOp, [_asked_of(op.src, dim) for dim in group])
    return []


def _padded_size(op: tensor.PadOp, axis: int) -> list[Operation]:
    """The unpadded size and what is added on both sides."""
    terms = [_asked_of(op.source, axis)]
    for static, dynamic in ((attributes.values(op.static_low), op.low), (attributes.values(op.static_high), op.high)):
        if static[axis] == DYNAMIC_INDEX:
            amount = _nth_dynamic(static, axis, dynamic)
            terms[-1].append(arith.AddiOp(terms[-1][-1].results[0], amount))
        else:
            terms.append([arith.ConstantOp(IntegerAttr(static[axis], IndexType()))])
    return _reduced(arith.AddiOp, terms)


def _reduced(combine: type[arith.AddiOp] | type[arith.MuliOp], terms: Sequence[Sequence[Operation]]) -> list[Operation]:
    """The ops of all `terms`, and those that combine the last result of each."""
    ops, total = list(terms[0]), terms[0][-1].results[0]
    for term in terms[1:]:
        ops += [*term, combine(total, term[-1].results[0])]
        total = ops[-1].results[0]
    return ops


def _nth_dynamic(sizes: Sequence[int], axis: int, dynamic: Sequence[SSAValue]) -> SSAValue:
    return dynamic[sum(size == DYNAMIC_INDEX for size in sizes[:axis])]


def _given_size(op: Operation, axis: int) -> SSAValue | None:
    """The index operand of `op` that is the (unknown) size of its result along `axis`."""
    if type(op) is tensor.EmptyOp:
        return _nth_dynamic(shape_of(op.tensor), axis, op.dynamic_sizes)
    if type(op) is tensor.SplatOp:
        return _nth_dynamic(shape_of(op.result), axis, op.dynamicSizes)
    if type(op) is tensor.ExpandShapeOp:
        return _nth_dynamic(attributes.values(op.static_output_shape), axis, op.dynamic_output_shape)
    if type(op) is tensor.ExtractSliceOp and len(shape_of(op.result)) == len(op.static_sizes):
        return _nth_dynamic(attributes.values(op.static_sizes), axis, op.sizes)
    return None


def _same_shape(value: OpResult, axis: int) -> tuple[SSAValue, int] | None:
    """A tensor, and its axis, of the same size as `value` along `axis`."""
    op = value.op
    if isinstance(op, LinalgStructuredOperation):
        return op.outputs[value.index], axis
    if type(op) is linalg.ops.BroadcastOp:
        return op.init, axis
    if type(op) is tensor.CastOp:
        return op.source, axis
    if isinstance(op, tensor.InsertSliceOp | tensor.InsertOp):
        return op.dest, axis
    if type(op) is tensor.ConcatOp:
        return (op.inputs[0], axis) if axis != op.dim.value.data else None
    if type(op) is tensor.CollapseShapeOp:
        return _only_unknown(op, axis)
    if type(op) is tensor.PadOp:
        unpadded = attributes.values(op.static_low)[axis] == attributes.values(op.static_high)[axis] == 0
        return (op.source, axis) if unpadded else None
    return None


def size_value(value: SSAValue, axis: int) -> SSAValue | tuple[SSAValue, int]:
    """The index value that is the unknown size of `value` along `axis`; or the tensor and its axis that the size is
    asked of in the end. Equal answers are equal sizes."""
    while type(value) is OpResult:
        size = _given_size(value.op, axis)
        if size is not None:
            return asked(size)
        same = _same_shape(value, axis)
        if same is None:
            break
        value, axis = same
    return value, axis


def asked(size: SSAValue) -> SSAValue | tuple[SSAValue, int]:
    """What `tensor.dim` asks, where `size` is its result."""
    op = size.op if type(size) is OpResult else None
    axis = _axis(op) if type(op) is tensor.DimOp else None
    return size if axis is None or type(op) is not tensor.DimOp else size_value(op.source, axis)


def _only_unknown(op: tensor.CollapseShapeOp, axis: int) -> tuple[SSAValue, int] | None:
    """The dimension of a group that is not 1, where all others are."""
    group = [i.value.data for i in op.reassociation.data[axis].data]  # pyright: ignore[reportAttributeAccessIssue]
    large = [d for d in group if shape_of(op.src)[d] != 1]
    return (op.src, large[0]) if len(large) == 1 else None


FOLDS: tuple[Fold, ...] = (fold_static_dim, fold_dim_of_result)
