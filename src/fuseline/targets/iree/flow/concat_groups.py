"""Which concats have parts that dispatches can write where they belong, and which concats are ranges of others.

%a = region, %b = region            one tensor of [a b c], which the regions of a, b and c write into in turn;
concat(%a, %b)       read by %c     what reads the first concat reads its range of that tensor
concat(%a, %b, %c)
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, i1
from xdsl.ir import Block, Operation, OpResult, SSAValue

from fuseline.ir.build import element_of, shape_of
from fuseline.ir.flow import DispatchRegionOp


@dataclass(eq=False)
class ConcatGroup:
    """`whole`: the concat whose parts are written in place; `ranges`: the concats that are some of its parts in a row,
    with the first one's number; `written`: the numbers of the parts that a region writes, with that region."""

    whole: tensor.ConcatOp
    ranges: dict[tensor.ConcatOp, int] = field(default_factory=dict[tensor.ConcatOp, int])
    written: dict[int, DispatchRegionOp] = field(default_factory=dict[int, DispatchRegionOp])

    @property
    def axis(self) -> int:
        """The axis along which parts stand."""
        return axis_of(self.whole)

    @property
    def concats(self) -> list[Operation]:
        """All concats of the group."""
        return [self.whole, *self.ranges]

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Where each part begins along the axis."""
        sizes = [shape_of(part)[self.axis] for part in self.whole.operands]
        return tuple(accumulate(sizes[:-1], initial=0))


def concat_groups(block: Block, apart: Collection[Operation]) -> list[ConcatGroup]:
    """The groups of a block in which at least one part is written in place. The regions in `apart` neither write nor
    read parts of a larger tensor."""
    concats = [op for op in block.ops if isinstance(op, tensor.ConcatOp) and _is_cut_by_numbers(op)]
    groups: list[ConcatGroup] = []
    for op in sorted(concats, key=lambda op: -len(op.operands)):
        if not _joins(op, groups, apart):
            groups.append(ConcatGroup(op))
    for group in groups:
        group.written = _written(group, apart)
    return [group for group in groups if group.written]


def axis_of(op: tensor.ConcatOp) -> int:
    """The axis of a concat."""
    return op.dim.value.data


def region_of(op: Operation, block: Block) -> DispatchRegionOp | None:
    """The region of `block` that `op` is in."""
    around: Operation | None = op
    while around is not None and around.parent is not block:
        around = around.parent_op()
    return around if isinstance(around, DispatchRegionOp) and around is not op else None


def readers(value: SSAValue, block: Block) -> list[DispatchRegionOp | None]:
    """The regions that read a value; None for each op outside of regions that does."""
    return [region_of(use.operation, block) for use in value.uses]


def _is_cut_by_numbers(op: tensor.ConcatOp) -> bool:
    """Whether where each part begins is known, and the parts are of a type that can be written in place: booleans lie
    otherwise in memory than in a program."""
    sizes = [shape_of(part)[axis_of(op)] for part in op.operands]
    return DYNAMIC_INDEX not in sizes and 0 not in sizes and element_of(op.results[0]) != i1


def _joins(op: tensor.ConcatOp, groups: Sequence[ConcatGroup], apart: Collection[Operation]) -> bool:
    """Make `op` a range of a group, where it is one that regions alone read."""
    assert op.parent is not None
    if any(region is None or region in apart for region in readers(op.results[0], op.parent)):
        return False
    for group in groups:
        first = _place_in(list(op.operands), list(group.whole.operands))
        if first is not None and axis_of(op) == group.axis and _is_before(op, group.whole):
            group.ranges[op] = first
            return True
    return False


def _place_in(parts: Sequence[SSAValue], whole: Sequence[SSAValue]) -> int | None:
    """Where `parts` stand in a row in `whole`; None where they do not, or not once."""
    starts = [
        start
        for start in range(len(whole) - len(parts) + 1)
        if all(a is b for a, b in zip(parts, whole[start:], strict=False))
    ]
    return starts[0] if len(starts) == 1 else None


def _is_before(first: Operation, second: Operation) -> bool:
    return first.is_before_in_block(second)


def _written(group: ConcatGroup, apart: Collection[Operation]) -> dict[int, DispatchRegionOp]:
    """The parts that regions write: a region writes one, and what else reads it is a region that takes its range."""
    found: dict[int, DispatchRegionOp] = {}
    for number, part in enumerate(group.whole.operands):
        owner = part.owner
        if not isinstance(owner, DispatchRegionOp) or owner in apart or owner in found.values():
            continue
        if owner.parent is group.whole.parent and _is_read_by_ranges(group, part, apart):
            found[number] = owner
    return found


def _is_read_by_ranges(group: ConcatGroup, part: SSAValue, apart: Collection[Operation]) -> bool:
    """Whether a part is in the concat once, and beside the group's concats regions alone read it."""
    if sum(other is part for other in group.whole.operands) != 1:
        return False
    block = group.whole.parent
    assert block is not None and isinstance(part, OpResult)
    others = [use.operation for use in part.uses if use.operation not in group.concats]
    return all((region := region_of(op, block)) is not None and region not in apart for op in others)
