"""Offsets for lives of known sizes, best fit first: lives that overlap do not overlap in memory.

Several orders of placement are tried. Where none of them needs as little as is live at once, what ended up on top is
moved to the front of the best order, a few times over: it finds its place while there is still a choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from fuseline.ir.dim import Dim

REPAIRS = 40
"""How often what lies on top is placed anew."""

Sized = Sequence[tuple[int, "Transient"]]
"""Lives with their sizes in some unit."""


@dataclass(frozen=True, slots=True)
class Transient:
    """A buffer of `bytes` that is live from wave `first` to wave `last`, both included."""

    bytes: Dim
    first: int
    last: int


def best_fit(sized: Sized) -> tuple[list[int], int]:
    """Offsets and total in units: of all orders of placement that are tried, the one that needs least.

    >>> best_fit([(2, Transient(2, 0, 1)), (1, Transient(1, 1, 2)), (2, Transient(2, 2, 3))])
    ([0, 2, 0], 3)
    """
    keys: tuple[Callable[[int], tuple[int, ...]], ...] = (
        lambda i: (-sized[i][0], sized[i][1].first, i),
        lambda i: (-sized[i][0] * (sized[i][1].last - sized[i][1].first + 1), i),
        lambda i: (sized[i][1].first, -sized[i][0], i),
    )
    least, beside, best = most_live(sized), _neighbours(sized), None
    orders = [sorted(range(len(sized)), key=key) for key in keys]
    for order in orders:
        plan = _place(sized, order, beside)
        best = plan if best is None or plan[1] < best[1] else best
        if best[1] == least:
            break
    assert best is not None
    for order in orders if best[1] > least else ():
        best = min(best, _repaired(sized, order, least, beside), key=lambda plan: plan[1])
    return [best[0][i] for i in range(len(sized))], best[1]


def _repaired(
    sized: Sized, order: Sequence[int], least: int, beside: Sequence[Sequence[int]]
) -> tuple[Mapping[int, int], int]:
    """The best placement that comes of `order` by moving what lies on top to its front."""
    best = plan = _place(sized, order, beside)
    for _ in range(REPAIRS):
        if best[1] == least:
            break
        on_top = [i for i in order if plan[0][i] + sized[i][0] == plan[1]]
        order = on_top + [i for i in order if i not in on_top]
        plan = _place(sized, order, beside)
        best = min(best, plan, key=lambda plan: plan[1])
    return best


def most_live(sized: Sized) -> int:
    """The most that is live at once: no placement needs less."""
    change: dict[int, int] = {}
    for size, transient in sized:
        change[transient.first] = change.get(transient.first, 0) + size
        change[transient.last + 1] = change.get(transient.last + 1, 0) - size
    return max(accumulate(change[wave] for wave in sorted(change)), default=0)


def _place(sized: Sized, order: Sequence[int], beside: Sequence[Sequence[int]]) -> tuple[Mapping[int, int], int]:
    """Each where the gap is tightest among those `beside` it that are placed, in this order."""
    places: dict[int, tuple[int, int]] = {}
    for i in order:
        start = _tightest_gap(sorted([places[j] for j in beside[i] if j in places]), sized[i][0])
        places[i] = start, start + sized[i][0]
    return {i: start for i, (start, _) in places.items()}, max((end for _, end in places.values()), default=0)


def _neighbours(sized: Sized) -> list[list[int]]:
    """For each life those that overlap it: live when it is born, or born while it lives."""
    live: dict[int, list[int]] = {}
    born: dict[int, list[int]] = {}
    for i, (_, transient) in enumerate(sized):
        born.setdefault(transient.first, []).append(i)
        for wave in range(transient.first, transient.last + 1):
            live.setdefault(wave, []).append(i)
    return [
        [j for j in live.get(transient.first, ()) if j != i]
        + [j for wave in range(transient.first + 1, transient.last + 1) for j in born.get(wave, ())]
        for i, (_, transient) in enumerate(sized)
    ]


def _tightest_gap(taken: Sequence[tuple[int, int]], size: int) -> int:
    """Start of the smallest gap between the intervals `taken` (sorted) that holds `size`; their end where none does."""
    best: tuple[int, int] | None = None
    reached = 0
    for start, stop in taken:
        gap = start - reached
        if gap >= size and (best is None or gap < best[0]):
            best = gap, reached
        reached = max(reached, stop)
    return reached if best is None else best[1]
