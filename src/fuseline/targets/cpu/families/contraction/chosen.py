"""Multiply-add roots whose tile, blocks or order of the grid are chosen from outside: what can be followed, and what
may be chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from fuseline.ir.kernel_choice import KernelChoice
from fuseline.targets.cpu.families.contraction.axes import estimated
from fuseline.targets.cpu.families.contraction.loops import ContractionLoops
from fuseline.targets.cpu.families.contraction.plan import (
    ContractionPlan,
    plan_contraction,
    steps_taken,
    temporaries_of,
)
from fuseline.targets.cpu.families.family import Alternative
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.tiles import MAX_ROWS, MAX_VECTORS, Blocks, Tile, fits, tile_cycles
from fuseline.targets.target import Refusal

MOST_TILES = 3
"""Register tiles that are offered beside the chosen one, of different widths, the best by the model. By it many tiles
of a width are equal, and what it does not know of (loads of columns, rests of rows) differs most between widths."""


def plan_chosen(loops: ContractionLoops, machine: Machine, choice: KernelChoice | None) -> ContractionPlan | Refusal:
    """The plan for these loops that follows a choice, or why there is none."""
    if choice is None:
        return plan_contraction(loops, machine)
    if choice.filtering or choice.image:
        what = "filtering" if choice.filtering else "copy of an image"
        return Refusal("choice-algorithm", f"{choice.text}: a product or direct convolution has no {what}")
    tile = _asked_tile(loops, machine, choice)
    if isinstance(tile, Refusal):
        return tile
    plan = plan_contraction(loops, machine, tile)
    if isinstance(plan, Refusal):
        return plan
    if tile is not None and plan.tile != tile:
        return Refusal("choice-tile", f"{choice.text}: panels of {plan.width} columns are the widest that fit here")
    wanted = _asked_blocks(plan, choice)
    if wanted != plan.blocks:
        blocked = plan_contraction(loops, machine, tile, blocks=wanted)
        assert not isinstance(blocked, Refusal)
        refused = _refused_blocks(plan, blocked, wanted, choice)
        if refused is not None:
            return refused
        plan = blocked
    return replace(plan, choice=choice.text)


def _asked_tile(loops: ContractionLoops, machine: Machine, choice: KernelChoice) -> Tile | Refusal | None:
    """The register tile of a choice, None for that of the model."""
    if choice.tile is None:
        return None
    (rows, columns), lanes = choice.tile, machine.lanes(loops.dtype)
    if columns % lanes or columns // lanes > MAX_VECTORS or rows > MAX_ROWS:
        most = f"{MAX_ROWS} rows by {MAX_VECTORS} vectors of {lanes} columns"
        return Refusal("choice-tile", f"{choice.text}: tiles have up to {most}")
    if not fits(rows, columns // lanes, machine, temporaries_of(loops)):
        return Refusal("choice-tile", f"{choice.text}: it does not fit {machine.vector_registers} registers")
    most_rows, most_vectors = extents_of(loops, lanes)
    if rows > (most_rows or rows) or columns // lanes > (most_vectors or columns):
        return Refusal("choice-tile", f"{choice.text}: the loops are shorter than the tile")
    return Tile(rows, columns // lanes)


def extents_of(loops: ContractionLoops, lanes: int) -> tuple[int | None, int | None]:
    """How many rows and vectors of columns there are; None where only the run knows."""
    rows, columns = loops.rows[-1].extent if loops.rows else 1, loops.column.extent
    return rows if isinstance(rows, int) else None, -(-columns // lanes) if isinstance(columns, int) else None


def _asked_blocks(plan: ContractionPlan, choice: KernelChoice) -> Blocks:
    """The blocks of a choice, those of the model where it has none."""
    own = plan.blocks
    lines, tiles, panels = choice.blocks or (own.lines, own.tiles, own.panels)
    return Blocks(lines, tiles, panels, choice.order == "columns" if choice.order else own.columns_outer)


def _refused_blocks(
    plan: ContractionPlan, blocked: ContractionPlan, wanted: Blocks, choice: KernelChoice
) -> Refusal | None:
    """Why blocks are none for a plan, `blocked` the one that was made for them."""
    if blocked.blocks != wanted:
        return Refusal("choice-blocks", f"{choice.text}: the rows and sums of such a block do not fit the scratch")
    most = block_counts(plan)
    if any(size > count for size, count in zip((wanted.lines, wanted.tiles, wanted.panels), most, strict=True)):
        return Refusal("choice-blocks", f"{choice.text}: there are {'x'.join(map(str, most))} in all")
    return None


def block_counts(plan: ContractionPlan) -> tuple[int, int, int]:
    """Lines, tiles of a line and panels that there are, at the sizes that are assumed."""
    lines = estimated(plan.lines.extent) if plan.lines is not None else 1
    return lines, estimated(plan.tile_count), estimated(plan.panel_count)


def contraction_alternatives(plan: ContractionPlan, machine: Machine) -> Iterator[Alternative]:
    """Tiles and blocks that a plan may have in place of its own."""
    yield from islice(_tile_alternatives(plan, machine), MOST_TILES)
    if not plan.view.serial:  # inside a larger kernel there is nothing to share out, and rows fit the caches
        yield from _block_alternatives(plan, machine)


def _tile_alternatives(plan: ContractionPlan, machine: Machine) -> Iterator[Alternative]:
    """The best other tile of each width, the best first."""
    loops, own = plan.loops, _time_of(plan, plan.tile)
    _, vectors = extents_of(loops, plan.lanes)
    widths = range(1, min(MAX_VECTORS, vectors or MAX_VECTORS) + 1)
    best = [found for wide in widths if (found := _best_of_width(plan, machine, wide)) is not None]
    for tile in sorted(best, key=lambda tile: (_time_of(plan, tile), -tile.rows * tile.vectors, -tile.rows)):
        choice = KernelChoice(tile=(tile.rows, tile.vectors * plan.lanes))
        if not isinstance(plan_chosen(loops, machine, choice), Refusal):
            yield Alternative(choice.text, _time_of(plan, tile) / own)


def _best_of_width(plan: ContractionPlan, machine: Machine, wide: int) -> Tile | None:
    """The best tile of a width that does not cut the rows as the plan's own does: that would be the same kernel."""
    rows, _ = extents_of(plan.loops, plan.lanes)
    fitting = [
        Tile(height, wide)
        for height in range(1, min(MAX_ROWS, rows or MAX_ROWS) + 1)
        if fits(height, wide, machine, temporaries_of(plan.loops))
    ]
    others = [tile for tile in fitting if _cut(plan, tile) != _cut(plan, plan.tile)]
    return min(others, key=lambda tile: (_time_of(plan, tile), -tile.rows), default=None)


def _cut(plan: ContractionPlan, tile: Tile) -> tuple[object, int]:
    return replace(plan, tile=tile).split or tile.rows, tile.vectors


def _time_of(plan: ContractionPlan, tile: Tile) -> float:
    loops = plan.loops
    rows = loops.rows[-1].extent if loops.rows else 1
    columns = loops.column.extent
    known = [extent if isinstance(extent, int) else None for extent in (rows, columns)]
    return tile_cycles(known[0], known[1], tile, plan.lanes, steps_taken(loops))


def _block_alternatives(plan: ContractionPlan, machine: Machine) -> Iterator[Alternative]:
    """The other order of the grid, and blocks of half as many and of twice as many rows: no model tells them apart."""
    own = plan.blocks
    lines, tiles, panels = block_counts(plan)
    groups = (-(-lines // own.lines) * -(-tiles // own.tiles), -(-panels // own.panels))
    tried: list[KernelChoice] = []
    if min(groups) > 1:
        tried.append(KernelChoice(order="rows" if own.columns_outer else "columns"))
    if own.tiles > 1:
        tried.append(KernelChoice(blocks=(own.lines, -(-own.tiles // 2), own.panels)))
    elif own.lines > 1:
        tried.append(KernelChoice(blocks=(-(-own.lines // 2), own.tiles, own.panels)))
    if own.tiles < tiles:
        tried.append(KernelChoice(blocks=(own.lines, min(2 * own.tiles, tiles), own.panels)))
    elif own.lines < lines:
        tried.append(KernelChoice(blocks=(min(2 * own.lines, lines), own.tiles, own.panels)))
    for choice in tried:
        if not isinstance(plan_chosen(plan.loops, machine, choice), Refusal):
            yield Alternative(choice.text)
