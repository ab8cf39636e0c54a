"""One form for windows that are equal up to extents: tiles of common numbers of pixels.

lines of 27 pixels        9 9 9          =>      7 7 7 6
lines of 13 pixels        7 6            =>      7 6
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

from fuseline.targets.cpu.families.common_forms import disjoint_groups, groups_by_height
from fuseline.targets.cpu.families.contraction.axes import estimated
from fuseline.targets.cpu.families.family import Shared
from fuseline.targets.cpu.families.window.plan import WindowPlan, columns_seen
from fuseline.targets.cpu.families.window.shared_form import SharedForm
from fuseline.targets.cpu.isa.core_rates import FMA_LATENCY, FMA_PER_CYCLE
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.tiles import RowSplit, is_in_tiles, split_in_tiles

TILE_CYCLES = 10
"""Of a tile and vector beside its window: where it is, and to store it."""


@dataclass(frozen=True, slots=True)
class _Site:
    """A dispatch: its number among those asked about, its own plan and tiles, and the pixels of a line."""

    number: int
    plan: WindowPlan
    own: RowSplit
    pixels: int


def shared_plans(plans: Sequence[WindowPlan], machine: Machine) -> list[Shared]:
    """Groups of two or more of the plans with a form that fits all of a group."""
    groups = partial(_groups, machine=machine)
    return [one for sites in _alike(plans) for one in disjoint_groups(sites, groups, "forms of windows")]


def _alike(plans: Sequence[WindowPlan]) -> list[list[_Site]]:
    """The plans that can have a form in common: of known lines, of whole panels of as many images, that combine pixels
    or columns alike."""
    found: dict[object, list[_Site]] = {}
    for number, plan in enumerate(plans):
        pixel, parts = plan.loops.pixel, [image.channels for image in plan.loops.images]
        whole = all(isinstance(channels, int) and channels % plan.width == 0 for channels in parts)
        if plan.split is not None and pixel is not None and isinstance(pixel.extent, int) and whole:
            site = _Site(number, plan, plan.split, pixel.extent)
            borders = tuple(b.border.mode for i in plan.loops.images for b in i.access.borders if b.border is not None)
            found.setdefault((plan.vectors, plan.columns_first, len(parts), borders), []).append(site)
    return list(found.values())


def _groups(sites: Sequence[_Site], machine: Machine) -> Iterator[Shared]:
    tallest = max((site.plan.pixels for site in sites), default=0)
    most = machine.costs.sharing_loss
    return groups_by_height(sites, tallest, lambda site, height: _lost(site, height) <= most, _shared)


def _lost(site: _Site, height: int) -> float:
    """The share of its modelled time that a site loses; more than any limit where its lines are no such tiles."""
    if not is_in_tiles(site.pixels, height):
        return float("inf")
    own, other = (_cycles(site.plan, split) for split in (site.own, split_in_tiles(site.pixels, height)))
    return max(0.0, other / own - 1)


def _cycles(plan: WindowPlan, split: RowSplit) -> float:
    """Of one line and vector of channels."""
    return split.tall * _tile_cycles(plan, split.height) + split.short * _tile_cycles(plan, split.height - 1)


def _tile_cycles(plan: WindowPlan, pixels: int) -> float:
    """Of a tile: what is combined, at least a chain of it for each of the few accumulators."""
    loops = plan.loops
    taps = estimated(loops.across.extent) if loops.across is not None else 1
    down = prod(estimated(axis.extent) for axis in loops.down)
    if plan.columns_first:
        return TILE_CYCLES + columns_seen(loops, pixels) * down + pixels * (taps - 1)
    return TILE_CYCLES + max(pixels / FMA_PER_CYCLE, FMA_LATENCY) * taps * down


def _shared(members: Sequence[_Site], height: int) -> Shared:
    splits = [split_in_tiles(site.pixels, height) for site in members]
    form = SharedForm(
        height=height,
        short=any(split.short for split in splits),
        tall_ends=any(not split.short for split in splits),
        short_begins=any(not split.tall for split in splits),
    )
    return Shared(
        tuple(site.number for site in members),
        tuple(replace(site.plan, pixels=height, form=form) for site in members),
        tuple(_lost(site, height) for site in members),
    )
