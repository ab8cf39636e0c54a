"""One form for convolutions by the same minimal filtering that are equal up to extents.

    28 x 28 pixels, 128 channels     blocks of 25 tiles in 13 + 12 rows, pieces of 8 channel vectors
    56 x 56 pixels, 64 channels      blocks of 49 tiles in 13 + 3 x 12, pieces of 4       =>  both: tiles of 13 and 12
                                                                                              rows, pieces of up to 8

Each site keeps its filtering (another one rounds otherwise), its blocks, its layout of the filter and its partial sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from fuseline.ir.costs import LINE_BYTES
from fuseline.targets.cpu.combinators.prefetch import NONE, Prefetch, schedule_prefetches
from fuseline.targets.cpu.emit.partial_sums import MOST_STEPS, partial_size
from fuseline.targets.cpu.families.common_forms import disjoint_groups, groups_by_height
from fuseline.targets.cpu.families.family import Shared
from fuseline.targets.cpu.families.winograd.choice import TILE_CYCLES
from fuseline.targets.cpu.families.winograd.plan import WinogradPlan, ends_with_tiles
from fuseline.targets.cpu.families.winograd.shared_form import SharedForm
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import BYTES
from fuseline.targets.cpu.tiles import RowSplit, is_in_tiles, split_in_tiles, step_cycles

COMMON_SHARE = 0.02
"""Of its time, what a launch loses beside its tiles: channels copied vector by vector, columns in a loop."""


@dataclass(frozen=True, slots=True)
class _Site:
    """A dispatch: its number among those asked about, its own plan, and the channels of a partial sum."""

    number: int
    plan: WinogradPlan
    partial_steps: int


def shared_plans(plans: Sequence[WinogradPlan], machine: Machine) -> list[Shared]:
    """Groups of two or more of the plans with a form that fits all of a group."""
    groups = partial(_groups, machine=machine)
    return [one for sites in _filterings(plans) for one in disjoint_groups(sites, groups, "forms of minimal filtering")]


def _filterings(plans: Sequence[WinogradPlan]) -> list[list[_Site]]:
    """The plans that can have a form in common: of one filtering, of panels as wide, of whole vectors of channels that
    are read where they are, of whole passes."""
    found: dict[object, list[_Site]] = {}
    for number, plan in enumerate(plans):
        loops, blocking = plan.loops, plan.blocking
        whole = loops.channels % plan.lanes == 0 and loops.columns % plan.pass_width == 0
        plain = len(plan.segments) == len(loops.contraction.column.loops) == 1
        if whole and plain:
            partial_steps = (
                partial_size(loops.channels, 1, max(1, plan.prefetch.period)) if loops.channels >= MOST_STEPS else 0
            )
            site = _Site(number, plan, partial_steps or loops.channels)
            borders = tuple(b.border.mode for b in plan.segments[0].access.borders if b.border is not None)
            outputs = tuple(axis.outputs for axis in blocking.axes)
            key = outputs, blocking.tile.vectors, loops.channels % 2, borders
            found.setdefault(key, []).append(site)
    return list(found.values())


def _groups(sites: Sequence[_Site], machine: Machine) -> Iterator[Shared]:
    tallest = max((site.plan.blocking.tile.rows for site in sites), default=0)
    most = machine.costs.sharing_loss
    return groups_by_height(sites, tallest, lambda site, height: _lost(site, height) <= most, _shared)


def _lost(site: _Site, height: int) -> float:
    """The share of its modelled time that a site loses; more than any limit where its rows are no such tiles."""
    tiles = site.plan.blocking.tiles
    if not is_in_tiles(tiles, height):
        return float("inf")
    own, other = (_cycles(site, split) for split in (site.plan.rows, split_in_tiles(tiles, height)))
    return max(0.0, other / own - 1) + COMMON_SHARE


def _cycles(site: _Site, split: RowSplit) -> float:
    """Of one panel."""
    plan, total = site.plan, 0.0
    for tiles, height in ((split.tall, split.height), (split.short, split.height - 1)):
        if tiles:
            total += tiles * (plan.loops.channels * step_cycles(height, plan.blocking.tile.vectors) + TILE_CYCLES)
    return total


def _shared(members: Sequence[_Site], height: int) -> Shared:
    plans = [site.plan for site in members]
    piece = max(plan.piece for plan in plans)
    axes = range(len(plans[0].blocking.axes))
    form = SharedForm(
        height=height,
        short=any(split_in_tiles(plan.blocking.tiles, height).short for plan in plans),
        piece=piece,
        whole_pieces=all(plan.vectors % piece == 0 for plan in plans),
        whole_tiles=tuple(all(ends_with_tiles(plan, axis) for plan in plans) for axis in axes),
        groups=any(plan.group_count > 1 for plan in plans),
        vectors=_common([plan.pass_width // plan.lanes for plan in plans]),
        in_partial_sums=any(site.partial_steps < site.plan.loops.channels for site in members),
    )
    formed = [
        replace(site.plan, form=form, partial_steps=site.partial_steps if form.in_partial_sums else 0)
        for site in members
    ]
    return Shared(
        tuple(site.number for site in members),
        tuple(replace(plan, prefetch=request) for plan, request in zip(formed, _prefetches(formed), strict=True)),
        tuple(_lost(site, height) for site in members),
    )


def _common(numbers: Sequence[int]) -> int:
    """The number that all are; 0 where they differ."""
    return numbers[0] if len(set(numbers)) == 1 else 0


def _prefetches(plans: Sequence[WinogradPlan]) -> list[Prefetch]:
    """Requests as often in all of them, where any asks."""
    asking = [_scheduled(plan) for plan in plans if plan.prefetch.period]
    if not asking:
        return [NONE] * len(plans)
    period = min(one.period for one in asking)
    runs = [plan.partial_steps or plan.loops.channels for plan in plans]
    period = period if all(run % period == 0 for run in runs) else 1
    lines = max(one.lines for one in asking)
    return [_prefetch(plan, period, lines) for plan in plans]


def _prefetch(plan: WinogradPlan, period: int, lines: int) -> Prefetch:
    requests = plan.loops.channels // period
    line = LINE_BYTES // BYTES["f32"]
    return Prefetch(period=period, lines=lines, requests=requests, tiles=plan.rows.count, share=requests * lines * line)


def _scheduled(plan: WinogradPlan) -> Prefetch:
    """What a plan asks for with the tiles that it has."""
    steps, line = plan.loops.channels, LINE_BYTES // BYTES["f32"]
    return schedule_prefetches(steps, steps, -(-steps * plan.width // line), plan.rows.count, line)
