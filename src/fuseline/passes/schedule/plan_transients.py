"""Where transients lie in the arena: buffers whose lives overlap do not overlap in memory.

Sizes with a known upper bound are placed by it, best fit first, at fixed offsets. The others are placed in regions, one
per kind of size, whose offsets are expressions that hold for every size:

    64-byte aligned |  static region  | k0 granules of batch*seq | k1 granules of batch*seq*seq | ...

All sizes of a region are whole numbers of one symbolic granule, so that inside it the same best-fit placement works in
granules. Regions whose sizes are known later (a host operator decides them) lie behind the others, so that an offset is
known as soon as its buffer is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.passes.schedule.best_fit import Transient, best_fit, most_live
from fuseline.program.schedule import ARENA_ALIGNMENT

__all__ = ["ArenaPlan", "Transient", "plan_transients"]


@dataclass(frozen=True, slots=True)
class ArenaPlan:
    """The offset of each transient and the size of the arena, bytes; `ends` is the size after the regions of each time,
    in order; `live` is the most that is live at once, in granules of its region: no plan needs less."""

    offsets: tuple[Dim, ...]
    bytes: Dim
    ends: tuple[tuple[int, Dim], ...] = ()
    live: Dim = 0

    def bytes_at(self, time: int) -> Dim:
        """Size of the arena that holds every buffer whose size is known at `time`."""
        return next((end for known, end in reversed(self.ends) if known <= time), 0)


def plan_transients(
    transients: Sequence[Transient], in_place: Sequence[tuple[int, int]] = (), known_at: Mapping[str, int] | None = None
) -> ArenaPlan:
    """Place `transients`; `in_place` pairs (result, operand) say which result may lie exactly on an operand that dies
    where it is born.

    `known_at` gives the time at which symbols become known, where that is not the beginning (time -1).

    >>> plan_transients([Transient(100, 0, 1), Transient(64, 1, 2), Transient(128, 2, 3)]).offsets
    (0, 128, 0)
    """
    owner = _merged(transients, in_place)
    shared: dict[int, list[Transient]] = {}
    for transient, root in zip(transients, owner, strict=True):
        shared.setdefault(root, []).append(transient)
    owners = sorted(shared)
    merged = [_union(shared[root]) for root in owners]
    plan = _plan_regions(merged, known_at or {})
    by_owner = dict(zip(owners, plan.offsets, strict=True))
    return replace(plan, offsets=tuple(by_owner[o] for o in owner))


def _merged(transients: Sequence[Transient], in_place: Sequence[tuple[int, int]]) -> list[int]:
    """For each transient the first of those it shares memory with. A pair counts only where the operand's last wave is
    the result's first, both are equally big, and nothing else has taken the operand's place."""
    owner = list(range(len(transients)))
    taken: set[int] = set()
    for result, operand in in_place:
        fits = (
            transients[operand].last == transients[result].first
            and transients[operand].bytes == transients[result].bytes
        )
        if fits and operand not in taken and owner[result] == result:
            taken.add(operand)
            owner[result] = owner[operand]
    return [_root(owner, i) for i in range(len(owner))]


def _root(owner: Sequence[int], i: int) -> int:
    while owner[i] != i:
        i = owner[i]
    return i


def _union(group: Sequence[Transient]) -> Transient:
    return Transient(group[0].bytes, min(t.first for t in group), max(t.last for t in group))


def _plan_regions(transients: Sequence[Transient], known_at: Mapping[str, int]) -> ArenaPlan:
    regions: dict[Dim, list[int]] = {}
    for number, transient in enumerate(transients):
        regions.setdefault(_primitive(transient.bytes), []).append(number)
    offsets: list[Dim] = [0] * len(transients)
    base: Dim = 0
    live: Dim = 0
    ends: list[tuple[int, Dim]] = []
    for time, primitive in _in_order(regions, known_at):
        members = regions[primitive]
        granule, counts = _granules(primitive, [transients[i].bytes for i in members])
        sized = [(count, transients[i]) for count, i in zip(counts, members, strict=True)]
        places, granules = best_fit(sized)
        live = d.add(live, d.mul(most_live(sized), granule))
        for place, i in zip(places, members, strict=True):
            offsets[i] = d.add(base, d.mul(place, granule))
        base = d.add(base, d.mul(granules, granule))
        ends.append((time, base))
    return ArenaPlan(tuple(offsets), base, tuple(ends), live)


def _in_order(primitives: Iterable[Dim], known_at: Mapping[str, int]) -> list[tuple[int, Dim]]:
    """Regions with the time at which their granule is known: earliest first, fixed ones before symbolic ones, then by
    name."""
    times = {
        primitive: max((known_at.get(symbol.name, -1) for symbol in d.symbols(primitive)), default=-1)
        for primitive in primitives
    }
    ranked = sorted(
        times, key=lambda primitive: (times[primitive], not isinstance(primitive, int), d.to_text(primitive))
    )
    return [(times[primitive], primitive) for primitive in ranked]


def _primitive(size: Dim) -> Dim:
    """What sizes of one region have in common: the expression without its greatest constant factor; 1 for a bounded
    size."""
    if isinstance(size, int) or d.upper_bound(size) is not None:
        return 1
    return d.floor_div(size, _content(size))


def _content(size: Dim) -> int:
    """The greatest number that divides the size for all values of its symbols, read off its coefficients."""
    return size if isinstance(size, int) else gcd(*(coefficient for _, coefficient in size.terms))


def _granules(primitive: Dim, sizes: Sequence[Dim]) -> tuple[Dim, list[int]]:
    """The granule of a region, a multiple of the alignment for all values of the symbols, and how many of it each size
    takes."""
    if primitive == 1:
        return ARENA_ALIGNMENT, [-(-(d.upper_bound(size) or 0) // ARENA_ALIGNMENT) for size in sizes]
    common = gcd(*(_content(size) for size in sizes))
    granule = d.mul(d.ceil_div(d.mul(primitive, common), ARENA_ALIGNMENT), ARENA_ALIGNMENT)
    return granule, [_content(size) // common for size in sizes]
