"""Blocks of columns: what a workgroup takes of rows that it traverses one below the other, lanes along the rows.

    columns c        |  c  |  c' |  c" |      a workgroup each, all rows s
    groups g of k    | g g | g g | g g |      the same, of whole groups

Lanes along the columns of one group end before a vector does; along those of many groups they are full, and the columns
of each are put together after. That takes another store and load per column, and rows that are longer: measured (1,600
rows of 8 groups, AVX-512, f32), .6 to .7 of the time for groups of 7 to 8, .86 for 20, .95 to .97 for 12 and 24, 1.03
to 1.07 for 33 and 40, and 1.2 to 1.35 for groups that fill their vectors (15, 16, 31, 48, 63).

Rows of few vectors are traversed with all of them side by side.
"""

from __future__ import annotations

from math import lcm

from fuseline.ir.dim import Dim

MOST_BESIDE = 8
"""Vectors of a row that a workgroup puts side by side: half a kilobyte of AVX-512."""

LEAST_COLUMNS = 32
"""Columns of a block at the least: two lines of memory of f32, which are loaded as one."""


def is_group(columns: int, lanes: int) -> bool:
    """Whether lanes along `columns` that are reduced together are so empty that they run along those of several
    groups: one in four is."""
    vectors = -(-columns // lanes)
    return columns > 1 and 4 * columns <= 3 * vectors * lanes


def fits_beside(columns: Dim, lanes: int) -> bool:
    """Whether rows of `columns` are traversed whole: the vectors of one are side by side."""
    return isinstance(columns, int) and columns <= MOST_BESIDE * lanes


def block_step(columns: int, lanes: int) -> int:
    """Of how many columns a block is a multiple: whole vectors, and groups of `columns`."""
    return lcm(columns, lanes)


def shared_out(extent: int, workgroups: int, columns: int, lanes: int) -> int:
    """Columns of a block, in groups of `columns`, where all `extent` are to be shared out among so many workgroups."""
    step = block_step(columns, lanes)
    each = max(LEAST_COLUMNS, -(-extent // max(1, workgroups)))
    return -(-each // step) * step


def most_blocks(extent: int, columns: int, lanes: int) -> int:
    """Into how many blocks `extent` columns, in groups of `columns`, can be shared out."""
    return -(-extent // shared_out(extent, extent, columns, lanes))
