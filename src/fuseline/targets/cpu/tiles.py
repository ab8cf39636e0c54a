"""Register tiles and workgroup blocks: pure functions of the shape and the machine.

A tile is `rows x (vectors * lanes)` accumulators held in registers over the whole reduction. Each step of the reduction
loads one vector of columns per `vectors`, broadcasts one element per row, and issues `rows * vectors` multiply-adds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd

from fuseline.analysis.packings import (
    MOST_BLOCKS,
    PANELS_PER_PACKING,
    TILES_PER_PACKING,
    blocks_with_work,
    groups_of_columns,
)
from fuseline.ir.costs import ASSUMED_SIZE, LINE_BYTES
from fuseline.targets.cpu.isa.core_rates import (
    FMA_LATENCY,
    FMA_PER_CYCLE,
    L1_SETS,
    L2_VECTORS_PER_CYCLE,
    LOADS_PER_CYCLE,
    SHARED_CACHE_BYTES,
)
from fuseline.targets.cpu.isa.description import Machine

MAX_VECTORS = 8
"""Wider tiles gain nothing (8 accumulators hide the latency) and leave a product of one row too few panels to share
out."""

MAX_ROWS = 32

COLUMN_CYCLES, ROW_CYCLES = 0.1, 0.015
"""Cycles of a step that every column vector and every row takes beside what bounds the step: columns come from the
second-level cache or from beyond, elements of rows from the first, and other work does not hide all of it.

Every tile of 344 kernels of 17 models timed on 2 ISAs: columns of 0.02 to 0.15 choose alike, 15 kernels are faster
(7x512x4608 in 7x48: 0.7 to 0.88 of the time of 6x64, which is 4 rows and 3), none slower by more than noise; 0.2 makes
10 slower, and so do rows of 0.025.
"""

Share = Callable[[int, int], float]
"""`(first row, rows) -> share of the steps of the reduction that a tile of these rows takes`: others are padding."""

TILES_PER_PANEL = 8
"""Rows are blocked for the second-level cache in no smaller groups: reading panels anew for each would cost more
(128x768x3072: 90 % of peak in groups of 4 tiles, 94 % in one of 22)."""


@dataclass(frozen=True, slots=True)
class Tile:
    """`rows` by `vectors` accumulators of one vector each."""

    rows: int
    vectors: int


@dataclass(frozen=True, slots=True)
class RowSplit:
    """An extent as `tall` tiles of `height` rows, then `short` tiles of `height - 1`: no thin tile at the end."""

    height: int
    tall: int
    short: int

    @property
    def count(self) -> int:
        """How many tiles there are."""
        return self.tall + self.short


@dataclass(frozen=True, slots=True)
class Blocks:
    """What one workgroup covers: `lines` of the second-to-last row loop, `tiles` along the last one, `panels` of
    columns.

    `columns_outer`: the grid counts columns slowest, so that a thread's consecutive workgroups share column panels
    rather than rows.
    """

    lines: int
    tiles: int
    panels: int
    columns_outer: bool


def split_rows(extent: int, rows: int) -> RowSplit:
    """`extent` in the fewest tiles of at most `rows`, heights as equal as can be.

    >>> split_rows(14, 6)
    RowSplit(height=5, tall=2, short=1)
    >>> split_rows(12, 6)
    RowSplit(height=6, tall=2, short=0)
    """
    count = max(1, -(-extent // rows))
    base, tall = divmod(extent, count)
    return RowSplit(base + 1, tall, count - tall) if tall else RowSplit(base, count, 0)


def split_in_tiles(extent: int, height: int) -> RowSplit:
    """`extent` in tiles of `height` rows and of one less; they must add up to it.

    >>> split_in_tiles(49, 13)
    RowSplit(height=13, tall=1, short=3)
    """
    count = max(1, -(-extent // height))
    short = count * height - extent
    return RowSplit(height, count - short, short)


def is_in_tiles(extent: int, height: int) -> bool:
    """Whether an extent is tiles of a height and of one less.

    >>> is_in_tiles(25, 9), is_in_tiles(25, 10)
    (True, False)
    """
    return -(-extent // height) * (height - 1) <= extent and (extent >= height or extent == height - 1)


def fits(rows: int, vectors: int, machine: Machine, temporaries: int = 1) -> bool:
    """Whether the accumulators, the column vectors and what else a step holds (a broadcast) fit the registers (one more
    ran at half speed)."""
    columns = vectors if rows > 1 else 1  # used once, a column vector is a memory operand
    return rows * vectors + columns + temporaries <= machine.vector_registers


def step_cycles(rows: int, vectors: int) -> float:
    """Modelled cycles of one reduction step of a tile: multiply-adds, loads, columns from cache, or the latency of one
    chain: the longest."""
    return max(
        rows * vectors / FMA_PER_CYCLE, (rows + vectors) / LOADS_PER_CYCLE, vectors / L2_VECTORS_PER_CYCLE, FMA_LATENCY
    )


def cached_rows(stride_bytes: int, machine: Machine) -> int:
    """How many rows `stride_bytes` apart stay in the first-level cache together, two ways left to other streams.

    >>> from fuseline.targets.cpu.isa import machine
    >>> cached_rows(4096, machine("avx2")), cached_rows(4096 + 64, machine("avx2"))
    (6, 384)
    """
    sets = LINE_BYTES * L1_SETS // gcd(stride_bytes, LINE_BYTES * L1_SETS) if stride_bytes else L1_SETS
    ways = machine.l1_bytes // (LINE_BYTES * L1_SETS)
    return max(1, ways - 2) * min(sets, L1_SETS)


def choose_tile(
    rows: int | None,
    columns: int | None,
    lanes: int,
    machine: Machine,
    *,
    most_rows: int = MAX_ROWS,
    most_vectors: int = MAX_VECTORS,
    temporaries: int = 1,
    share: Share | None = None,
    counts_loads: bool = True,
) -> Tile:
    """The tile with the least modelled cycles per step over all `rows x columns`, in the tiles that rows are really cut
    into; None stands for a large unknown extent. No more than `most_rows`; `temporaries` are the registers that a step
    needs beside accumulators and columns; `share`: the steps that tiles take, where not all do.

    Ties go to the larger tile, then to more rows.
    """
    row_count, column_count = _assumed(rows, columns)
    step = _loaded_step_cycles if counts_loads else step_cycles
    best: tuple[float, int, int] | None = None
    chosen = Tile(1, 1)
    for vectors in range(1, most_vectors + 1):
        for height in range(1, min(machine.vector_registers, most_rows + 1)):
            if (
                not fits(height, vectors, machine, temporaries)
                or height > row_count
                or vectors > -(-column_count // lanes)
            ):
                break
            cycles = _cycles(row_count, column_count, Tile(height, vectors), lanes, share, step)
            key = (round(cycles, 3), -height * vectors, -height)
            if best is None or key < best:
                best, chosen = key, Tile(height, vectors)
    return chosen


def _assumed(rows: int | None, columns: int | None) -> tuple[int, int]:
    """Extents, those that only the run knows taken as large."""
    return rows or 3 * ASSUMED_SIZE, columns or 8 * ASSUMED_SIZE


def tile_cycles(rows: int | None, columns: int | None, tile: Tile, lanes: int, share: Share | None = None) -> float:
    """The modelled cycles of one reduction step over all `rows x columns` (None: a large unknown extent), which the
    choice of tiles goes by."""
    return _cycles(*_assumed(rows, columns), tile, lanes, share, _loaded_step_cycles)


def _loaded_step_cycles(rows: int, vectors: int) -> float:
    return step_cycles(rows, vectors) + COLUMN_CYCLES * vectors + ROW_CYCLES * rows


def _cycles(
    rows: int, columns: int, tile: Tile, lanes: int, share: Share | None, step: Callable[[int, int], float]
) -> float:
    split = split_rows(rows, tile.rows)
    whole, rest = divmod(columns, tile.vectors * lanes)
    widths = [(whole, tile.vectors)] + ([(1, -(-rest // lanes))] if rest else [])
    heights = [
        (_tiles_of(split, share, tall=True), split.height),
        (_tiles_of(split, share, tall=False), split.height - 1),
    ]
    return sum(a * b * step(h, v) for a, h in heights if a for b, v in widths if a)


def _tiles_of(split: RowSplit, share: Share | None, *, tall: bool) -> float:
    """How many tiles of a height there are, each as the share of the steps that it takes."""
    if share is None:
        return split.tall if tall else split.short
    height = split.height if tall else split.height - 1
    first, count = (0, split.tall) if tall else (split.tall * split.height, split.short)
    return sum(share(first + number * height, height) for number in range(count))


@dataclass(frozen=True, slots=True)
class BlockedWork:
    """What the choice of blocks looks at: counts (of outer points, row lines, tiles per line, panels), sizes of a tile,
    bytes of operands.

    `serial`: one thread runs them all, so that only caches ask for more than one. `tiles_per_packing`: how many of
    lines times tiles use a panel that a workgroup packs, at least. `threads`: between which blocks have to balance,
    None where that is not known.
    """

    outer: int
    lines: int
    tiles: int
    panels: int
    tile_flops: int
    lhs_bytes: int
    rhs_bytes: int
    repacks_rhs: bool = False
    serial: bool = False
    repacks_lhs: bool = False
    tiles_per_packing: int = TILES_PER_PACKING
    threads: int | None = None


def choose_blocks(work: BlockedWork, machine: Machine) -> Blocks:
    """Enough workgroups to balance, each with enough work, rows blocked for the second-level cache, the larger operand
    read once."""
    p = work
    flops = p.outer * p.lines * p.tiles * p.panels * p.tile_flops
    wanted = 1 if p.serial else -(-blocks_with_work(flops, p.lhs_bytes + p.rhs_bytes) // p.outer)
    columns_outer = p.panels > 1 and (p.repacks_rhs or (p.rhs_bytes > p.lhs_bytes and not p.repacks_lhs))
    line_tiles = p.lines * p.tiles
    cache_groups = _cache_groups(p, line_tiles, machine) if p.panels > 1 and not p.repacks_rhs else 1
    most = max(1, line_tiles // p.tiles_per_packing) if p.repacks_rhs else line_tiles
    most_columns = max(1, p.panels // PANELS_PER_PACKING) if p.repacks_lhs else p.panels
    if columns_outer:
        column_groups = min(most_columns, wanted)
        row_groups = min(most, max(-(-wanted // column_groups), cache_groups))
    else:
        row_groups = min(most, max(wanted, cache_groups))
        column_groups = min(most_columns, -(-wanted // row_groups), _column_groups(p, row_groups, machine))
    line_groups = min(p.lines, row_groups)
    tile_groups = min(p.tiles, -(-row_groups // line_groups))
    return Blocks(-(-p.lines // line_groups), -(-p.tiles // tile_groups), -(-p.panels // column_groups), columns_outer)


def _column_groups(work: BlockedWork, row_groups: int, machine: Machine) -> int:
    """In how many groups columns are shared out, at most, where each packs its rows anew."""
    if work.threads is None or not work.repacks_lhs:
        return MOST_BLOCKS
    return groups_of_columns(row_groups, work.threads, work.rhs_bytes, machine.l2_bytes, work.outer)


def _cache_groups(work: BlockedWork, line_tiles: int, machine: Machine) -> int:
    """In how many groups rows stay in the second-level cache; where such groups are too small for a panel, in the cache
    that cores share."""
    groups = -(-2 * work.lhs_bytes // machine.l2_bytes)
    return groups if line_tiles >= groups * TILES_PER_PANEL else -(-2 * work.lhs_bytes // SHARED_CACHE_BYTES)


def shared_out(count: int, most: int) -> int:
    """The size of equal parts of `count`, of at most `most` each (and at least 1)."""
    return -(-count // -(-count // max(1, most)))
