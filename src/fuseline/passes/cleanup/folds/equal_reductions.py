"""What is computed in the same way of neighbouring parts of a tensor, and joined again: one op, with a loop more.

    x ──> slice [0, 4) ──> sum ─┐                          x ──> 3x4 ──> sum of each 4
    x ──> slice [4, 8) ──> sum ─┼─> concat       =>
    x ──> slice [8, 12) ─> sum ─┘

Loops over bags of embeddings are written so when they are unrolled (`nn.EmbeddingBag` as torch exports it, DLRM: Naumov
et al. 2019, arXiv:1906.00091). As many ops as there are parts would each be an arm of a dispatch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap

from fuseline.analysis.structured import StructuredOp, body_ops, captured_tensors, is_generic, producer_of, splat_value
from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_generic
from fuseline.ir.fast.direct import result_of, users_of_value
from fuseline.ir.provenance import carry
from fuseline.passes.cleanup.folds.reshapes import Reshape, group_sizes, reshape_op
from fuseline.passes.cleanup.folds.worklist import Worklist

MOST_STEPS = 6
"""Ops behind a slice that are followed: a reduction, what is done to its result, and reshapes."""


@dataclass(frozen=True)
class _Part:
    """`steps`, a reduction first, make a part of a concat of `cut`, a slice."""

    cut: tensor.ExtractSliceOp
    steps: tuple[linalg.ops.GenericOp | Reshape, ...]

    def offsets(self) -> tuple[int, ...]:
        """Where the slice begins."""
        return tuple(self.cut.static_offsets.get_values())

    def sizes(self) -> tuple[int, ...]:
        """How much it takes."""
        return tuple(self.cut.static_sizes.get_values())


def fold_equal_reductions(op: tensor.ConcatOp, work: Worklist) -> bool:
    """A concat of reductions, all alike, of neighbouring slices of one tensor."""
    axis, shape = op.dim.value.data, shape_of(op.result)
    if len(op.inputs) < 2 or shape[axis] != len(op.inputs) or DYNAMIC_INDEX in shape or prod(shape[:axis]) != 1:
        return False
    first = _part(op.inputs[0])
    found = [_part(value) for value in op.inputs] if first is not None else []
    parts = [part for part in found if part is not None]
    along = _along(parts) if len(parts) == len(op.inputs) else None
    if along is None or not all(_is_like(part, parts[0]) for part in parts[1:]):
        return False
    if not _is_summed(parts[0].steps[0], along) or not _can_be_counted(parts[0], len(parts), shape):
        return False
    work.replace(op, [], [_at_once(op, parts, along)])
    return True


# parts ----------------------------------------------------------------------------------------------------------------


def _part(value: SSAValue) -> _Part | None:
    """How a part is made, where that is a reduction of one slice for this reader alone."""
    steps: list[linalg.ops.GenericOp | Reshape] = []
    for _ in range(MOST_STEPS):
        op = producer_of(value)
        if type(op) is tensor.ExtractSliceOp:
            return _Part(op, tuple(reversed(steps))) if _is_plain(op) and steps and _reduces(steps[-1]) else None
        if len(users_of_value(value)) != 1 or not (isinstance(op, Reshape) or (is_generic(op) and _is_closed(op))):
            return None
        steps.append(op)
        value = op.operands[0]
    return None


def _is_closed(op: linalg.ops.GenericOp) -> bool:
    """Whether a generic makes one result of one tensor and numbers alone, from a number or from nothing on."""
    if len(op.results) != 1 or len(op.inputs) != 1 or captured_tensors(op) or DYNAMIC_INDEX in shape_of(op.results[0]):
        return False
    if any(type(inner) is linalg.ops.IndexOp for inner in body_ops(op)):
        return False
    return splat_value(op.outputs[0]) is not None or not op.body.block.args[1].uses


def _reduces(op: Operation) -> bool:
    return is_generic(op) and bool(StructuredOp(op).reduction)


def _is_plain(cut: tensor.ExtractSliceOp) -> bool:
    """Whether a slice is of known neighbours, and keeps every dimension."""
    known = not cut.offsets and not cut.sizes and not cut.strides and set(cut.static_strides.get_values()) == {1}
    return (
        known and len(shape_of(cut.source)) == len(shape_of(cut.result)) and DYNAMIC_INDEX not in shape_of(cut.source)
    )


def _along(parts: Sequence[_Part]) -> int | None:
    """The dimension along which slices of one tensor and of one size lie side by side, in this order."""
    first, second = parts[0].offsets(), parts[1].offsets()
    moved = [i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b]
    if len(moved) != 1:
        return None
    (along,), sizes, source = moved, parts[0].sizes(), parts[0].cut.source
    for number, part in enumerate(parts):
        expected = tuple(at + number * sizes[along] * (i == along) for i, at in enumerate(first))
        if part.cut.source is not source or part.sizes() != sizes or part.offsets() != expected:
            return None
    return along


def _is_like(part: _Part, other: _Part) -> bool:
    """Whether two parts are computed in the same way."""
    pairs = zip(part.steps, other.steps, strict=False)
    return len(part.steps) == len(other.steps) and all(_is_same(a, b) for a, b in pairs)


def _is_same(op: Operation, other: Operation) -> bool:
    if type(op) is not type(other) or result_of(op).type != result_of(other).type:
        return False
    if not is_generic(op) or not is_generic(other):
        return True
    return (
        op.indexing_maps == other.indexing_maps
        and op.iterator_types == other.iterator_types
        and splat_value(op.outputs[0]) == splat_value(other.outputs[0])
        and op.body.is_structurally_equivalent(other.body)
    )


def _is_summed(op: Operation, along: int) -> bool:
    """Whether the slices lie along a loop that an op reduces, and reads along nothing else."""
    if not is_generic(op):
        return False
    view = StructuredOp(op)
    loop, read = view.input_maps[0].results[along], view.input_maps[0].results
    if not isinstance(loop, AffineDimExpr) or loop.position not in view.reduction:
        return False
    return sum(loop.position in expr.used_dims() for expr in read) == 1


def _can_be_counted(part: _Part, count: int, shape: Sequence[int]) -> bool:
    """Whether every reshape, and one at the end, may be said for `count` parts at once, too."""
    reshapes = [step for step in part.steps if isinstance(step, Reshape)]
    pairs = [([count, *shape_of(op.src)], [count, *shape_of(op.result)]) for op in reshapes]
    pairs.append(([count, *shape_of(result_of(part.steps[-1]))], list(shape)))
    return all(_is_one_reshape(before, after) or _moving(before) == _moving(after) for before, after in pairs)


def _is_one_reshape(before: Sequence[int], after: Sequence[int]) -> bool:
    large, small = (before, after) if len(before) > len(after) else (after, before)
    return len(before) != len(after) and group_sizes(large, small) is not None


def _moving(sizes: Sequence[int]) -> list[int]:
    return [size for size in sizes if size != 1]


# all of them at once --------------------------------------------------------------------------------------------------


def _at_once(op: tensor.ConcatOp, parts: Sequence[_Part], along: int) -> SSAValue:
    emit, count, size = Emitter.before(op), len(parts), parts[0].sizes()[along]
    source = _whole(emit, parts, along, count * size)
    whole = shape_of(source)
    value, at = _reshaped(emit, source, [*whole[:along], count, size, *whole[along + 1 :]]), along
    made: list[Operation] = []
    for step in parts[0].steps:
        if isinstance(step, Reshape):
            value = _reshaped(emit, value, [count, *shape_of(step.result)])
        else:
            made.append(emit.add(_counted(emit, step, value, count, at)))
            value = result_of(made[-1])
        at = 0
    carry([*(step for part in parts for step in part.steps), op], made)
    return _reshaped(emit, value, shape_of(op.result))


def _whole(emit: Emitter, parts: Sequence[_Part], along: int, size: int) -> SSAValue:
    """What the slices are together."""
    first, sizes = parts[0].cut, list(parts[0].sizes())
    sizes[along] = size
    if sizes == list(shape_of(first.source)):
        return first.source
    type_ = attributes.tensor_type(element_of(first.source), tuple(sizes))
    properties = {**first.properties, "static_sizes": attributes.dense(tuple(sizes))}
    return emit.add(
        tensor.ExtractSliceOp.build(operands=[first.source, [], [], []], result_types=[type_], properties=properties)
    ).result


def _counted(emit: Emitter, step: linalg.ops.GenericOp, value: SSAValue, count: int, at: int) -> linalg.ops.GenericOp:
    """`step` on `count` values at once, that lie along dimension `at` of what it reads."""
    view, out = StructuredOp(step), step.outputs[0]
    init, start = emit.empty(element_of(out), [count, *shape_of(out)]), splat_value(out)
    maps = [_with_counter(view.input_maps[0], at), _with_counter(view.output_maps[0], 0)]
    init = init if start is None else emit.fill(start, init)
    return create_generic([value], [init], step.body.clone(), maps, ["parallel", *view.iterators])


def _with_counter(map_: AffineMap, at: int) -> AffineMap:
    """The map with a loop more, the first, which is coordinate `at`."""
    moved = [AffineExpr.dimension(loop + 1) for loop in range(map_.num_dims)]
    results = [expr.replace_dims_and_symbols(moved, []) for expr in map_.results]
    return AffineMap(map_.num_dims + 1, 0, (*results[:at], AffineExpr.dimension(0), *results[at:]))


def _reshaped(emit: Emitter, value: SSAValue, shape: Sequence[int]) -> SSAValue:
    """`value` in another shape: by one op, or by two, without dimensions of size 1 in between."""
    if tuple(shape_of(value)) == tuple(shape):
        return value
    made = reshape_op(value, shape)
    if made is not None:
        return emit.add(made).result
    return _reshaped(emit, _reshaped(emit, value, _moving(shape)), shape)
