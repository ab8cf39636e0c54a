"""Square tiles for operands that lie across the lanes: loaded as rows of memory, transposed in registers.

        lanes ->
    t   . . . .
    |   . . . .

An op that writes rows and reads columns would gather one element per lane. Instead `lanes` rows of the output are made
together: the operand is loaded in vectors along its own memory, and `lanes` such vectors, transposed, are what the rows
need.

A body that gathers is the other way round. Its places vary across the lanes, but at each place it may read along
memory: then the *values* are made with lanes along that memory, one place after the other, and squares of them are
transposed before they are written (`transposed_tile_loops`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.moves import affine_sources
from fuseline.analysis.structured import StructuredOp, is_generic, splat_value
from fuseline.dispatch.is_internal import is_internal
from fuseline.dispatch.loop_ref import LoopRef
from fuseline.ir.dim import Dim, product, upper_bound
from fuseline.targets.cpu.emit.coordinates import Index
from fuseline.targets.cpu.emit.squares import side_by_side
from fuseline.targets.cpu.families.nests.collapsed_loops import beside_last, neighbours
from fuseline.targets.cpu.families.nests.contiguous_axis import contiguous_axis
from fuseline.targets.cpu.families.nests.gathers import Gather, gathers
from fuseline.targets.cpu.families.nests.recompute_cost import cost
from fuseline.targets.cpu.families.nests.stages import Staging
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand, Value

TILES_PER_WORKGROUP = 4
"""Tiles side by side: 4 of 8 floats use two whole cache lines of the operand before the next row is touched."""

MAX_UNROLLED_OPS = 60
"""Bodies of more operations are not written out once per row of a tile."""

MOST_CHANNELS, LEAST_PIXELS, MAX_INTERLEAVED_OPS = 15, 4, 240
"""Each vector written takes a shuffle of two sources per channel but the first, and the body stands there once per
channel; less pixels are gathered as fast."""


def tiled_loops(
    staging: Staging, collapsed: Sequence[list[LoopRef]], vector_loops: Sequence[LoopRef], lanes: int, least: int = 2
) -> list[LoopRef]:
    """The run of grid axes along which some operand is contiguous while the lanes cross it, one that is a vector long
    if there is any, or has `least` elements; empty if there is none worth tiling."""
    if lanes not in (4, 8, 16) or not _long_enough(staging, vector_loops, lanes):
        return []
    results = set(staging.destinations)
    if any(cost(op, staging.live, results) > MAX_UNROLLED_OPS for op in staging.live):
        return []
    reads = [read for op in staging.live for read in reads_of(staging, op)]
    along = [axis for axis, used in reads if vector_loops[-1] in used and axis not in vector_loops]
    runs = [run for axis in along for run in collapsed if axis == run[-1]]
    long = (run for run in runs if _long_enough(staging, run, lanes))
    return next(long, next((run for run in runs if short_run(staging, run, lanes) >= least), []))


def short_run(staging: Staging, run: Sequence[LoopRef], lanes: int) -> int:
    """How many elements a run has that are known, several and less than a vector; else 0."""
    total = product(staging.axes.extents[axis] for axis in run)
    return total if isinstance(total, int) and 1 < total < lanes else 0


def tile_rows(staging: Staging, run: Sequence[LoopRef], lanes: int) -> int:
    """Rows of a tile along a run: all of one that is less than a vector."""
    return short_run(staging, run, lanes) or TILES_PER_WORKGROUP * lanes


def rest_of_grid(
    staging: Staging, collapsed: Sequence[list[LoopRef]], run: list[LoopRef], lanes: int
) -> list[list[LoopRef]]:
    """The grid without the run that is tiled. Where that is short, workgroups that follow each other go along what lies
    beside it."""
    near = neighbours(staging, run) if short_run(staging, run, lanes) else []
    return beside_last((other for other in collapsed if other is not run), near)


def reads_of(staging: Staging, op: Operation) -> Iterator[tuple[LoopRef | None, set[LoopRef | None]]]:
    """Per tensor in memory that an op reads, the axis along which it is contiguous, and all axes that it varies
    with."""
    if is_generic(op):
        loops = staging.axes.of_op(op)
        for value, map_ in _inputs(op):
            yield contiguous_axis(staging.view.shapes, value, map_.results, loops), {loops[d] for d in map_.used_dims()}
        return
    made = staging.axes.of_value(op.results[0])
    for one in affine_sources(op, staging.view.shapes) or ():
        if splat_value(one.value) is None and not is_internal(one.value):
            axes = {made[c.position] for c in one.at if isinstance(c, AffineDimExpr)}
            yield contiguous_axis(staging.view.shapes, one.value, one.at, made), axes


def transposed_tile_loops(
    staging: Staging, collapsed: Sequence[list[LoopRef]], vector_loops: Sequence[LoopRef], lanes: int
) -> list[LoopRef]:
    """The run of grid axes along which everything that is gathered at places across the lanes lies; empty if there is
    none worth it."""
    if lanes not in (4, 8, 16):
        return []
    for run in collapsed:
        if _long_enough(staging, run, lanes) and _gathers_along(staging, run, vector_loops):
            return run
    return []


def interleaved_channels(staging: Staging, vector_loops: Sequence[LoopRef], lanes: int) -> tuple[int, int]:
    """The extent of the last axis of `vector_loops`, where it is short and something is read along the axis before, and
    of how many lanes vectors are then; else 0 and `lanes`."""
    if len(vector_loops) < 2:
        return 0, lanes
    channels, results = staging.axes.extents[vector_loops[-1]], set(staging.destinations)
    pixels = upper_bound(product(staging.axes.extents[axis] for axis in vector_loops[:-1])) or lanes
    if not isinstance(channels, int) or not 1 < channels <= MOST_CHANNELS or pixels < LEAST_PIXELS:
        return 0, lanes
    small = channels * sum(cost(op, staging.live, results) for op in staging.live) <= MAX_INTERLEAVED_OPS
    along = any(axis == vector_loops[-2] for op in staging.live for axis, _ in reads_of(staging, op))
    return (channels, _lanes_of(pixels, lanes)) if small and along else (0, lanes)


def _lanes_of(pixels: int, lanes: int) -> int:
    """Of vectors that are to be as few as may be where pixels are less than one, elements that are left over alike."""
    fitting = (lanes >> i for i in range(lanes.bit_length()) if LEAST_PIXELS <= lanes >> i <= pixels)
    return lanes if pixels >= lanes else min(fitting, key=lambda n: pixels // n + pixels % n, default=lanes)


def _gathers_along(staging: Staging, run: Sequence[LoopRef], vector_loops: Sequence[LoopRef]) -> bool:
    """Whether some read is gathered across `vector_loops` but lies along `run`, and no other input lies across
    `run`."""
    found = False
    for op in staging.live:
        if not is_generic(op):
            return False
        loops = staging.axes.of_op(op)
        for gather in gathers(op):
            across = any(loops[i] in vector_loops for i in gather.varies)
            along = _last_moving(staging, gather, loops) == run[-1]
            if across and not along:
                return False
            found = found or across
        if any(_lies_across(staging, value, map_, loops, run) for value, map_ in _inputs(op)):
            return False
    return found


def _inputs(op: linalg.ops.GenericOp) -> list[tuple[SSAValue, AffineMap]]:
    structured = StructuredOp(op)
    return [
        (v, m)
        for v, m in zip(structured.inputs, structured.input_maps, strict=True)
        if splat_value(v) is None and not is_internal(v)
    ]


def _lies_across(
    staging: Staging, value: SSAValue, map_: AffineMap, loops: Sequence[LoopRef | None], run: Sequence[LoopRef]
) -> bool:
    """Whether lanes along `run` would meet the elements of an input far apart."""
    used = {loops[d] for d in map_.used_dims()}
    return (
        any(axis in used for axis in run)
        and contiguous_axis(staging.view.shapes, value, map_.results, loops) != run[-1]
    )


def _last_moving(staging: Staging, gather: Gather, loops: Sequence[LoopRef | None]) -> LoopRef | None:
    """The axis along which what is gathered lies in memory."""
    for loop, size in zip(reversed(gather.loops), reversed(staging.view.shapes.dims(gather.source)), strict=True):
        if size != 1:
            return loops[loop] if loop is not None else None
    return None


def _long_enough(staging: Staging, run: Sequence[LoopRef], lanes: int) -> bool:
    total: Dim = product(staging.axes.extents[axis] for axis in run)
    return (upper_bound(total) or lanes) >= lanes


class TileRow:
    """Row `row` of a tile of `rows` rows (`lanes` or fewer) that start at `start` along the tiled run. Loads across the
    lanes go through `load`."""

    def __init__(self, kernel: KernelBuilder, start: Operand, row: int, lanes: int, rows: int) -> None:
        self.kernel, self.start, self.row, self.lanes, self.rows = kernel, start, row, lanes, rows

    def load(self, memory: MemRef, flat: Index, lanes: int) -> Value | None:
        """The elements at `flat`, if the tile has them: the operand must be contiguous along the tiled run."""
        if lanes != self.lanes or coefficient(flat.base, self.start) != 1:
            return None
        base = self.kernel.sub(flat.base, self.row)
        key = ("tile", memory, base, flat.stride)
        rows = self.kernel.recall(key)
        if rows is None:
            columns = [
                self.kernel.load(memory, self.kernel.add(base, flat.stride * lane), self.rows) for lane in range(lanes)
            ]
            rows = transposed(self.kernel, side_by_side(self.kernel, columns))
            self.kernel.remember(key, rows)
        return rows[self.row]


def transposed(kernel: KernelBuilder, rows: Sequence[Value]) -> list[Value]:
    """Squares of vectors transposed, as many as lie side by side: Eklundh's exchange of ever smaller blocks, one
    shuffle per row and block."""
    out, count, lanes = list(rows), len(rows), rows[0].type.lanes
    block = count // 2
    while block:
        low = [lane if not lane & block else lanes + lane - block for lane in range(lanes)]
        high = [lane + block if not lane & block else lanes + lane for lane in range(lanes)]
        for i in range(count):
            if not i & block:
                a, b = out[i], out[i + block]
                out[i], out[i + block] = kernel.shuffle(a, b, low), kernel.shuffle(a, b, high)
        block //= 2
    return out


def coefficient(operand: Operand, variable: Operand) -> int | None:
    """The factor of `variable` in an affine index; None where the index is not affine in it."""
    if operand is variable:
        return 1
    if not isinstance(operand, Value) or not isinstance(variable, Value) or operand.depth < variable.depth:
        return 0
    if operand.op in ("add", "sub"):
        a, b = (coefficient(arg, variable) for arg in operand.args)
        return None if a is None or b is None else a + b * (1 if operand.op == "add" else -1)
    if operand.op == "mul":
        return _product(operand, variable)
    return 0 if operand.op in ("index", "argument", "size", "carried", "result") else None


def _product(operand: Value, variable: Value) -> int | None:
    a, b = operand.args
    inner = coefficient(a, variable)
    if isinstance(b, int):
        return None if inner is None else inner * b
    return 0 if inner == 0 and coefficient(b, variable) == 0 else None
