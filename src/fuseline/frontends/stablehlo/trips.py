"""How often a `while` goes round, and what its arguments are on trip t, read off its regions.

cond: compare LT, %i, %n        body: %i + 1, %x, slice of %x at %i, %y with a row at %i
      counter: first + step * t       unchanged     a row of %x          a stack of rows
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from fuseline.frontends.onnx.tensors import Tensor
from fuseline.frontends.stablehlo.hlo import Hlo, scalar_number
from fuseline.frontends.stablehlo.reading import integers_of, text_of
from fuseline.frontends.stablehlo.types import tensor_type_of
from fuseline.ir.dim import Dim, add, ceil_div, lower_bound, maximum, mul, sub
from fuseline.ir.hlo.ops import HloOp


@dataclass(frozen=True)
class Line:
    """`first + step * t` on trip t."""

    first: Dim
    step: int

    def last(self, trips: Dim) -> Dim:
        """What it is behind the last trip."""
        return add(self.first, mul(trips, self.step))


class Trips:
    """The counters of a loop and how often it goes round: `count` is None where that is not told by one of them."""

    def __init__(self, hlo: Hlo) -> None:
        self.hlo = hlo
        self.cond, self.body = (region.block for region in hlo.op.regions[:2])
        last = self.body.last_op
        assert last is not None
        self.yielded: list[SSAValue] = list(last.operands)
        self.counters = {index: line for index in range(len(hlo.inputs)) if (line := self._counter(index)) is not None}
        self.count = self._count()

    def is_kept(self, index: int) -> bool:
        """Whether an argument stays as it is."""
        return self.yielded[index] is self.body.args[index]

    # -- counters ------------------------------------------------------------------------------------------------------

    def _counter(self, index: int) -> Line | None:
        first, made = size_of(self.hlo.inputs[index]), _maker(self.yielded[index])
        if first is None or made is None or made.name not in ("stablehlo.add", "stablehlo.subtract"):
            return None
        left, right = made.operands
        if right is self.body.args[index] and made.name == "stablehlo.add":
            left, right = right, left
        step = self._number(right)
        if left is not self.body.args[index] or not isinstance(step, int) or step == 0:
            return None
        return Line(first, step if made.name == "stablehlo.add" else -step)

    def _number(self, value: SSAValue) -> Dim | None:
        """An integer that no trip changes: a constant inside, a value from outside, an argument that stays."""
        if isinstance(value, BlockArgument) and value.owner in (self.cond, self.body):
            return size_of(self.hlo.inputs[value.index]) if self.is_kept(value.index) else None
        outer = self.hlo.scope.values.get(value)
        if outer is not None:
            return size_of(outer)
        return constant_number(value)

    def _count(self) -> Dim | None:
        last = self.cond.last_op
        test = None if last is None or len(last.operands) != 1 else _maker(last.operands[0])
        if test is None or test.name != "stablehlo.compare":
            return None
        direction = text_of(test.attribute("comparison_direction"))
        left, right = test.operands
        if not isinstance(left, BlockArgument) or left.index not in self.counters:
            left, right, direction = right, left, _TURNED.get(direction, "")
        if not isinstance(left, BlockArgument) or left.owner is not self.cond or left.index not in self.counters:
            return None
        bound = self._number(right)
        return None if bound is None else trips_of(self.counters[left.index], direction, bound)

    # -- lines ---------------------------------------------------------------------------------------------------------

    def line(self, value: SSAValue) -> Line | None:
        """A position as a line; None for one that is none, or may be below 0."""
        found = self._line(value)
        if found is None or self.count is None:
            return None
        ends = (found.first, found.last(sub(self.count, 1)))
        return found if all((lower_bound(end) or -1) >= 0 or end == 0 for end in ends) else None

    def _line(self, value: SSAValue) -> Line | None:
        if isinstance(value, BlockArgument) and value.owner is self.body:
            number = self._number(value)
            return self.counters.get(value.index) if number is None else Line(number, 0)
        number = self._number(value)
        if number is not None:
            return Line(number, 0)
        made = _maker(value)
        return None if made is None else self._line_of(made)

    def _line_of(self, op: HloOp) -> Line | None:
        if op.name in ("stablehlo.add", "stablehlo.subtract"):
            left, right = (self._line(operand) for operand in op.operands)
            if left is None or right is None:
                return None
            sign = 1 if op.name == "stablehlo.add" else -1
            return Line(add(left.first, mul(right.first, sign)), left.step + sign * right.step)
        if op.name in ("stablehlo.convert", "stablehlo.reshape"):
            return self._line(op.operands[0]) if tensor_type_of(op.results[0].type)[0].kind in "iu" else None
        if op.name == "stablehlo.select" and self._is_wrapping(op):
            return self._line(op.operands[2])
        return None

    def _is_wrapping(self, op: HloOp) -> bool:
        """Whether a select counts negative positions from the end (`i < 0 ? i + n : i`), and this one is none."""
        test = _maker(op.operands[0])
        if test is None or test.name != "stablehlo.compare" or test.operands[0] is not op.operands[2]:
            return False
        negative = text_of(test.attribute("comparison_direction")) == "LT" and self._number(test.operands[1]) == 0
        return negative and self.line(op.operands[2]) is not None


_TURNED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "NE": "NE"}


def trips_of(line: Line, direction: str, bound: Dim) -> Dim | None:
    """How many trips go by before `line <direction> bound` fails; None where it may never.

    >>> trips_of(Line(0, 2), "LT", 5), trips_of(Line(5, -1), "GE", 0), trips_of(Line(0, 1), "GT", 3)
    (3, 6, None)
    """
    if direction == "NE":
        direction = "LT" if line.step == 1 else "GT" if line.step == -1 else ""
    if (direction in ("LT", "LE")) != (line.step > 0) or direction not in ("LT", "LE", "GT", "GE"):
        return None
    room = sub(bound, line.first) if line.step > 0 else sub(line.first, bound)
    room = add(room, 1) if direction in ("LE", "GE") else room
    return maximum(ceil_div(room, abs(line.step)), 0)


def size_of(t: Tensor) -> Dim | None:
    """The number or symbolic size that an integer tensor of one element is; None where only the run knows it."""
    if t.dtype.kind not in "iu":
        return None
    number = scalar_number(t)
    if number is not None:
        return int(number)
    return t.sizes()[0] if t.array is not None and t.array.size == 1 else None


def constant_number(value: SSAValue) -> int | None:
    """The number of a constant op of one integer."""
    made = _maker(value)
    if made is None or made.name != "stablehlo.constant" or tensor_type_of(value.type)[0].kind not in "iu":
        return None
    found = integers_of(made.attribute("value"))
    return found[0] if found else None


def _maker(value: SSAValue) -> HloOp | None:
    return value.op if isinstance(value, OpResult) and isinstance(value.op, HloOp) else None


# -- rows and stacks ---------------------------------------------------------------------------------------------------


def uses_inside(value: SSAValue, block: Block) -> list[Operation]:
    """The ops that read a value in a block or in what is nested in it."""
    return [use.operation for use in value.uses if _is_inside(use.operation, block)]


def _is_inside(op: Operation, block: Block) -> bool:
    around: Block | None = op.parent
    while around is not None and around is not block:
        parent = around.parent_op()
        around = None if parent is None else parent.parent
    return around is block


def direction_of(trips: Trips, position: SSAValue, size: Dim) -> bool | None:
    """Whether positions run backwards over `size` rows, one for each trip; None where they do not run over all."""
    line = trips.line(position)
    if line is None or trips.count is None or size != trips.count:
        return None
    if line == Line(0, 1):
        return False
    return True if line.step == -1 and line.first == sub(trips.count, 1) else None


def rows_read(trips: Trips, value: SSAValue, t: Tensor) -> tuple[list[HloOp], bool] | None:
    """The slices that read row t of a value on trip t, where it is read in no other way; and whether backwards."""
    ops = uses_inside(value, trips.body)
    if not ops or t.rank == 0 or uses_inside(value, trips.cond):
        return None
    slices = [op for op in ops if isinstance(op, HloOp) and op.name == "stablehlo.dynamic_slice"]
    directions: set[bool | None] = set()
    for op in slices:
        sizes = integers_of(op.attribute("slice_sizes")) or []
        whole = (
            op.operands[0] is value and op.parent is trips.body and sizes[:1] == [1] and sizes[1:] == list(t.dims[1:])
        )
        directions.add(direction_of(trips, op.operands[1], t.dims[0]) if whole else None)
    if isinstance(value, BlockArgument) and value.owner is trips.body:
        ops = [op for op in ops if op is not trips.body.last_op]
    if len(slices) != len(ops) or len(directions) != 1 or None in directions:
        return None
    return slices, bool(directions.pop())


def row_written(trips: Trips, index: int, t: Tensor) -> tuple[HloOp, bool] | None:
    """The op that puts row t into an argument on trip t, where nothing else reads or writes it; and whether
    backwards."""
    made = _maker(trips.yielded[index])
    argument = trips.body.args[index]
    if made is None or made.name != "stablehlo.dynamic_update_slice" or made.operands[0] is not argument:
        return None
    if uses_inside(argument, trips.body) != [made] or uses_inside(trips.cond.args[index], trips.cond):
        return None
    if len(list(made.results[0].uses)) != 1 or made.parent is not trips.body or t.rank == 0:
        return None
    _, shape = tensor_type_of(made.operands[1].type)
    if shape[:1] != (1,) or list(shape[1:]) != list(t.dims[1:]):
        return None
    backwards = direction_of(trips, made.operands[2], t.dims[0])
    return None if backwards is None else (made, backwards)
