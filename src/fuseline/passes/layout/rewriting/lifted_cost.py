"""Whether rows are made faster where they are stored, padded and cut, than where they lie.

Made there, nothing is stored between the reduction and the tiles; but each op that reads them asks whether a row is
inside, and the rows of the padding are reduced, too. Measured on one thread of an AVX-512 machine, layer norms in
windows, time of the one dispatch to that of two or three before: rows of 3 and 8 elements 1.31 and 1.15, 9 x 9 x 64
padded to 16 x 16 1.12; in f32 30 x 30 x 90 to 50 x 50 x 384 .93 to .83, 20 x 20 x 1001 .49. Halves are half of the
bytes to store apart, and as long to reduce: rows of 64 to 128 elements .72 to 1.15 in f16, 1.00 to 1.45 in bf16, of 192
.55 to .91 and .90 to 1.23, of 384 and more .49 to .70 and .67 to .68. On one
thread of an AVX2 machine, tiles of 7: f16 of 32 to 128 elements 1.08 to 1.37, of 192 1.00 to 1.07, of 256 and 384 .88
to 1.06; bf16 of 32 to 192 1.01 to 1.60, of 384 1.05 to 1.19, of 512 to 1024 .88 to 1.14.
"""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from fuseline.ir.build import element_of
from fuseline.ir.costs import assumed_size
from fuseline.ir.halves import is_half
from fuseline.passes.layout.rewriting.padded_tiles import PaddedTiles
from fuseline.passes.layout.rewriting.reshapes import root_of
from fuseline.passes.layout.rewriting.row_cluster import RowCluster
from fuseline.passes.layout.rewriting.widened_arguments import widened_argument

SHORT_ROW = 16
"""Elements of a row below which it costs more to ask where it lies than to reduce it: a vector of f32."""

SHORT_HALVES = {"f16": 192, "bf16": 384}
"""The same of rows that are read as halves. bf16 takes six operations to round."""

MOST_PADDING = 2
"""How many times the elements of the rows there may be in the tiles."""


def slower(rows: PaddedTiles, cluster: RowCluster) -> str | None:
    """Why `rows` stay where they are made; None where their tiles are made faster as one."""
    before = [assumed_size(size) for size in rows.sizes]
    after = [assumed_size(rows.wider(axis, size)) for axis, size in enumerate(rows.sizes)]
    if before[-1] < max(map(_shortest, cluster.leaves), default=SHORT_ROW):
        return f"rows of {before[-1]} elements are too short"
    if prod(after) > MOST_PADDING * prod(before):
        return f"{prod(after)} elements would be made of {prod(before)}"
    return None


def _shortest(value: SSAValue) -> int:
    """Elements of a row that pays, where `value` is read along it."""
    read = widened_argument(root_of(value)) or value
    return SHORT_HALVES[element_of(read).name] if is_half(read.type) else SHORT_ROW
