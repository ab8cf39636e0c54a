"""Whether rows are made faster where they are stored, padded and cut, than where they lie.

Made there, nothing is stored between the reduction and the tiles; but each op that reads them asks whether a row is
inside, and the rows of the padding are reduced, too. Measured on one thread of an AVX-512 machine, layer norms in
windows, time of the one dispatch to that of two or three before: rows of 3 and 8 elements 1.31 and 1.15, 9 x 9 x 64
padded to 16 x 16 1.12, 30 x 30 x 96 in f16 1.16; in f32 30 x 30 x 90 to 50 x 50 x 384 .93 to .83, 20 x 20 x 1001 .49.
"""

from __future__ import annotations

from math import prod

from fuseline.ir.costs import assumed_size
from fuseline.ir.halves import is_half
from fuseline.passes.layout.rewriting.padded_tiles import PaddedTiles
from fuseline.passes.layout.rewriting.reshapes import root_of
from fuseline.passes.layout.rewriting.row_cluster import RowCluster
from fuseline.passes.layout.rewriting.widened_arguments import widened_argument

SHORT_ROW = 16
"""Elements of a row below which it costs more to ask where it lies than to reduce it: a vector of f32."""

MOST_PADDING = 2
"""How many times the elements of the rows there may be in the tiles."""


def slower(rows: PaddedTiles, cluster: RowCluster) -> str | None:
    """Why `rows` stay where they are made; None where their tiles are made faster as one."""
    before = [assumed_size(size) for size in rows.sizes]
    after = [assumed_size(rows.wider(axis, size)) for axis, size in enumerate(rows.sizes)]
    if before[-1] < SHORT_ROW:
        return f"rows of {before[-1]} elements are too short"
    if prod(after) > MOST_PADDING * prod(before):
        return f"{prod(after)} elements would be made of {prod(before)}"
    if any(is_half(value.type) or widened_argument(root_of(value)) is not None for value in cluster.leaves):
        return "halves would be widened by each op that reads them"
    return None
