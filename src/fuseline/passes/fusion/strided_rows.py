"""Whether a row that becomes serial lies well in memory.

    softmax over the last axis      r ──>  . . . .     one workgroup traverses one row, along memory
                                    r'──>  . . . .

    softmax over the first axis     c c' c" ..         one workgroup traverses a block of columns side by side, lane by
                                    |  |  |            lane, down all rows
                                    v  v  v

The second way reads every line of memory that it touches as a whole. It pays while the rows stay in the cache until
they are traversed again, and while there are enough columns for all threads. Where nothing is reduced there are no rows
to keep: 4 MB of elements that only share a vector take 1.4 of the time in columns, on two threads 2.0, for these take
lines of memory from each other.

    moments over rows and channels of a group     r ──>  . . | . . | . .       one workgroup traverses the runs of its
                                                  r'──>  . . | . . | . .       group, one below the other

Few rows stay in the cache however long they are, column by column of those that a workgroup takes: the classes of each
pixel, the channels of an image (measured, one thread and two, 2 to 29 MB in 3 to 128 rows: softmax .33 to .91 of the
time of its four dispatches, a norm .44 to .93, x - sum(x) .64 to 1.0; rows of 8,192 and 16,384 f32, which lie on top of
each other in the cache, up to 1.7 from 64 rows on). Up to some thousand rows are traversed again from further away,
where the kernel asks for what comes next (`nests/column_prefetch.py`; AVX2 and AVX-512, one thread and two, 2.4 to 480
MB in 200 to 5,000 rows: softmax .65 to 1.06, f16 .59 to 1.07, a norm .55 to 1.05, f16 .6 to 1.15; in 10,000 rows .95 to
1.2), if that saves several traversals or functions are computed between: x - sum(x) takes .92 to 1.38, with AVX2 up to
1.8, and stays two.

Rows of few columns are read as they lie, too: a workgroup puts the vectors of a row side by side (measured, one thread,
3 to 17 MB in rows of 24 to 128 columns: .30 to 1.0 of the time of two dispatches or of the four of a softmax). Several
threads would share the columns out, and take 1.5 to 1.9 of the time where there is little to compute.

Where such a run ends long before a vector does, one workgroup traverses the rows of several groups, lanes along all
their columns (`analysis/column_blocks.py`; measured, one thread, whatever the size: 1.6 MB in runs of 7 .61, 5 MB in
runs of 10 .65, 21 MB .5 of the time of separate dispatches). Lanes that it leaves empty otherwise cost the arithmetic
of as many elements (`short_runs_ns`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from fuseline.analysis.column_blocks import fits_beside, is_group, most_blocks
from fuseline.analysis.structured import Kind
from fuseline.ir.costs import LINE_BYTES, PAGE_BYTES, MachineCosts, assumed_size
from fuseline.ir.dim import Dim, product
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.node import Node

FLOAT_BYTES = 4

COLUMNS = LINE_BYTES // FLOAT_BYTES
"""Columns that a workgroup traverses side by side, at the least: a cache line of each row."""

LOW_ROWS = 128
"""Rows of which the columns that a workgroup takes stay in the first-level cache until they are traversed again."""

HIGH_ROWS = 5000
"""Rows that are traversed again from the last-level cache, or memory, as fast as along memory, since kernels ask for
what comes next. It pays where rows are reduced more than once, or functions are made of them."""

STEPS_AROUND = 4
"""How many nodes away a second reduction is looked for."""

FEW_ROWS = 32
"""The same of rows that begin at one place of a page, which take each other's places in the cache."""

WIDE_LANES = 16
"""Lanes with which a workgroup takes so much of such a row at a time that it does not matter (AVX-512: 300 to 4,000
rows of 1,024 to 16,384 f32 .6 to 1.09 of the time of separate dispatches; AVX2: .92 to 1.37)."""


def strided_rows(
    group: Group,
    demoted: frozenset[int],
    graph: FusionGraph,
    target: TargetDescription,
    *,
    in_rows: bool = True,
    merged: Group | None = None,
) -> WhyNot | None:
    """Why the loops `demoted` of a group's grid should not become serial: in some member's result a loop that stays in
    the grid would run inside one of them. None where they may. `in_rows`: whether all that is stored can be traversed
    along its rows in the end, or is reduced; `merged`: the group that it becomes a part of."""
    for node, number, moving, serial in _walks(group, demoted):
        refusal = _refusal(node, number, moving, serial, graph, target, merged)
        if refusal is None and not in_rows:
            refusal = _in_columns(node, number, graph, target)
        if refusal is not None:
            return refusal
    return None


def _in_columns(node: Node, number: int, graph: FusionGraph, target: TargetDescription) -> WhyNot | None:
    """The refusal of a member of many elements that would be traversed in columns though nothing is reduced."""
    walked = 2 * assumed_size(graph.num_bytes(node.op.results[number]))
    elements, costs = assumed_size(product(node.loops)), target.costs
    if walked <= costs.cached_bytes and (target.threads == 1 or elements <= costs.serial_elements):
        return None
    detail = f"{node.name} would be walked in columns, {walked:,} bytes that lie in rows"
    return WhyNot("strided-inner", detail, node.name, {"walked_bytes": float(walked)})


def short_runs_ns(group: Group, demoted: frozenset[int], costs: MachineCosts) -> float:
    """What it takes longer, nanoseconds of one thread, that members traverse runs which end before a vector does."""
    longer = 0.0
    for node, _, moving, serial in _walks(group, demoted):
        extents = [assumed_size(node.loops[loop]) for loop in moving]
        elements = assumed_size(product(node.loops))
        longer += _empty_lanes(extents, serial, costs.lanes) * elements * max(1, node.operations) * costs.operation_ns
    return longer


def _empty_lanes(extents: Sequence[int], serial: Sequence[bool], lanes: int) -> float:
    """Lanes that runs leave empty beside those that they fill; of groups those that all their columns together do: rows
    by themselves end before a vector, too."""
    if _in_groups(extents, serial, lanes):
        return max(0.0, lanes / max(1, prod(extents[-2:])) - 1)
    run = _run(extents, serial)
    return -(-run // lanes) * lanes / run - 1 if serial[-1] else 0.0


def _walks(group: Group, demoted: frozenset[int]) -> Iterator[tuple[Node, int, list[int], list[bool]]]:
    """The results of members whose serial loops would lie around some of the grid: the loops that move along them, and
    which of those are serial."""
    for node in group.members if demoted else ():
        if node in group.inlined:
            continue
        for number, axes in enumerate(node.written):
            moving = [loop for loop in axes if loop is not None and node.loops[loop] != 1]
            grids = [group.grid_loop_of[node][loop] for loop in moving]
            serial = [grid is None or grid in demoted for grid in grids]
            if any(serial) and serial != sorted(serial):
                yield node, number, moving, serial


def _run(extents: Sequence[int], serial: Sequence[bool]) -> int:
    """Elements that lie side by side in a row: of the last loops, as far as they are serial."""
    last = next((i for i in reversed(range(len(serial))) if not serial[i]), -1)
    return max(1, prod(extents[last + 1 :]))


def _refusal(
    node: Node,
    number: int,
    moving: list[int],
    serial: list[bool],
    graph: FusionGraph,
    target: TargetDescription,
    merged: Group | None,
) -> WhyNot | None:
    extents = [assumed_size(node.loops[loop]) for loop in moving]
    elements = prod(extents)
    size = assumed_size(graph.num_bytes(node.op.results[number])) // max(elements, 1)
    block, row = prod(extents[serial.index(True) :]) * size, _row(extents, serial) * size
    grouped = _in_groups(extents, serial, target.costs.lanes)
    # rows no longer than a cache line are traversed along memory whatever the order, and so are those of groups
    along = (
        block <= target.costs.cached_bytes
        or grouped
        or row <= LINE_BYTES
        or _lie_beside(node.loops[moving[-1]], serial, target)
        or _is_low([node.loops[loop] for loop in moving], serial, size, target.costs.lanes, merged)
    )
    if not along:
        numbers = {"block_bytes": float(block), "cached_bytes": float(target.costs.cached_bytes)}
        return WhyNot("strided-inner", f"{node.name} would walk {block:,} bytes across rows, again", node.name, numbers)
    workgroups = _workgroups(extents, serial, target.costs.lanes)
    if workgroups < target.threads and elements > target.costs.serial_elements:
        numbers = {"workgroups": float(workgroups), "threads": float(target.threads)}
        what = f"{workgroups} blocks of columns for {target.threads} threads"
        return WhyNot("parallelism", what, node.name, numbers)
    return None


def _lie_beside(columns: Dim, serial: Sequence[bool], target: TargetDescription) -> bool:
    """Whether the one thread there is traverses rows of so many columns whole; several would share the columns out."""
    return target.threads == 1 and not serial[-1] and fits_beside(columns, target.costs.lanes)


def _pays_down_many_rows(group: Group) -> bool:
    """Whether traversing a group's rows down their columns saves several traversals, or functions come between."""
    if group.reduces and any(node.functions for node in group.members):
        return True
    around = set(group.members)
    for _ in range(STEPS_AROUND):
        around |= {other for node in around if node in group.members or _passes(node) for other in _beside(node)}
    return sum(node.reduces and not node.heavy for node in around) > 1


def _passes(node: Node) -> bool:
    """Whether a reduction on the other side of a node may be of the same rows: of a norm, the variance beside the
    mean."""
    return node.kind is Kind.ELEMENTWISE


def _beside(node: Node) -> Iterator[Node]:
    """The nodes that a node reads from and those that read it."""
    yield from (read.producer for read in node.reads if read.producer is not None)
    yield from (read.consumer for read in node.readers)


def _is_low(extents: Sequence[Dim], serial: list[bool], size: int, lanes: int, merged: Group | None) -> bool:
    """Whether rows below each other are so few that their columns stay in a cache whatever is beside them."""
    if serial[-1]:
        return False
    rows = prod(assumed_size(extent) for extent, is_serial in zip(extents, serial, strict=True) if is_serial)
    row = product(extents[len(serial) - serial[::-1].index(True) :])
    on_top = isinstance(row, int) and row * size % PAGE_BYTES == 0
    if on_top and lanes < WIDE_LANES:
        return rows <= FEW_ROWS
    return rows <= LOW_ROWS or (rows <= HIGH_ROWS and merged is not None and _pays_down_many_rows(merged))


def _in_groups(extents: Sequence[int], serial: Sequence[bool], lanes: int) -> bool:
    """Whether the last loop is along the columns of a group, the one before along groups."""
    return list(serial[-2:]) == [False, True] and True in serial[:-2] and is_group(extents[-1], lanes)


def _workgroups(extents: Sequence[int], serial: Sequence[bool], lanes: int) -> int:
    """How many workgroups rows can be shared out among: by the loops that are not serial, the last in blocks of
    columns."""
    blocks, before = 1, len(extents)
    if _in_groups(extents, serial, lanes):
        blocks, before = most_blocks(prod(extents[-2:]), extents[-1], lanes), len(extents) - 2
    elif not serial[-1]:
        blocks, before = max(1, extents[-1] // COLUMNS), len(extents) - 1
    return blocks * prod(extent for extent, inside in zip(extents[:before], serial, strict=False) if not inside)


def _row(extents: Sequence[int], serial: Sequence[bool]) -> int:
    """Elements from one step of the serial loops outside of the grid's to the next."""
    if not serial[-1]:
        return extents[-1]
    first = serial.index(True)
    rows = prod(extent for extent, is_serial in zip(extents, serial, strict=True) if is_serial) // _run(extents, serial)
    return prod(extents[first:]) // max(1, rows)
