"""Short innermost axes that are moved as vectors of their own, one per row of a tile.

x(c, y, i, x, j), 2 of j      =>      y(y, x, c, i, j): a vector of 2 per place, a tile goes along y, x or c
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fuseline.dispatch.loop_ref import LoopRef
from fuseline.targets.cpu.families.nests.collapsed_loops import farthest_step, neighbours
from fuseline.targets.cpu.families.nests.recompute_cost import cost
from fuseline.targets.cpu.families.nests.stages import Staging
from fuseline.targets.cpu.families.nests.tiling import reads_of, short_run
from fuseline.targets.cpu.families.nests.traffic import elements

MOVED_ROWS, ENOUGH_ROWS = 32, 16
"""Rows of a tile that are one short vector each, at most: cache lines far apart are to stay until what lies beside is
used; and from how many on a workgroup is not mostly finding its place."""


class MovedVectors(NamedTuple):
    """Vectors of `width` elements, the whole lane axis, one per row of `run`; `rest`: the other runs of the grid."""

    width: int
    run: list[LoopRef]
    rest: list[list[LoopRef]]


def moved_vectors(
    staging: Staging, collapsed: Sequence[list[LoopRef]], vector_loops: Sequence[LoopRef], lanes: int
) -> MovedVectors | None:
    """A short lane axis that joined the one before as a vector by itself, where everything lies along it: rows of a
    tile along a run of the grid that is long enough, and steps as little as may be wherever there are elements."""
    *before, lane = vector_loops
    width = _short_vector(staging, lane, lanes) if before else 0
    if not width or all(axis == before[-1] for axis in neighbours(staging, [lane])):
        return None  # there is none, or all that is read goes on along it from row to row
    runs = [*collapsed, before]
    rows = [min(MOVED_ROWS, int(elements(staging, one))) for one in runs]
    steps = [farthest_step(staging, one) for one in runs]
    run = runs[max(range(len(runs)), key=lambda i: (min(rows[i], ENOUGH_ROWS), -steps[i], i))]
    return MovedVectors(width, run, [other for other in runs if other is not run])


def _short_vector(staging: Staging, lane: LoopRef, lanes: int) -> int:
    """The extent of an axis that is several elements and less than a vector, where all that is read with it lies along
    it, and little is done with that; else 0."""
    width, results = short_run(staging, [lane], lanes), set(staging.destinations)
    reads = [axis for op in staging.live for axis, used in reads_of(staging, op) if lane in used]
    along = bool(reads) and all(axis == lane for axis in reads)
    return width if along and sum(cost(op, staging.live, results) for op in staging.live) <= width else 0
