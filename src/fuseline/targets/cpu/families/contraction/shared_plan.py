"""One form for multiply-add roots that are equal up to extents, so that their kernels are the same code up to numbers.

    196 x 64 columns    14x32, and no rest         =>      13x32 and 12x32 tiles, then one panel of 16
    49 x 144 columns    13x48, and no rest         =>      the same, each as often as its extents ask for

Each site keeps its blocks and its partial sums, and packs its own columns, in panels of the common width. What a form
costs a site is the modelled time of its tiles beside that of its own plan; it is left out of a form that would cost it
more than `MachineCosts.sharing_loss`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import gcd

from fuseline.analysis.extents_key import extents_key, key_around
from fuseline.analysis.structural_key import AttributeNumbers
from fuseline.ir import dim as d
from fuseline.ir.costs import LINE_BYTES
from fuseline.targets.cpu.combinators.prefetch import NONE, Prefetch
from fuseline.targets.cpu.emit.microkernel import STEPS_PER_ITERATION
from fuseline.targets.cpu.emit.partial_sums import MOST_STEPS, partial_size
from fuseline.targets.cpu.families.common_forms import disjoint_groups
from fuseline.targets.cpu.families.contraction.axes import estimated
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan, plan_contraction, temporaries_of
from fuseline.targets.cpu.families.contraction.prefetch import tiles_per_panel
from fuseline.targets.cpu.families.contraction.shared_form import SharedForm
from fuseline.targets.cpu.families.family import Shared
from fuseline.targets.cpu.isa.core_rates import FMA_PER_CYCLE
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import BYTES
from fuseline.targets.cpu.tiles import Tile, fits, is_in_tiles, split_in_tiles, split_rows, step_cycles


@dataclass(frozen=True, slots=True)
class _Site:
    """A dispatch: its number among those asked about, its own plan, rows, columns and steps of its root, those of a
    partial sum, or, where there is one sum (not `in_partial_sums`), what each run of them is whole times."""

    number: int
    plan: ContractionPlan
    rows: int
    columns: int
    steps: int
    partial_steps: int
    in_partial_sums: bool

    @property
    def is_known(self) -> bool:
        """Whether the rows are known, and so cut into tiles of two heights."""
        return self.plan.split is not None


def shared_plans(plans: Sequence[ContractionPlan], machine: Machine) -> list[Shared]:
    """Groups of two or more of the plans with a form that fits all of a group."""
    sites = [site for number, plan in enumerate(plans) if (site := _site(number, plan)) is not None]
    groups = partial(_groups, machine=machine)
    return [
        one
        for known in (True, False)
        for one in disjoint_groups([site for site in sites if site.is_known is known], groups, "forms of products")
    ]


def likeness(plan: ContractionPlan, numbers: AttributeNumbers) -> Hashable:
    """What dispatches are equal in that may have one form: where rows are read in place, how far they are apart is a
    number as extents are, so that a window of one pixel is a product."""
    entry = plan.view.entry
    if _site(0, plan) is None:
        return extents_key(entry, numbers)
    return (
        plan.loops.elements,
        plan.loops.unsigned,
        len(plan.loops.segments),
        key_around(plan.loops.root.op, entry, numbers),
    )


def _site(number: int, plan: ContractionPlan) -> _Site | None:
    """A dispatch whose loops are known, of whole vectors, that reads its rows where they are and pads nothing."""
    loops = plan.loops
    rows = estimated(plan.tiled.extent) if plan.tiled is not None else 1
    columns, steps = (extent if isinstance(extent, int) else 0 for extent in (loops.column.extent, loops.steps))
    padded = any(segment.access.bounds for segment in loops.segments)
    if (
        not (rows and columns and steps)
        or padded
        or len(loops.column.loops) > 1
        or (plan.lhs_mode, plan.rhs_mode) != ("linear", "constant")
        or len(loops.reduction) != 1
    ):
        return None
    runs = [run for segment in loops.segments for axis in segment.reduction if isinstance(run := axis.extent, int)]
    in_partial_sums = max(runs) >= MOST_STEPS and not loops.narrow
    if len(runs) != len(loops.segments) or (in_partial_sums and len(runs) > 1):
        return None
    partial_steps = partial_size(steps, 1, plan.prefetch.period or 1) if in_partial_sums else gcd(*runs)
    return _Site(number, plan, rows, columns, steps, partial_steps, in_partial_sums)


def _groups(sites: Sequence[_Site], machine: Machine) -> Iterator[Shared]:
    for in_partial_sums in (False, True):
        for tile in _tiles(sites, machine) if len(sites) > 1 else ():
            able = [site for site in sites if _takes(site, tile, machine, in_partial_sums=in_partial_sums)]
            for said in {_said(site, tile.rows) for site in able}:
                members = [site for site in able if _said(site, tile.rows) == said]
                if len(members) > 1:
                    yield _shared(members, tile, machine, in_partial_sums=in_partial_sums)


FEWER_ROWS = 3
"""Tiles are tried that have up to so many rows less than one that a site has: near what is known to be fast."""


def _tiles(sites: Sequence[_Site], machine: Machine) -> list[Tile]:
    """Tiles like those of the sites, that leave room for the columns of the next step: merged loops load them ahead."""
    own = {site.plan.tile for site in sites}
    near = {Tile(tile.rows - less, tile.vectors) for tile in own for less in range(min(FEWER_ROWS + 1, tile.rows))}
    temporaries = temporaries_of(sites[0].plan.loops)
    able = [tile for tile in near if fits(tile.rows, tile.vectors, machine, temporaries + tile.vectors)]
    return sorted(able, key=lambda tile: (-tile.rows * tile.vectors, -tile.rows))


def _takes(site: _Site, tile: Tile, machine: Machine, *, in_partial_sums: bool) -> bool:
    """Whether a site can have a form, and loses little by it. Its partial sums are those that it has, so that it
    computes the same."""
    odd = site.partial_steps % (site.plan.together * STEPS_PER_ITERATION)
    if (
        odd
        or site.steps % site.partial_steps
        or (site.in_partial_sums and not in_partial_sums)
        or (in_partial_sums and len(site.plan.loops.segments) > 1)
        or (in_partial_sums and site.plan.loops.narrow)
    ):
        return False
    lost = _lost(site, tile, in_partial_sums=in_partial_sums)
    return (not site.is_known or is_in_tiles(site.rows, tile.rows)) and lost <= machine.costs.sharing_loss


def _said(site: _Site, height: int) -> tuple[object, ...]:
    """How the number of tiles is said where only the run knows it: of which summands. 13 n rows are n tiles of 13 rows,
    and (13 n + 11) / 12 of 12."""
    extent = site.plan.tiled.extent if site.plan.tiled is not None else 1
    count = d.ceil_div(extent, height)
    return tuple(tuple(map(type, atoms)) for atoms, _ in count.terms) if isinstance(count, d.Expr) else ()


def _lost(site: _Site, tile: Tile, *, in_partial_sums: bool) -> float:
    """The share of its modelled time that a site loses."""
    own = _cycles(site, site.plan.tile, in_partial_sums=site.in_partial_sums)
    return max(0.0, _cycles(site, tile, in_partial_sums=in_partial_sums) / own - 1)


TILE_CYCLES = 24
"""Of a tile beside its steps: where it is, its first and its last step."""

TOTAL_CYCLES = 3
"""Of one accumulator's way to the stack and back, at the end of a partial sum."""


def _cycles(site: _Site, tile: Tile, *, in_partial_sums: bool) -> float:
    own = site.plan.tile == tile
    known = site.is_known and not own
    split = split_in_tiles(site.rows, tile.rows) if known else split_rows(site.rows, tile.rows)
    lanes, total = site.plan.lanes, 0.0
    whole, rest = divmod(site.columns, tile.vectors * lanes)
    for count, vectors in ((whole, tile.vectors), (1 if rest else 0, -(-rest // lanes))):
        for tiles, height in ((split.tall, split.height), (split.short, split.height - 1)):
            if count and tiles and height:
                partial_sums = site.steps // site.partial_steps if site.in_partial_sums else 1
                sums = partial_sums * TOTAL_CYCLES * height * vectors if in_partial_sums else 0
                total += count * tiles * (site.steps * _step_cycles(site, height, vectors) + TILE_CYCLES + sums)
    return total


def _step_cycles(site: _Site, height: int, vectors: int) -> float:
    """Of one step of a tile. Narrow columns are widened first, by the units that multiply: 1024 steps of 14 rows in
    4x80 tiles take 1.08 of the time that they take in 14x32."""
    loops = site.plan.loops
    widened = height * vectors + vectors if loops.narrow and not loops.in_bytes else 0
    return max(step_cycles(height, vectors), widened / FMA_PER_CYCLE)


def _shared(members: Sequence[_Site], tile: Tile, machine: Machine, *, in_partial_sums: bool) -> Shared:
    splits = [split_in_tiles(site.rows, tile.rows) for site in members if site.is_known]
    rests = {site.columns % (tile.vectors * site.plan.lanes) for site in members} - {0}
    form = SharedForm(
        height=tile.rows,
        short=any(split.short for split in splits),
        rests=tuple(sorted(rests)),
        in_partial_sums=in_partial_sums,
        stages=all(site.plan.stages for site in members),
    )
    planned = [_planned(site, tile, form, machine) for site in members]
    requests = _prefetches(planned, members)
    return Shared(
        tuple(site.number for site in members),
        tuple(replace(plan, prefetch=prefetch) for plan, prefetch in zip(planned, requests, strict=True)),
        tuple(_lost(site, tile, in_partial_sums=in_partial_sums) for site in members),
    )


def _planned(site: _Site, tile: Tile, form: SharedForm, machine: Machine) -> ContractionPlan:
    plan = plan_contraction(site.plan.loops, machine, tile, form)
    assert isinstance(plan, ContractionPlan)
    return replace(
        plan, partial_steps=(site.partial_steps if site.in_partial_sums else site.steps) if form.in_partial_sums else 0
    )


def _prefetches(plans: Sequence[ContractionPlan], sites: Sequence[_Site]) -> list[Prefetch]:
    """Requests every so many steps in all of them, if most of the work is done where they pay."""
    asking = [plan for plan in plans if plan.prefetch.period]
    if 2 * sum(_flops(plan) for plan in asking) <= sum(_flops(plan) for plan in plans):
        return [NONE] * len(plans)
    most, whole = min(plan.prefetch.period for plan in asking), gcd(*(site.partial_steps for site in sites))
    period = max((n for n in range(2, most + 1, 2) if whole % n == 0), default=0)
    if not period:
        return [NONE] * len(plans)
    lines = max(_lines(plan, period) for plan in asking)
    return [_prefetch(plan, period, lines) for plan in plans]


def _lines(plan: ContractionPlan, period: int) -> int:
    """Cache lines that a tile asks for at a time."""
    panel = -(-_steps(plan) * plan.width * BYTES[plan.loops.elements[1]] // LINE_BYTES)
    return -(-panel // (_sharing(plan) * (_steps(plan) // period)))


def _prefetch(plan: ContractionPlan, period: int, lines: int) -> Prefetch:
    requests, line = _steps(plan) // period, LINE_BYTES // BYTES[plan.loops.elements[1]]
    return Prefetch(period=period, lines=lines, requests=requests, tiles=_sharing(plan), share=requests * lines * line)


def _sharing(plan: ContractionPlan) -> int:
    """Tiles that share a panel."""
    return tiles_per_panel(plan.loops, plan.tile, plan.blocks)


def _steps(plan: ContractionPlan) -> int:
    return estimated(plan.loops.steps)


def _flops(plan: ContractionPlan) -> int:
    return estimated(plan.loops.flops)
