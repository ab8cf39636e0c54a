"""What the comparator of a sort compares, where that are keys one after the other.

    cmpf ogt, %a, %b                                    one key, downwards; of functions of elements, too
    select(cmp eq, %a, %b), %second, %first, or
    or %first, and(cmp eq, %a, %b), %second             two keys

The arguments of a comparator are pairs: the elements of two places, operand by operand. A comparison is one of keys
where its sides are the same function, one of the elements of the one place, the other of the other's. Strict or not,
equals stay in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Block, BlockArgument, OpResult, SSAValue

from fuseline.ir.build import Body
from fuseline.ir.fast.direct import ops_of
from fuseline.ir.linalg_ext import ExtYieldOp
from fuseline.ir.order_bodies import ordered_integer, turned
from fuseline.ir.reachable import reachable

_INTEGERS = {
    **dict.fromkeys((2, 3), ("up", False)),
    **dict.fromkeys((4, 5), ("down", False)),
    **dict.fromkeys((6, 7), ("up", True)),
    **dict.fromkeys((8, 9), ("down", True)),
}
"""By predicate: less or greater, and whether as unsigned numbers."""

_FLOATS = {2: "down", 3: "down", 4: "up", 5: "up", 9: "down", 10: "down", 11: "up", 12: "up"}
"""By predicate: greater or less, of NaN whatever it says."""


@dataclass(frozen=True, slots=True)
class Key:
    """`value`, computed of the elements of the first place, the largest ones first or last."""

    value: SSAValue
    largest: bool
    unsigned: bool

    def emit(self, b: Body, block: Block, elements: Sequence[SSAValue]) -> SSAValue:
        """The integer that stands for the key of `elements`, one per operand."""
        values: dict[SSAValue, SSAValue] = {arg: elements[arg.index // 2] for arg in block.args}
        needed = set(_behind(self.value))
        for op in ops_of(block):
            if not needed.isdisjoint(op.results):
                b.add(op.clone(values))
        number = ordered_integer(b, values.get(self.value, self.value), unsigned=self.unsigned)
        return turned(b, number) if self.largest else number


def keys_of(block: Block) -> list[Key]:
    """The keys in order of significance; none for a comparator that does something else."""
    last = block.last_op
    if not isinstance(last, ExtYieldOp) or len(last.values) != 1:
        return []
    return _keys(last.values[0]) or []


def _keys(value: SSAValue) -> list[Key] | None:
    op = value.owner
    if isinstance(op, arith.CmpiOp | arith.CmpfOp):
        return _compared(op)
    if isinstance(op, arith.SelectOp):
        return _in_turn(op.lhs, op.rhs, op.cond)
    if isinstance(op, arith.OrIOp):
        for first, rest in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            both = rest.owner
            if isinstance(both, arith.AndIOp):
                return _in_turn(both.rhs, first, both.lhs) or _in_turn(both.lhs, first, both.rhs)
    return None


def _in_turn(then: SSAValue, first: SSAValue, same: SSAValue) -> list[Key] | None:
    """The keys of `first`, and where `same` says that it is undecided, those of `then`."""
    head, tail, sides = _keys(first), _keys(then), _tested(same)
    if head is None or tail is None or sides is None or len(head) != 1:
        return None
    first_op = first.owner
    assert isinstance(first_op, arith.CmpiOp | arith.CmpfOp)
    compared = {first_op.lhs, first_op.rhs}
    return [*head, *tail] if set(sides) == compared else None


def _tested(value: SSAValue) -> tuple[SSAValue, SSAValue] | None:
    """What is asked to be equal."""
    op = value.owner
    if isinstance(op, arith.CmpiOp) and op.predicate.value.data == 0:
        return op.lhs, op.rhs
    if isinstance(op, arith.CmpfOp) and op.predicate.value.data in (1, 8):
        return op.lhs, op.rhs
    return None


def _compared(op: arith.CmpiOp | arith.CmpfOp) -> list[Key] | None:
    predicate = op.predicate.value.data
    if isinstance(op, arith.CmpiOp):
        direction, unsigned = _INTEGERS.get(predicate, ("", False))
    else:
        direction, unsigned = _FLOATS.get(predicate, ""), False
    if not direction or not _mirrored(op.lhs, op.rhs):
        return None
    side = _side(op.lhs)
    if side is None:
        return None
    first, largest = (op.lhs, direction == "down") if side == 0 else (op.rhs, direction == "up")
    return [Key(first, largest, unsigned)]


def _side(value: SSAValue) -> int | None:
    """Which place all arguments behind a value are of; None where they are of both, or none."""
    found = {arg.index % 2 for arg in _behind(value) if isinstance(arg, BlockArgument)}
    return found.pop() if len(found) == 1 else None


def _behind(value: SSAValue) -> Iterator[SSAValue]:
    """All that a value is computed of, itself included."""
    return reachable([value], lambda found: found.op.operands if isinstance(found, OpResult) else ())


def _mirrored(a: SSAValue, b: SSAValue) -> bool:
    """Whether `b` is what `a` is, of the elements of the other place."""
    if isinstance(a, BlockArgument) or isinstance(b, BlockArgument):
        return (
            isinstance(a, BlockArgument)
            and isinstance(b, BlockArgument)
            and a.owner is b.owner
            and a.index == b.index ^ 1
        )
    assert isinstance(a, OpResult) and isinstance(b, OpResult)
    one, other = a.op, b.op
    if one is other and not one.operands:
        return True
    return (
        one.name == other.name
        and a.index == b.index
        and not one.regions
        and one.properties == other.properties
        and one.attributes == other.attributes
        and [r.type for r in one.results] == [r.type for r in other.results]
        and len(one.operands) == len(other.operands)
        and all(_mirrored(x, y) for x, y in zip(one.operands, other.operands, strict=True))
    )
