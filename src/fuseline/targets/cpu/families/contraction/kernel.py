"""The kernel of a multiply-add root: workgroups, panels, tiles, epilogue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from fuseline.analysis.structured import splat_value
from fuseline.ir import dim as d
from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.emit.microkernel import TileReduction
from fuseline.targets.cpu.emit.narrow_microkernel import NarrowReduction, PairReduction
from fuseline.targets.cpu.families.contraction.columns import ColumnReader
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.families.contraction.problem import Axis
from fuseline.targets.cpu.families.contraction.rows import RowReader
from fuseline.targets.cpu.families.contraction.staged_results import in_turn
from fuseline.targets.cpu.families.contraction.tile import Point, TileRows
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand, Value
from fuseline.targets.cpu.tiles import RowSplit

Start = Callable[[Operand], Operand]
"""The first row of a tile, by its number."""


@dataclass(frozen=True, slots=True)
class Block:
    """What one workgroup covers: ranges of lines, tiles and panels, and where the outer axes are."""

    outer: dict[Axis, Operand]
    lines: tuple[Operand, Operand]
    tiles: tuple[Operand, Operand]
    panels: tuple[Operand, Operand]


class ContractionKernel:
    """Builds the kernel of a plan."""

    def __init__(self, plan: ContractionPlan, kernel: KernelBuilder) -> None:
        self.plan, self.kernel = plan, kernel
        root = plan.problem.root.op
        self.emitter = BodyEmitter(kernel, plan.view, {root.results[0]: self._held})
        self.frame = self.emitter.frame
        self.rows = RowReader(plan, self.emitter)
        self.columns = ColumnReader(plan, self.emitter)
        self.accumulator: Value | None = None
        self.stages = plan.stages or kernel.compact
        staged = self.stages or plan.split is None
        self.stage = kernel.scratch(plan.problem.dtype, plan.tile.rows * plan.width) if staged else None

    def _held(self, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
        del index, lanes, active
        assert self.accumulator is not None
        return self.accumulator

    def emit(self) -> None:
        """Fill the page of pad values, then run the workgroups."""
        self.rows.fill_page()
        self.kernel.loop(self.kernel.begin, self.kernel.end, 1, self._workgroup)

    # workgroups -------------------------------------------------------------------------------------------------------

    def _workgroup(self, number: Operand) -> tuple[Operand, ...]:
        block = self._block(number)
        self.rows.enter(block.outer, block.lines, block.tiles)
        self._panels(block)
        return ()

    def _block(self, number: Operand) -> Block:
        plan, kernel = self.plan, self.kernel
        at = self.frame.coordinates(number, self.plan.grid)
        outer = dict(zip(plan.outer, at, strict=False))
        rest = at[len(plan.outer) :]
        panel, line, tile = rest if plan.blocks.columns_outer else (rest[2], rest[0], rest[1])
        lines = plan.lines.extent if plan.lines is not None else 1
        ranges: list[tuple[Operand, Operand]] = []
        counts = (
            (line, plan.blocks.lines, lines),
            (tile, plan.blocks.tiles, plan.tile_count),
            (panel, plan.blocks.panels, plan.panel_count),
        )
        for index, size, count in counts:
            if isinstance(count, int) and size >= count:
                ranges.append((0, count))
                continue
            start = kernel.mul(index, size)
            ranges.append((start, kernel.min(kernel.add(start, size), self.frame.operand(count))))
        return Block(outer, ranges[0], ranges[1], ranges[2])

    # panels -----------------------------------------------------------------------------------------------------------

    def _panels(self, block: Block) -> None:
        """Whole panels in a loop, then the narrower one at the end."""
        plan, kernel = self.plan, self.kernel
        columns = plan.problem.column.extent
        whole = self.frame.operand(d.floor_div(columns, plan.width))
        first, last = block.panels

        def full(panel: Operand) -> tuple[Operand, ...]:
            self._panel(block, panel, [None] * plan.tile.vectors)
            return ()

        kernel.loop(first, kernel.min(last, whole), 1, full)
        if not isinstance(columns, int):
            rest = kernel.sub(self.frame.operand(columns), kernel.mul(whole, plan.width))
            condition = kernel.bitand(kernel.compare("gt", rest, 0), kernel.compare("gt", last, whole))
            actives = [
                kernel.max(kernel.min(kernel.sub(rest, v * plan.lanes), plan.lanes), 0)
                for v in range(plan.tile.vectors)
            ]
            kernel.when(condition, lambda: self._panel(block, whole, actives))
        elif columns % plan.width:
            rest = columns % plan.width
            fixed: Sequence[Operand | None] = [None] * (rest // plan.lanes) + (
                [rest % plan.lanes] if rest % plan.lanes else []
            )
            kernel.when(kernel.compare("gt", last, whole), lambda: self._panel(block, whole, fixed))

    def _panel(self, block: Block, panel: Operand, actives: Sequence[Operand | None]) -> None:
        self.columns.enter(block.outer, panel, actives)

        def line(i: Operand) -> tuple[Operand, ...]:
            self._tiles(block, i, panel, actives)
            return ()

        self.kernel.loop(*block.lines, 1, line)

    def _tiles(self, block: Block, line: Operand, panel: Operand, actives: Sequence[Operand | None]) -> None:
        """The tiles of one line, tall ones first; a runtime extent ends in one tile whose missing rows repeat the last
        and are not stored."""
        plan, kernel = self.plan, self.kernel
        first, last = block.tiles
        split = plan.split

        def tile(
            height: int, start: Start, spread: tuple[int, int] | None, valid: Operand | None = None
        ) -> Callable[..., tuple[Operand, ...]]:
            def body(t: Operand) -> tuple[Operand, ...]:
                self._tile(
                    Point(block.outer, line, start(t), height, valid, spread, self._number(block, line, t)),
                    panel,
                    actives,
                )
                return ()

            return body

        if split is not None:
            for height, start, begin, end in self._runs(split):
                for a, b in self._peeled(height, start, begin, end):
                    spread = (_known(start(a)), _known(start(b - 1)))
                    kernel.loop(kernel.max(first, a), kernel.min(last, b), 1, tile(height, start, spread))
            return
        self._runtime_tiles(block, line, lambda point: self._tile(point, panel, actives))

    def _runtime_tiles(self, block: Block, line: Operand, make: Callable[[Point], None]) -> None:
        """The tiles of a line whose length is only known at run time; missing rows repeat the last and are not
        stored."""
        kernel, rows, (first, last) = self.kernel, self.rows.runtime, block.tiles
        assert rows is not None

        def tile(
            t: Operand, height: int, start: Operand, valid: Operand | None = None, **known: Any
        ) -> tuple[Operand, ...]:
            make(Point(block.outer, line, start, height, valid, number=self._number(block, line, t), **known))
            return ()

        def whole(t: Operand, **known: Any) -> tuple[Operand, ...]:
            return tile(t, rows.height, rows.start(t), **known)

        def cut(t: Operand) -> tuple[Operand, ...]:
            return tile(t, rows.height, rows.start(t), rows.valid(rows.start(t), rows.height))

        def short(t: Operand) -> tuple[Operand, ...]:
            return tile(t, rows.short, rows.short_start(t), rows.valid(rows.short_start(t), rows.short))

        def told_apart(t: Operand) -> tuple[Operand, ...]:
            low = {"meets": (True, False), "spread": (0, rows.last_low)}
            otherwise = partial(kernel.when, rows.is_low(t), lambda: whole(t, **low), lambda: cut(t))
            return kernel.when(rows.is_inside(t), lambda: whole(t, meets=(False, False)), otherwise)

        if rows.interior is not None:
            kernel.loop(first, kernel.min(last, rows.tall_end), 1, told_apart)
        else:
            kernel.loop(first, kernel.min(last, rows.tall), 1, whole)
            kernel.loop(kernel.max(first, rows.tall), kernel.min(last, rows.tall_end), 1, cut)
        if rows.short < rows.height:
            kernel.loop(kernel.max(first, rows.tall), kernel.min(last, rows.short_end), 1, short)

    def _number(self, block: Block, line: Operand, t: Operand) -> Operand:
        """The number of tile `t` of a line among those that share a panel: the workgroup's, or, where each has one
        panel, all of them."""
        kernel, plan = self.kernel, self.plan
        if plan.blocks.panels == 1 and plan.blocks.columns_outer:
            return kernel.add(kernel.mul(line, self.frame.operand(plan.tile_count)), t)
        return kernel.add(
            kernel.mul(kernel.sub(line, block.lines[0]), plan.blocks.tiles), kernel.sub(t, block.tiles[0])
        )

    def _runs(self, split: RowSplit) -> list[tuple[int, Start, int, int]]:
        """The tall and the short tiles: height, first row by number, range of numbers."""
        kernel, h, tall = self.kernel, split.height, split.tall
        runs: list[tuple[int, Start, int, int]] = [(h, lambda t: kernel.mul(t, h), 0, tall)]
        if split.short:
            runs.append((h - 1, lambda t: kernel.add(kernel.mul(t, h - 1), tall), tall, split.count))
        return runs

    def _peeled(self, height: int, start: Start, begin: int, end: int) -> list[tuple[int, int]]:
        """Tiles `begin` to `end` as runs that meet padding at the low side, nowhere, at the high side; one run where
        that does not pay."""
        if not self.rows.peels or self.kernel.compact:
            return [(begin, end)]
        low, high = begin, end
        while low < end and self.rows.meets(_known(start(low)), height)[0]:
            low += 1
        while high > low and self.rows.meets(_known(start(high - 1)), height)[1]:
            high -= 1
        return [(a, b) for a, b in ((begin, low), (low, high), (high, end)) if a < b]

    # one tile ---------------------------------------------------------------------------------------------------------

    def _tile(self, point: Point, panel: Operand, actives: Sequence[Operand | None]) -> None:
        accumulators = self._starts(point, panel, actives)
        for rows in self.rows.at(point):
            kind = PairReduction if self.plan.pairs else NarrowReduction if self.plan.problem.narrow else TileReduction
            reduction = kind(
                self.kernel, rows.addresses, rows.axes, self.columns.reader(), (point.height, len(actives)),
                page=self.rows.page, skips_padding=self.rows.pad == 0, pulled=rows.pulled,
                ahead=self.columns.ahead(point.number),
            )  # fmt: skip
            accumulators = reduction.emit(accumulators, rows.always)
        if self.stage is not None and (self.stages or point.valid is not None):
            self._store_staged(self.stage, point, panel, actives, accumulators)
            return
        for row in range(point.height):
            held = accumulators[row * len(actives) : (row + 1) * len(actives)]
            self._store(point, point.position(self.kernel, row), panel, actives, held)

    def _starts(self, point: Point, panel: Operand, actives: Sequence[Operand | None]) -> list[Value]:
        """What the accumulators start from: the inits of the root."""
        root, plan = self.plan.problem.root, self.plan
        splat = splat_value(root.outputs[0])
        if splat is not None:
            return [self.kernel.const(splat, plan.problem.dtype, plan.lanes)] * (point.height * len(actives))
        out: list[Value] = []
        for row in range(point.height):
            for v, active in enumerate(actives):
                loops = self._loops(point, point.position(self.kernel, row), panel, v)
                index = self.emitter.through(root.output_maps[0], loops, plan.lanes)
                out.append(self.emitter.value_at(root.outputs[0], index, plan.lanes, active))
        return out

    def _loops(self, point: Point, position: Operand, panel: Operand, v: Operand) -> list[AnyIndex]:
        """The root's loops at vector `v` of the row at `position`; reduction loops at 0."""
        plan, kernel = self.plan, self.kernel
        loops = TileRows.loops(self.emitter, plan, point, position)
        column = kernel.add(kernel.mul(panel, plan.width), kernel.mul(v, plan.lanes))
        loops[plan.problem.column.inner] = Index(column, 1 if plan.lanes > 1 else 0)
        return loops

    def _store_staged(
        self, stage: MemRef, point: Point, panel: Operand, actives: Sequence[Operand | None], held: Sequence[Value]
    ) -> None:
        """Put the accumulators aside, then finish and store them row by row in a loop: the epilogue's code is there
        once."""
        kernel, lanes = self.kernel, self.plan.lanes
        width = len(actives) * lanes
        for i, value in enumerate(held):
            kernel.store(stage, i * lanes, value, align=kernel.machine.vector_bytes)

        def row(r: Operand) -> tuple[Operand, ...]:
            position, first = kernel.add(point.start, r), kernel.mul(r, width)
            if kernel.compact:
                in_turn(kernel, stage, first, lanes, actives, partial(self._store_vector, point, position, panel))
                return ()
            places = [kernel.add(first, v * lanes) for v in range(len(actives))]
            values = [kernel.load(stage, place, lanes, align=kernel.machine.vector_bytes) for place in places]
            self._store(point, position, panel, actives, values)
            return ()

        kernel.loop(0, point.height if point.valid is None else point.valid, 1, row)

    def _store(
        self, point: Point, position: Operand, panel: Operand, actives: Sequence[Operand | None], held: Sequence[Value]
    ) -> None:
        for v, active in enumerate(actives):
            self._store_vector(point, position, panel, v, active, held[v])

    def _store_vector(
        self, point: Point, position: Operand, panel: Operand, v: Operand, active: Operand | None, held: Value
    ) -> None:
        loops = self._loops(point, position, panel, v)
        self.accumulator = held
        for path in self.plan.paths:
            index = path.index(self.frame, loops, self.plan.lanes)
            value = self.emitter.value_at(path.value, index, self.plan.lanes, active)
            path.store(self.frame, index, value, active)


def _known(operand: Operand) -> int:
    """A row that is known now: the first of a tile of known number."""
    assert isinstance(operand, int)
    return operand
