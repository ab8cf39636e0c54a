"""The tiles of a line whose length only the run knows, in loops: each is made for one height, by number."""

from __future__ import annotations

from functools import partial
from typing import Protocol

from fuseline.targets.cpu.combinators.split import Range
from fuseline.targets.cpu.families.contraction.runtime_rows import ExactRows, PaddedRows
from fuseline.targets.cpu.kernel_ir.types import Operand


class MakeTile(Protocol):
    """Makes tile `number`, `height` rows from `start` on. `valid`: how many exist (None: all); the others as in
    `tile.RowTile`."""

    def __call__(
        self,
        number: Operand,
        height: int,
        start: Operand,
        *,
        valid: Operand | None = None,
        start_range: tuple[int, int] | None = None,
        meets: tuple[bool, bool] = (True, True),
        behind: Operand = 0,
    ) -> tuple[Operand, ...]:
        """What a loop of tiles hands on: nothing."""
        ...


def runtime_tiles(rows: ExactRows | PaddedRows, tiles: Range, make: MakeTile) -> None:
    """Those of a workgroup, by their numbers `tiles`: what the whole ones leave comes at the end."""
    if isinstance(rows, ExactRows):
        _exact_tiles(rows, tiles, make)
    else:
        _padded_tiles(rows, tiles, make)


def _exact_tiles(rows: ExactRows, tiles: Range, make: MakeTile) -> None:
    kernel, (first, last) = rows.kernel, tiles
    kernel.loop(first, kernel.min(last, rows.whole), 1, lambda t: make(t, rows.height, rows.start(t)))
    behind = kernel.max(first, rows.whole)
    for part in rows.parts:
        end = kernel.min(last, kernel.add(rows.whole, rows.has(part)))
        kernel.loop(behind, end, 1, partial(_part, rows, make, part))


def _part(rows: ExactRows, make: MakeTile, part: int, tile: Operand) -> tuple[Operand, ...]:
    """What whole tiles leave is one tile by its number."""
    behind = rows.larger_parts(part)
    return make(tile, part, rows.kernel.add(rows.start(tile), behind), behind=behind)


def _padded_tiles(rows: PaddedRows, tiles: Range, make: MakeTile) -> None:
    """Missing rows repeat the last and are not stored."""
    kernel, (first, last) = rows.kernel, tiles

    def whole(
        t: Operand, meets: tuple[bool, bool] = (True, True), start_range: tuple[int, int] | None = None
    ) -> tuple[Operand, ...]:
        return make(t, rows.height, rows.start(t), start_range=start_range, meets=meets)

    def cut(t: Operand) -> tuple[Operand, ...]:
        return make(t, rows.height, rows.start(t), valid=rows.valid(rows.start(t), rows.height))

    def short(t: Operand) -> tuple[Operand, ...]:
        return make(t, rows.short, rows.short_start(t), valid=rows.valid(rows.short_start(t), rows.short))

    def told_apart(t: Operand) -> tuple[Operand, ...]:
        low = partial(whole, t, (True, False), (0, rows.last_low))
        otherwise = partial(kernel.when, rows.is_low(t), low, lambda: cut(t))
        return kernel.when(rows.is_inside(t), lambda: whole(t, (False, False)), otherwise)

    if rows.interior is not None:
        kernel.loop(first, kernel.min(last, rows.tall_end), 1, told_apart)
    else:
        kernel.loop(first, kernel.min(last, rows.tall), 1, whole)
        kernel.loop(kernel.max(first, rows.tall), kernel.min(last, rows.tall_end), 1, cut)
    if rows.short < rows.height:
        kernel.loop(kernel.max(first, rows.tall), kernel.min(last, rows.short_end), 1, short)
