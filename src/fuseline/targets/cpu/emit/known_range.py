"""What values an index can take, read off the expression that makes it: enough to decide a border that a loop was cut
at."""

from __future__ import annotations

from fuseline.targets.cpu.kernel_ir.types import Loop, Operand, Value

Range = tuple[int, int]
"""The least and the greatest value."""


def known_range(operand: Operand) -> Range | None:
    """The range of an index; None where a size or what is loaded enters."""
    return _Ranges().of(operand)


class _Ranges:
    """The ranges of one expression and of what it is made of: parts that occur many times are looked at once."""

    def __init__(self) -> None:
        self._found: dict[Value, Range | None] = {}

    def of(self, operand: Operand) -> Range | None:
        if isinstance(operand, int):
            return operand, operand
        if operand not in self._found:
            self._found[operand] = self._range(operand)
        return self._found[operand]

    def _range(self, value: Value) -> Range | None:
        if value.op == "index" and isinstance(value.attr, Loop):
            return self._of_loop(value.attr)
        if value.op not in ("add", "sub", "mul", "min", "max") or value.type.lanes != 1:
            return None
        a, b = (self.of(argument) for argument in value.args)
        return _combined(value.op, a, b) if a is not None and b is not None else None

    def _of_loop(self, loop: Loop) -> Range | None:
        lo, hi = self.of(loop.lo), self.of(loop.hi)
        if lo is None or hi is None:
            return None
        last = hi[1] - 1
        if lo[0] == lo[1] and last >= lo[0]:
            last -= (last - lo[0]) % loop.step
        return lo[0], max(last, lo[0])


def _combined(op: str, a: Range, b: Range) -> Range:
    if op == "add":
        return a[0] + b[0], a[1] + b[1]
    if op == "sub":
        return a[0] - b[1], a[1] - b[0]
    if op == "mul":
        ends = [x * y for x in a for y in b]
        return min(ends), max(ends)
    pick = min if op == "min" else max
    return pick(a[0], b[0]), pick(a[1], b[1])
