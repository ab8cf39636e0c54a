"""Rows that are moved: what is read and written along the same short run of loops, but in another order of the others.

read    a, b, row ->                 written    b, a, row ->
    a   == -- .. ::                         b   == ## ~~ ^^
        ## ++ ,, ;;                             -- ++ ..

Rows of a tile lie beside each other in the one or the other, so that workgroups that follow each other use the rest of
the same cache lines and pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fuseline.dispatch.loop_ref import LoopRef
from fuseline.ir.dim import product
from fuseline.targets.cpu.families.nests.collapsed_loops import beside_last, farthest_step, neighbours
from fuseline.targets.cpu.families.nests.recompute_cost import cost
from fuseline.targets.cpu.families.nests.stages import Staging
from fuseline.targets.cpu.families.nests.tiling import reads_of, short_run
from fuseline.targets.cpu.families.nests.traffic import elements
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.tiles import cached_rows

MOVED_ROWS = 16
"""Rows of a tile, at most: cache lines far apart are to stay until what lies beside is used. With less than half as
many a workgroup is mostly finding its place."""

MOST_MOVED_BITS = 8 * 1024
"""Of rows that are moved beside those of other places, at most: longer ones are by themselves whole cache lines, and
pages enough (50 to 256 floats: .8 of the time row after row, as they are written)."""


@dataclass(frozen=True)
class MovedRows:
    """A `row` of vectors of `lanes`, in tiles of `tile` rows along `run`; `rest`: the other runs of the grid, in the
    order in which workgroups follow each other, outermost first."""

    row: list[LoopRef]
    lanes: int
    run: list[LoopRef]
    tile: int
    rest: list[list[LoopRef]]


def moved_rows(
    staging: Staging,
    collapsed: Sequence[list[LoopRef]],
    vector_loops: list[LoopRef],
    vector: tuple[int, int],
    machine: Machine,
) -> MovedRows | None:
    """Rows that are moved, where everything lies along them: in tiles along a run of the grid that is long enough, lies
    beside them where they are read or written, and steps as little as may be. Workgroups that follow each other go
    along the other one beside them.

    Args:
        vector: the lanes of a vector and the bits of each.
    """
    row, before = _moved_loops(staging, vector_loops, *vector)
    runs, near = [*collapsed, *before], neighbours(staging, row) if row else []
    if not runs or _goes_on(near, runs[-1]):
        return None
    near = [runs[-1][-1], *near]
    rows = [min(MOVED_ROWS, int(elements(staging, one))) for one in runs]
    steps = [farthest_step(staging, one) for one in runs]
    at = max(range(len(runs)), key=lambda i: (rows[i], runs[i][-1] in near, -steps[i], i))
    tile = max(MOVED_ROWS // 2, min(MOVED_ROWS, cached_rows(int(steps[at]) * vector[1] // 8, machine)))
    rest = beside_last((one for one in runs if one is not runs[at]), near)
    return MovedRows(row, min(vector[0], int(elements(staging, row))), runs[at], tile, rest)


def _moved_loops(
    staging: Staging, vector_loops: list[LoopRef], lanes: int, bits: int
) -> tuple[list[LoopRef], list[list[LoopRef]]]:
    """What is moved as one where all that is read with it lies along it, and little is done with that: the last of
    `vector_loops`, where it is less than a vector and joined others that it lies beside only as it is written, and the
    run of those; or all of them, where those are few. Else nothing."""
    *before, lane = vector_loops
    alone = before and short_run(staging, [lane], lanes) and not _goes_on(neighbours(staging, [lane]), before)
    row = [lane] if alone else vector_loops
    total, results = product(staging.axes.extents[axis] for axis in row), set(staging.destinations)
    if not isinstance(total, int) or not 1 < total <= MOST_MOVED_BITS // bits:
        return [], []
    reads = [axis for op in staging.live for axis, used in reads_of(staging, op) if lane in used]
    along = bool(reads) and all(axis == lane for axis in reads)
    if not along or sum(cost(op, staging.live, results) for op in staging.live) > total:
        return [], []
    return row, [before] if alone else []


def _goes_on(near: Sequence[LoopRef], run: Sequence[LoopRef]) -> bool:
    """Whether all that is read goes on along `run`, from row to row, as what is written does."""
    return all(axis == run[-1] for axis in near)
