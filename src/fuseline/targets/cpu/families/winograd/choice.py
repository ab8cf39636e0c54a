"""Which minimal filtering a convolution gets, in which blocks, or that it had better be computed directly: a pure
function of the loops, the machine, the threads and the exactness asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import prod

from fuseline.targets.cpu.families.contraction.axes import estimated
from fuseline.targets.cpu.families.family import Policy
from fuseline.targets.cpu.families.winograd.loops import WinogradLoops
from fuseline.targets.cpu.families.winograd.matrices import error_ratio, filtering, has_filtering
from fuseline.targets.cpu.families.winograd.plan import TILE_CYCLES, Blocking, WinogradPlan, winograd_plan
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.tiles import Tile, choose_tile, split_rows, step_cycles
from fuseline.targets.target import Refusal

OUTPUTS = (2, 3, 4, 6, 8)
"""Outputs per tile and axis that are weighed."""

ERROR_LIMIT = {"default": 16.0, "fast": 256.0}
"""The largest RMS error, in that of a direct convolution, that each exactness allows."""

ERROR_MARGIN = 1.45
"""How much more than random signed pixels those err that do not cancel in the mean, as after a relu (measured: up to
1.35)."""

GAIN = 1.08
"""How much faster than directly it must be expected to be: the model is off by so much, and the direct way errs
less."""

TILES = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64)
"""Tiles per block that are weighed, evened out over the image. Each weight is used so often per load; more than 64
times gains nothing."""

AS_CHEAP = 1.02
"""Costs that are closer than this say nothing."""

SCRATCH_BYTES = 2 * 1024 * 1024
"""What a workgroup may use: the scratch of all threads stays within a shared last-level cache."""

PASS_COLUMNS = (64, 32)
"""Columns per pass that are weighed: a block's transformed image is read once per pass."""

PIXEL_CYCLES, RESULT_CYCLES = 1.0, 0.45
"""Per point of a tile, size of its transform and vector: to transform pixels, which come from far, and products."""

SHUFFLE_CYCLES, GATHERED_CYCLES = 1.0, 2.0
"""Per vector of pixels and bit of its lane numbers, to transpose what lies pixel by pixel; per element that is read
from a place of its own."""

EPILOGUE_CYCLES = 2.5
"""Per pixel and vector."""

DIRECT_OVERHEAD = 1.06
"""What a direct convolution takes beyond its multiply-adds: edges, window rows, addresses."""

FIRST_BYTE_CYCLES, NEXT_BYTE_CYCLES = 0.1, 0.02
"""Per byte of a filter read from memory, and read again from the last-level cache: what prefetching does not hide."""

SPILLED_BYTE_CYCLES = 0.05
"""Per byte of scratch that does not stay in the second-level cache between the stages of a block."""

MEMORY_THREADS = 1.5
"""Threads that saturate memory."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """A blocking and the cycles that the busiest thread is expected to take."""

    cycles: float
    blocking: Blocking


def choose(loops: WinogradLoops, machine: Machine, policy: Policy) -> WinogradPlan | Refusal:
    """The plan of least expected time; a refusal where nothing is exact or small enough, or a direct convolution is
    expected to be as fast."""
    found = picked(loops, weighed(loops, machine, policy), machine, policy)
    return found if isinstance(found, Refusal) else winograd_plan(loops, found.blocking, machine)


def weighed(loops: WinogradLoops, machine: Machine, policy: Policy) -> list[Weighed]:
    """The best blocking of every tile size that is exact enough."""
    return [
        best_blocking(loops, outputs, machine, policy)
        for outputs in OUTPUTS
        if refused_filtering(loops, outputs, policy) is None
    ]


def refused_filtering(loops: WinogradLoops, outputs: int, policy: Policy) -> Refusal | None:
    """Why tiles of so many outputs are none for these loops; None where they are exact enough."""
    limit = ERROR_LIMIT.get(policy.numerics)
    if limit is None:
        return Refusal("exact-numerics", "minimal filtering rounds more than a direct convolution")
    if not _applies(loops, outputs):
        return Refusal("no-filtering", f"the image is smaller than a tile, or no F({outputs}, taps) is known")
    if _error(loops, outputs) > limit:
        return Refusal("error-bound", f"it errs more than {limit:g} times a direct convolution")
    return None


def best_blocking(loops: WinogradLoops, outputs: int, machine: Machine, policy: Policy) -> Weighed:
    """The best blocking of a tile size."""
    options = [
        Weighed(winograd_cycles(loops, b, machine, policy.threads), b)
        for b in _blockings(loops, outputs, machine, policy.threads)
    ]
    return _best_near(options, loops, machine)


def _best_near(options: Sequence[Weighed], loops: WinogradLoops, machine: Machine) -> Weighed:
    """The best blocking; of those whose scratch leaves half of the second-level cache to the filter, where one is
    expected to cost as much."""
    best = min(options, key=lambda one: one.cycles)
    near = [one for one in options if 2 * scratch_bytes(loops, one.blocking, machine) <= machine.l2_bytes]
    return min((one for one in near if one.cycles <= AS_CHEAP * best.cycles), key=lambda one: one.cycles, default=best)


def picked(loops: WinogradLoops, options: Sequence[Weighed], machine: Machine, policy: Policy) -> Weighed | Refusal:
    """The fastest of `options` whose filter is not too large."""
    limit = ERROR_LIMIT.get(policy.numerics)
    if limit is None:
        return Refusal("exact-numerics", "minimal filtering rounds more than a direct convolution")
    if not options:
        return Refusal("error-bound", f"every filtering errs more than {limit:g} times a direct convolution")
    small = [one for one in options if growth(loops, one.blocking) <= policy.filter_growth]
    if not small:
        return Refusal(
            "filter-memory", f"every transformed filter is more than {policy.filter_growth:g} times as large"
        )
    best = min(small, key=lambda one: one.cycles)
    direct = direct_cycles(loops, machine, policy.threads)
    if direct < GAIN * best.cycles:
        return Refusal("direct-is-faster", f"{best.cycles:.3g} cycles are expected, {direct:.3g} directly")
    return best


def growth(loops: WinogradLoops, b: Blocking) -> float:
    """The size of the transformed filter over that of the filter.

    The filter itself is kept behind it for tiles that are made directly (`direct.py`) and is not counted: no program
    reads it while all is finite, so the pages of a mapped artifact that hold it are never loaded.
    """
    return b.points / loops.taps


def _applies(loops: WinogradLoops, outputs: int) -> bool:
    small = all(isinstance(axis.outputs, int) and outputs > axis.outputs + 1 for axis in loops.windows)
    return not small and all(has_filtering(outputs, axis.taps) for axis in loops.windows)


def _error(loops: WinogradLoops, outputs: int) -> float:
    return ERROR_MARGIN * error_ratio([filtering(outputs, axis.taps) for axis in loops.windows], loops.channels)


def _blockings(loops: WinogradLoops, outputs: int, machine: Machine, threads: int) -> Iterator[Blocking]:
    total = tile_count(loops, outputs)
    for tiles in sorted({-(-total // -(-total // min(t, total))) for t in TILES}):
        for columns in PASS_COLUMNS:
            whole = blocking(loops, outputs, tiles, columns, machine)
            if tiles > 1 and scratch_bytes(loops, whole, machine) > SCRATCH_BYTES:
                continue
            yield from (
                replace(whole, passes=passes)
                for passes in sorted({-(-whole.passes // g) for g in (1, threads, 2 * threads)})
            )


def tile_count(loops: WinogradLoops, outputs: int) -> int:
    """Tiles of `outputs` per axis; an outer loop of unknown extent is taken to run once."""
    extents = loops.contraction.extents
    outer = prod(extent for loop in loops.outer if isinstance(extent := extents[loop], int))
    return outer * prod(-(-estimated(axis.outputs) // outputs) for axis in loops.windows)


def blocking(
    loops: WinogradLoops, outputs: int, tiles: int, columns: int, machine: Machine, *, passes: int | None = None
) -> Blocking:
    """F(outputs, taps) along every window, in blocks of `tiles` and passes of about `columns`, `passes` of them (None:
    all) in a workgroup."""
    lanes = machine.lanes("f32")
    axes = tuple(filtering(outputs, axis.taps) for axis in loops.windows)
    tile = _tile(tiles, loops.columns, lanes, machine)
    width = tile.vectors * lanes
    panels = max(1, min(columns, loops.columns) // width)
    return Blocking(axes, tiles, tile, panels, passes or -(-loops.columns // (width * panels)))


@cache
def _tile(rows: int, columns: int, lanes: int, machine: Machine) -> Tile:
    """By what bounds a step alone: widths that are no part of a pass cost more than their loads save (16 tiles by 512
    columns in 8x48: 1.2 times as long as in 8x32)."""
    return choose_tile(rows, columns, lanes, machine, counts_loads=False)


# the model ------------------------------------------------------------------------------------------------------------


def scratch_bytes(loops: WinogradLoops, b: Blocking, machine: Machine) -> int:
    """The transformed image and the products."""
    columns = b.panels * b.tile.vectors * machine.lanes("f32")
    return b.points * b.tiles * (loops.channels + columns) * 4


def winograd_cycles(loops: WinogradLoops, b: Blocking, machine: Machine, threads: int) -> float:
    """Expected cycles of the busiest thread."""
    lanes = machine.lanes("f32")
    width = b.tile.vectors * lanes
    passes = -(-loops.columns // (width * b.panels))
    groups = -(-passes // b.passes)
    blocks = -(-tile_count(loops, b.axes[0].outputs) // b.tiles)
    mine = -(-blocks * groups // threads)
    vectors = b.passes * b.panels * b.tile.vectors
    size = max(axis.size for axis in b.axes)
    tile_count_ = split_rows(b.tiles, b.tile.rows).count
    products = (
        b.points * b.passes * b.panels * (loops.channels * _step_cycles(b.tiles, b.tile) + tile_count_ * TILE_CYCLES)
    )
    results = b.tiles * vectors * (b.points * size * RESULT_CYCLES + b.outputs * EPILOGUE_CYCLES)
    results += SPILLED_BYTE_CYCLES * max(0, scratch_bytes(loops, b, machine) - machine.l2_bytes)
    pixels = b.points * size * PIXEL_CYCLES + _reading_cycles(loops, b, lanes)
    pixels *= b.tiles * -(-loops.channels // lanes)
    compute = mine * (products + results) + -(-mine // groups) * pixels
    return compute + _filter_cycles(
        b.points * loops.channels * passes * b.panels * width * 4, mine / groups, machine, threads
    )


def _reading_cycles(loops: WinogradLoops, b: Blocking, lanes: int) -> float:
    """What a tile's vectors of channels take more than where channels lie side by side."""
    lying, vectors, shuffles = loops.lying, b.points, 0.0
    if lying.turned is not None:
        size = b.axes[lying.turned].size
        vectors = b.points // size * -(-size // lanes) * lanes
        shuffles = SHUFFLE_CYCLES * (lanes.bit_length() - 1)
    return vectors * (shuffles + GATHERED_CYCLES * lanes * lying.gathered)


def direct_cycles(loops: WinogradLoops, machine: Machine, threads: int) -> float:
    """Expected cycles of the busiest thread of a direct convolution."""
    lanes = machine.lanes("f32")
    rows = estimated(loops.contraction.rows[-1].extent)
    lines = tile_count(loops, 1) / rows
    tile = _tile(rows, loops.columns, lanes, machine)
    whole, rest = divmod(loops.columns, tile.vectors * lanes)
    steps = loops.channels * loops.taps
    compute = lines * steps * whole * _step_cycles(rows, tile)
    if rest:
        compute += lines * steps * _step_cycles(rows, Tile(tile.rows, -(-rest // lanes)))
    return DIRECT_OVERHEAD * compute / threads + _filter_cycles(steps * loops.columns * 4, 1, machine, threads)


def _step_cycles(rows: int, tile: Tile) -> float:
    """One step of the reduction of all rows and one panel."""
    split = split_rows(rows, tile.rows)
    return split.tall * step_cycles(split.height, tile.vectors) + split.short * step_cycles(
        split.height - 1, tile.vectors
    )


def _filter_cycles(size: int, times: float, machine: Machine, threads: int) -> float:
    """To read a filter of `size` bytes from memory once, and on every thread `times` in all."""
    again = NEXT_BYTE_CYCLES if 2 * size > machine.l2_bytes else 0.0
    return size * (FIRST_BYTE_CYCLES / min(threads, MEMORY_THREADS) + max(times - 1, 0) * again)
