"""Where the rows of one tile are: the place of a tile, the root's loops at a row, addresses and edge checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fuseline.targets.cpu.access import AnyIndex, Frame, Index
from fuseline.targets.cpu.evaluator import Evaluator
from fuseline.targets.cpu.families.contraction_access import Bound
from fuseline.targets.cpu.families.contraction_plan import ContractionPlan
from fuseline.targets.cpu.families.contraction_problem import Axis
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Address, Operand
from fuseline.targets.cpu.microkernel import EdgeCheck, ReductionAxis, Rows


@dataclass(frozen=True, slots=True)
class Point:
    """The place of a tile: outer axes, line, first row, height. `valid`: how many rows exist (None: all); a missing row repeats the last.

    `spread` bounds the first row over all tiles that this code serves; None where it is not known.
    """

    outer: Mapping[Axis, Operand]
    line: Operand
    start: Operand
    height: int
    valid: Operand | None
    spread: tuple[int, int] | None

    def position(self, kernel: KernelBuilder, row: int) -> Operand:
        """The index of a row along the tiled axis."""
        if self.valid is None or row == 0:
            return kernel.add(self.start, row)
        return kernel.add(self.start, kernel.min(kernel.sub(self.valid, 1), row))


@dataclass(frozen=True, slots=True)
class TileRows:
    """The rows of a tile for the microkernel: addresses (or a supplier of elements), reduction axes, checks that no reduction loop changes."""

    addresses: Sequence[Address] | None
    axes: Sequence[ReductionAxis]
    always: Sequence[EdgeCheck] = ()
    pulled: Rows | None = None

    @staticmethod
    def loops(evaluator: Evaluator, plan: ContractionPlan, point: Point, position: Operand) -> list[AnyIndex]:
        """The root's loops at a row; column and reduction loops are at 0."""
        loops: list[AnyIndex] = [Index(0)] * plan.problem.root.rank
        places = dict(point.outer)
        if plan.lines is not None:
            places[plan.lines] = point.line
        if plan.tiled is not None:
            places[plan.tiled] = position
        for axis, value in places.items():
            place(evaluator.frame, loops, axis, Index(value))
        return loops


def place(frame: Frame, loops: list[AnyIndex], axis: Axis, value: Index) -> None:
    """Set the root's loops of `axis` to where `value` along it is."""
    for loop, coordinate in zip(axis.loops, frame.split(value, axis.sizes), strict=True):
        loops[loop] = coordinate


class Edges:
    """The edge checks of tiles, from the bounds of the padded operand."""

    def __init__(self, plan: ContractionPlan, frame: Frame) -> None:
        self.plan, self.frame = plan, frame
        self.reduction = {axis.inner: axis for axis in plan.problem.reduction}
        self.inner_tiled = plan.tiled.inner if plan.tiled is not None else None

    def meets(self, start: int, height: int) -> tuple[bool, bool]:
        """Whether a tile that starts at row `start` can meet padding along the tiled axis: at the low side, at the high side."""
        low = high = False
        for bound in self.plan.problem.lhs.bounds:
            if self.inner_tiled in bound.coordinate.terms:
                low = low or self._crosses(bound, Point({}, 0, start, height, None, (start, start)), 0)[0]
                high = high or self._crosses(bound, Point({}, 0, start, height, None, (start, start)), height - 1)[1]
        return low, high

    def of(self, bound: Bound, point: Point) -> EdgeCheck | None:
        """The check of one bound for the rows of a tile; None where no row can leave it."""
        height = point.height
        moves = self.inner_tiled is not None and self.inner_tiled in bound.coordinate.terms
        bases = tuple(self._base(bound, point, row) for row in range(height if moves else 1)) * (1 if moves else height)
        flags = [self._crosses(bound, point, row) for row in range(height)]
        if not any(low or high for low, high in flags):
            return None
        axis = next((loop for loop in bound.coordinate.terms if loop in self.reduction), None)
        coefficient = bound.coordinate.terms[axis] if axis is not None else 0
        assert isinstance(coefficient, int)
        size = self.frame.operand(bound.size)
        return EdgeCheck(bases, coefficient, size, tuple(low for low, _ in flags), tuple(high for _, high in flags), not moves)

    def _base(self, bound: Bound, point: Point, row: int) -> Operand:
        kernel, frame = self.frame.kernel, self.frame
        total = frame.operand(bound.coordinate.constant)
        for loop, coefficient in bound.coordinate.terms.items():
            if loop not in self.reduction:
                total = kernel.add(total, kernel.mul(self._at(loop, point, row), frame.operand(coefficient)))
        return total

    def _at(self, loop: int, point: Point, row: int) -> Operand:
        plan = self.plan
        if loop == self.inner_tiled:
            return point.position(self.frame.kernel, row)
        if plan.lines is not None and loop == plan.lines.inner:
            return point.line
        return next((value for axis, value in point.outer.items() if axis.inner == loop), 0)

    def _crosses(self, bound: Bound, point: Point, row: int) -> tuple[bool, bool]:
        """Whether the row can lie below 0, and at or beyond the size, anywhere in its tiles' reach."""
        constant, size = bound.coordinate.constant, bound.size
        if not isinstance(constant, int) or not isinstance(size, int):
            return True, True
        low = high = constant
        for loop, coefficient in bound.coordinate.terms.items():
            reach = self._reach(loop, point, row)
            if reach is None or not isinstance(coefficient, int):
                return True, True
            ends = (coefficient * reach[0], coefficient * reach[1])
            low, high = low + min(ends), high + max(ends)
        return low < 0, high >= size

    def _reach(self, loop: int, point: Point, row: int) -> tuple[int, int] | None:
        if loop == self.inner_tiled:
            return None if point.spread is None else (point.spread[0] + row, point.spread[1] + row)
        extent = self.plan.problem.extents[loop]
        return (0, extent - 1) if isinstance(extent, int) else None
