"""A change between two plans in steps: the merges of the first plan undone from the last one on, then those of the
second made, one at a time.

    from   [a b c]        merges a+b, ab+c        [a b c]  ->  [a b] [c]  ->  [a] [b] [c]  ->  [a] [b c]
    to     [a] [b c]      merges b+c              between them what groups of both sides have in common
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from fuseline.analysis.disjoint_sets import DisjointSets
from fuseline.passes.fusion.plan import Ids
from fuseline.verify.bisect.plan_changes import GROUPING, PlanChange

Merges = Sequence[Ids]
"""The ops that each merge brought together, in order."""


def steps_of(change: PlanChange, undone: Merges, made: Merges) -> list[PlanChange]:
    """A change of groups as splits and joins; `undone` are merges of the first plan, `made` those of the second. Any
    other change is one step."""
    if change.kind not in GROUPING:
        return [change]
    pieces = _common(change.before, change.after)
    down = [*_grown(pieces, undone, change.before)][::-1]
    up = [*_grown(pieces, made, change.after)]
    return [_step(before, after) for before, after in pairwise([*down, *up]) if before != after]


def _common(before: Iterable[Ids], after: Iterable[Ids]) -> frozenset[Ids]:
    """What a group of each side has in common."""
    pieces = (set(ids) & set(other) for ids in before for other in after)
    return frozenset(tuple(sorted(piece)) for piece in pieces if piece)


def _grown(pieces: frozenset[Ids], merges: Merges, groups: Iterable[Ids]) -> Iterator[frozenset[Ids]]:
    """From `pieces` to `groups`, a merge at a time; what no merge tells of comes together at the end."""
    home = {id: number for number, ids in enumerate(groups) for id in ids}
    sets = DisjointSets((ids[0], id) for ids in sorted(pieces) for id in ids)
    yield pieces
    for merge in merges:
        inside = [id for id in merge if id in home]
        for first, second in pairwise(inside):
            if home[first] == home[second]:
                sets.join(first, second)
        yield _as_groups(sets, home)
    yield frozenset(tuple(sorted(ids)) for ids in groups)


def _as_groups(sets: DisjointSets[str], ids: Iterable[str]) -> frozenset[Ids]:
    found: dict[str, list[str]] = {}
    for id in ids:
        found.setdefault(sets.of(id), []).append(id)
    return frozenset(tuple(sorted(members)) for members in found.values())


def _step(before: frozenset[Ids], after: frozenset[Ids]) -> PlanChange:
    gone, new = tuple(sorted(before - after)), tuple(sorted(after - before))
    return PlanChange("split" if len(gone) < len(new) else "join", gone, new)
