"""Where the rows of one tile are: the place of a tile, the root's loops at a row, addresses and edge checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fuseline.analysis.linear_forms import Linear
from fuseline.analysis.operand_access import Bound, Quotient
from fuseline.targets.cpu.combinators.split import Range
from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.emit.folded_address import Folding
from fuseline.targets.cpu.emit.microkernel import Rows
from fuseline.targets.cpu.emit.reduction_axes import EdgeCheck, ReductionAxis, RoundedTerm
from fuseline.targets.cpu.families.contraction.axes import Axis
from fuseline.targets.cpu.families.contraction.loops import RowSegment
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.families.contraction.runtime_rows import Interior, interior_of
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Address, Operand


@dataclass(frozen=True, slots=True)
class Block:
    """What one workgroup covers: ranges of lines, tiles and panels, and where the outer axes are."""

    outer: dict[Axis, Operand]
    lines: Range
    tiles: Range
    panels: Range


@dataclass(frozen=True, slots=True)
class RowTile:
    """The place of a tile: outer axes, line, first row, height. `valid`: how many rows exist (None: all); a missing row
    repeats the last.

    `start_range` bounds the first row over all tiles that this code serves; None where it is not known. `number` counts
    the tiles that share a panel, `tile` those of a line; where several have one number, `behind` are the rows of those
    before. `meets`: whether rows may meet padding along the tiled axis, at the low and at the high side.
    """

    outer: Mapping[Axis, Operand]
    line: Operand
    start: Operand
    height: int
    valid: Operand | None = None
    start_range: tuple[int, int] | None = None
    number: Operand = 0
    meets: tuple[bool, bool] = (True, True)
    tile: Operand = 0
    behind: Operand = 0

    def position(self, kernel: KernelBuilder, row: Operand) -> Operand:
        """The index of a row along the tiled axis; one counted at run time exists."""
        if self.valid is None or row == 0 or not isinstance(row, int):
            return kernel.add(self.start, row)
        return kernel.add(self.start, kernel.min(kernel.sub(self.valid, 1), row))


@dataclass(frozen=True, slots=True)
class TileRows:
    """The rows of a tile for the microkernel: addresses (or a source of elements), reduction axes, checks that no
    reduction loop changes."""

    addresses: Sequence[Address] | None
    axes: Sequence[ReductionAxis]
    always: Sequence[EdgeCheck] = ()
    pulled: Rows | None = None

    @staticmethod
    def loops(emitter: BodyEmitter, plan: ContractionPlan, tile: RowTile, position: Operand) -> list[AnyIndex]:
        """The root's loops at a row; column and reduction loops are at 0."""
        loops: list[AnyIndex] = [Index(0)] * plan.loops.root.rank
        places = dict(tile.outer)
        if plan.lines is not None:
            places[plan.lines] = tile.line
        if plan.tiled is not None:
            places[plan.tiled] = position
        for axis, value in places.items():
            place(emitter.buffers, loops, axis, Index(value))
        return loops


def place(buffers: DispatchBuffers, loops: list[AnyIndex], axis: Axis, value: Index) -> None:
    """Set the root's loops of `axis` to where `value` along it is."""
    for loop, coordinate in zip(axis.loops, buffers.delinearize(value, axis.sizes), strict=True):
        loops[loop] = coordinate


class Edges:
    """The edge checks of tiles, from the bounds of a padded segment; and where its row addresses round."""

    def __init__(self, plan: ContractionPlan, buffers: DispatchBuffers, segment: RowSegment) -> None:
        self.plan, self.buffers, self.segment = plan, buffers, segment
        self.reduction = {axis.inner: axis for axis in segment.reduction}
        self.inner_tiled = plan.tiled.inner if plan.tiled is not None else None

    def meets(self, start: int, height: int) -> tuple[bool, bool]:
        """Whether a tile that starts at row `start` can meet padding along the tiled axis: at the low side, at the high
        side."""
        low = high = False
        for bound in self.segment.access.bounds:
            if self.inner_tiled in bound.coordinate.terms:
                low = low or self._crosses(bound, RowTile({}, 0, start, height, None, (start, start)), 0)[0]
                high = high or self._crosses(bound, RowTile({}, 0, start, height, None, (start, start)), height - 1)[1]
        return low, high

    def interior(self) -> Interior | None:
        """The whole tiles, by number, whose rows stay within all bounds along the tiled axis; None where that is not
        known of each."""
        if self.inner_tiled is None:
            return None
        extents = {axis: self.segment.extents[axis] for axis in self.reduction}
        return interior_of(self.segment.access.bounds, self.inner_tiled, extents, self.plan.tile.rows)

    def of(self, bound: Bound, tile: RowTile) -> EdgeCheck | None:
        """The check of one bound for the rows of a tile; None where no row can leave it."""
        height = tile.height
        moves = self.inner_tiled is not None and self.inner_tiled in bound.coordinate.terms
        bases = self._bases(bound.coordinate, tile)
        flags = [self._crosses(bound, tile, row) for row in range(height)]
        if moves:
            flags = [(low and tile.meets[0], high and tile.meets[1]) for low, high in flags]
        if not any(low or high for low, high in flags):
            return None
        if self.buffers.kernel.keeps_edges:
            flags = [(True, True)] * height
        size = self.buffers.operand(bound.size)
        coefficient = self._coefficient(bound.coordinate)
        low, high = tuple(low for low, _ in flags), tuple(high for _, high in flags)
        ordered, folding = self._is_ordered(bound), self._folding(bound)
        return EdgeCheck(bases, coefficient, size, low, high, shared=not moves, ordered=ordered, folding=folding)

    def _folding(self, bound: Bound) -> Folding | None:
        """Where rows beyond the bound are read; None for padding."""
        border, operand = bound.border, self.buffers.operand
        return Folding(border.mode, operand(bound.size), operand(border.stride)) if border is not None else None

    def _is_ordered(self, bound: Bound) -> bool:
        """Whether no row of a tile is at a smaller coordinate than the one before."""
        step = bound.coordinate.terms.get(self.inner_tiled, 0) if self.inner_tiled is not None else 0
        return isinstance(step, int) and step >= 0

    def rounded(self, quotient: Quotient, tile: RowTile) -> RoundedTerm:
        """A quotient in the addresses of the rows of a tile."""
        bases = self._bases(quotient.numerator, tile)
        return RoundedTerm(
            bases, self._coefficient(quotient.numerator), quotient.divisor, self.buffers.operand(quotient.stride)
        )

    def loop(self, form: Linear) -> int | None:
        """The reduction loop in a coordinate; there is at most one."""
        return next((atom for atom in form.terms if isinstance(atom, int) and atom in self.reduction), None)

    def _coefficient(self, form: Linear) -> int:
        loop = self.loop(form)
        coefficient = form.terms[loop] if loop is not None else 0
        assert isinstance(coefficient, int)
        return coefficient

    def _bases(self, form: Linear, tile: RowTile) -> tuple[Operand, ...]:
        """A coordinate of every row, the reduction aside."""
        if self.inner_tiled is not None and self.inner_tiled in form.terms:
            return tuple(self._base(form, tile, row) for row in range(tile.height))
        return (self._base(form, tile, 0),) * tile.height

    def _base(self, form: Linear, tile: RowTile, row: int) -> Operand:
        kernel, buffers = self.buffers.kernel, self.buffers
        total = buffers.operand(form.constant)
        for loop, coefficient in form.terms.items():
            if isinstance(loop, int) and loop not in self.reduction:
                total = kernel.add(total, kernel.mul(self._at(loop, tile, row), buffers.operand(coefficient)))
        return total

    def _at(self, loop: int, tile: RowTile, row: int) -> Operand:
        plan = self.plan
        if loop == self.inner_tiled:
            return tile.position(self.buffers.kernel, row)
        if plan.lines is not None and loop == plan.lines.inner:
            return tile.line
        return next((value for axis, value in tile.outer.items() if axis.inner == loop), 0)

    def _crosses(self, bound: Bound, tile: RowTile, row: int) -> tuple[bool, bool]:
        """Whether the row can lie below 0, and at or beyond the size, anywhere in its tiles' reach."""
        constant, size = bound.coordinate.constant, bound.size
        if not isinstance(constant, int):
            return True, True
        low = high = constant
        for loop, coefficient in bound.coordinate.terms.items():
            reach = self._reach(loop, tile, row) if isinstance(loop, int) else None
            if reach is None or not isinstance(coefficient, int):
                return True, True
            ends = (coefficient * reach[0], coefficient * reach[1])
            low, high = low + min(ends), high + max(ends)
        return low < 0, not isinstance(size, int) or high >= size

    def _reach(self, loop: int, tile: RowTile, row: int) -> tuple[int, int] | None:
        if loop == self.inner_tiled:
            return None if tile.start_range is None else (tile.start_range[0] + row, tile.start_range[1] + row)
        extent = self.segment.extents[loop]
        return (0, extent - 1) if isinstance(extent, int) else None
