"""Windows whose tile, blocks or copy of the image are chosen from outside: what can be followed, and what may be
chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.kernel_choice import KernelChoice
from fuseline.targets.cpu.families.contraction.axes import estimated
from fuseline.targets.cpu.families.family import Alternative
from fuseline.targets.cpu.families.window.copies import CopiedWindowPlan, is_crowded, uncrowded, with_copy
from fuseline.targets.cpu.families.window.groups import plan_groups
from fuseline.targets.cpu.families.window.loops import WindowLoops, strip_loops
from fuseline.targets.cpu.families.window.plan import (
    MOST_PIXELS,
    MOST_VECTORS,
    WindowPlan,
    columns_seen,
    plan_window,
    shares_columns,
    window_pixels,
)
from fuseline.targets.cpu.families.window.planes import planes_of
from fuseline.targets.cpu.isa.core_rates import FMA_PER_CYCLE, LOADS_PER_CYCLE
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.tiles import Blocks, split_rows
from fuseline.targets.target import Refusal

MOST_TILES = 3
"""Tiles that are offered beside the chosen one, of different widths, the best by the model."""

FILTER_REGISTERS = 5
"""The most of a row of the filter that stays in registers."""

P = TypeVar("P", bound=WindowPlan)


def plan_chosen(loops: WindowLoops, machine: Machine, choice: KernelChoice | None) -> WindowPlan | Refusal:
    """The plan for these loops that follows a choice, or why there is none."""
    if choice is None:
        plan = plan_window(loops, machine)
        return plan if isinstance(plan, Refusal) else uncrowded(plan, machine)
    tile = asked_tile(loops, machine, choice)
    if isinstance(tile, Refusal):
        return tile
    plan = plan_window(loops, machine, tile)
    if isinstance(plan, Refusal):
        return Refusal("choice-tile", f"{choice.text}: {plan.detail}") if tile is not None else plan
    if choice.image == "copied":
        copied = with_copy(plan, machine) if plan.vectors == 1 else None
        if copied is None:
            return Refusal("choice-image", f"{choice.text}: tiles of one vector, stepping plainly, read a copy")
        return with_blocks(copied, choice)
    return with_blocks(plan if tile is not None or choice.image else uncrowded(plan, machine), choice)


def groups_chosen(loops: WindowLoops, machine: Machine, choice: KernelChoice | None) -> WindowPlan | Refusal:
    """The same for convolutions in narrow groups, whose image is always copied."""
    if choice is None:
        return plan_groups(loops, machine)
    if choice.image == "stored":
        return Refusal("choice-image", f"{choice.text}: groups read a copy of the image")
    tile = asked_tile(loops, machine, choice)
    if isinstance(tile, Refusal):
        return tile
    if tile is not None and tile[1] != 1:
        return Refusal("choice-tile", f"{choice.text}: a tile of groups is one vector wide")
    plan = plan_groups(loops, machine, tile[0] if tile is not None else None)
    return plan if isinstance(plan, Refusal) else with_blocks(plan, choice)


def strips_chosen(view: DispatchView, machine: Machine, choice: KernelChoice | None) -> WindowPlan | Refusal:
    """The same of a window over an image that is evaluated strip by strip."""
    found = strip_loops(view)
    if isinstance(found, Refusal):
        return found
    loops, strips = found
    if strips.kind == "pixels":
        return planes_of(loops, machine)
    if choice is not None and choice.image == "stored":
        return Refusal("choice-image", f"{choice.text}: the image is evaluated into a copy")
    tile = asked_tile(loops, machine, choice) if choice is not None else None
    if isinstance(tile, Refusal):
        return tile
    plan = plan_window(loops, machine, (tile[0] if tile is not None else window_pixels(loops, machine), 1))
    if isinstance(plan, Refusal):
        return plan
    copied = with_copy(plan, machine, turned=strips.kind == "turned")
    if copied is None:
        return Refusal("image-computed", "the window does not step plainly over what is evaluated")
    return copied if choice is None else with_blocks(copied, choice)


def asked_tile(loops: WindowLoops, machine: Machine, choice: KernelChoice) -> tuple[int, int] | Refusal | None:
    """Pixels and vectors of the tile of a choice, None for those of the model."""
    if choice.filtering or choice.order:
        what = "filtering" if choice.filtering else "order of its grid"
        return Refusal("choice-algorithm", f"{choice.text}: a window has no {what}")
    if choice.tile is None:
        return None
    (pixels, channels), lanes = choice.tile, machine.lanes(loops.dtype)
    if channels % lanes or channels // lanes > MOST_VECTORS or pixels > MOST_PIXELS:
        most = f"{MOST_PIXELS} pixels by {MOST_VECTORS} vectors of {lanes} channels"
        return Refusal("choice-tile", f"{choice.text}: tiles have up to {most}")
    if not _fits(loops, machine, (pixels, channels // lanes)):
        return Refusal("choice-tile", f"{choice.text}: it does not fit {machine.vector_registers} registers")
    if pixels > _pixels(loops) or channels // lanes > _vectors(loops, lanes):
        return Refusal("choice-tile", f"{choice.text}: the line, or the channels, are shorter than the tile")
    return pixels, channels // lanes


def with_blocks(plan: P, choice: KernelChoice) -> P | Refusal:
    """The plan with the blocks of a choice."""
    if choice.blocks:
        lines, tiles, panels = choice.blocks
        most = block_counts(plan)
        if tiles != 1 or lines > most[0] or panels > most[1]:
            return Refusal("choice-blocks", f"{choice.text}: there are {most[0]}x1x{most[1]} in all")
        if plan.stages_filter and panels > plan.blocks.panels:
            return Refusal("choice-blocks", f"{choice.text}: the filter of so many panels does not fit the scratch")
        plan = replace(plan, blocks=Blocks(lines, 1, panels, False))
        plan = replace(plan, workgroups=d.product(plan.grid))
    return replace(plan, choice=choice.text)


def block_counts(plan: WindowPlan) -> tuple[int, int]:
    """Lines and panels of channels that there are at the sizes that are assumed: strips and bunches of a copy."""
    if isinstance(plan, CopiedWindowPlan):
        return estimated(plan.strips), plan.bunches
    lines = estimated(plan.loops.line.extent) if plan.loops.line is not None else 1
    return lines, estimated(plan.panel_count)


def window_alternatives(plan: WindowPlan, machine: Machine) -> Iterator[Alternative]:
    """Tiles, a copy or none, and blocks that a plan may have in place of its own."""
    loops = plan.loops
    tried = [*islice(_tiles(plan, machine), MOST_TILES), *_copies(plan, machine)]
    if not loops.view.serial:  # inside a larger kernel there is nothing to share out
        tried += _blocks(plan)
    for choice, time in tried:
        if not isinstance(_planned(loops, machine, choice), Refusal):
            yield Alternative(choice.text, time)


def _planned(loops: WindowLoops, machine: Machine, choice: KernelChoice) -> WindowPlan | Refusal:
    if loops.computed is not None:
        return strips_chosen(loops.view, machine, choice)
    return plan_chosen(loops, machine, choice) if loops.groups is None else groups_chosen(loops, machine, choice)


def _tiles(plan: WindowPlan, machine: Machine) -> Iterator[tuple[KernelChoice, float]]:
    """The best other tile of each width, the best first."""
    loops, own = plan.loops, (plan.pixels, plan.vectors)
    is_copied = isinstance(plan, CopiedWindowPlan) and loops.groups is None
    image = "copied" if is_copied else ""
    widths = (
        range(1, min(MOST_VECTORS, _vectors(loops, plan.lanes)) + 1) if loops.groups is None and not image else (1,)
    )
    best: list[tuple[float, int, int]] = []
    for wide in widths:
        fitting = [
            (_time(loops, plan.lanes, (pixels, wide)), -pixels, wide)
            for pixels in range(1, min(MOST_PIXELS, _pixels(loops)) + 1)
            if _fits(loops, machine, (pixels, wide)) and _cut(loops, (pixels, wide)) != _cut(loops, own)
        ]
        best += [min(fitting)] if fitting else []
    for time, pixels, wide in sorted(best):
        tile = (-pixels, wide * plan.lanes)
        yield KernelChoice(tile=tile, image=image), time / _time(loops, plan.lanes, own)


def _copies(plan: WindowPlan, machine: Machine) -> Iterator[tuple[KernelChoice, float]]:
    """The image where it lies, where it is copied; a copy where it is not, but columns under a tile crowd the sets."""
    if plan.loops.computed is not None:
        return
    if plan.loops.groups is None and isinstance(plan, CopiedWindowPlan):
        yield KernelChoice(image="stored"), 1.0
    elif plan.loops.groups is None and is_crowded(plan, machine):
        yield KernelChoice(image="copied"), 1.0


def _blocks(plan: WindowPlan) -> Iterator[tuple[KernelChoice, float]]:
    """Blocks of half and of twice as many lines."""
    own, (lines, _) = plan.blocks, block_counts(plan)
    for count in (-(-own.lines // 2), min(2 * own.lines, lines)):
        if count != own.lines:
            yield KernelChoice(blocks=(count, 1, own.panels)), 1.0


def _time(loops: WindowLoops, lanes: int, tile: tuple[int, int]) -> float:
    """Modelled cycles of a row of the window over a line: multiply-adds or loads, whichever are more."""
    (pixels, wide), taps = tile, estimated(loops.across.extent) if loops.across is not None else 1
    panels = -(-_vectors(loops, lanes) // wide)
    split = split_rows(_pixels(loops), pixels)

    def cycles(height: int) -> float:
        columns = columns_seen(loops, height) if loops.pixel is not None and loops.across is not None else height
        loads = columns + (taps if loops.filter is not None else 0)
        return wide * max(height * taps / FMA_PER_CYCLE, loads / LOADS_PER_CYCLE)

    return panels * (split.tall * cycles(split.height) + split.short * cycles(max(1, split.height - 1)))


def _fits(loops: WindowLoops, machine: Machine, tile: tuple[int, int]) -> bool:
    """Whether the accumulators, what of a row of the filter stays, and the column at hand fit the registers."""
    pixels, wide = tile
    if shares_columns(loops, machine):
        return columns_seen(loops, pixels) * wide + 3 <= machine.vector_registers
    taps = estimated(loops.across.extent) if loops.across is not None else 1
    kept = min(taps, FILTER_REGISTERS) if loops.filter is not None else 0
    return pixels * wide + kept + 2 <= machine.vector_registers


def _cut(loops: WindowLoops, tile: tuple[int, int]) -> tuple[object, int]:
    """How a tile cuts the line: tiles that cut it alike are one kernel."""
    return split_rows(_pixels(loops), tile[0]), tile[1]


def _pixels(loops: WindowLoops) -> int:
    return estimated(loops.pixel.extent) if loops.pixel is not None else 1


def _vectors(loops: WindowLoops, lanes: int) -> int:
    return -(-estimated(loops.channel.extent) // lanes)
