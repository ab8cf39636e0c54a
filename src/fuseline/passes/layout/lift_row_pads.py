"""lift-row-pads: what is padded and cut into tiles behind a reduction over rows and its readers is padded and cut where
those read it.

    %n = x / sum(x)  (30, 30, 96)
    %p = pad %n to (35, 35, 96)
    %e = expand %p to 5 x 7 x 5 x 7 x 96                %p = (i, k, j, l) of pad x at 7 * i + j, 7 * k + l
    %t = transpose %e [0, 2, 1, 3, 4]          =>       %t = inside ? %p / sum(%p) : 0

Nothing stands between the reduction and the tiles then: one dispatch. Windows of attention over an image are such tiles
(Z. Liu et al., Swin Transformer, 2021), and the packed operands of a product, which rows and columns are padded for.

Refused, with a note: a chain that reads a value under two namings of its dimensions (columns that are padded, and
summed), values that are made for the rows alone and would be made again for each op that reads them, integers that are
divided, which zeros around them would stop, and what takes longer so (`rewriting/lifted_cost.py`). Where a product
reads the tiles, it reads the pad in place, and all stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import OpResult

from fuseline.analysis.structured import StructuredOp
from fuseline.ir.dim import Dim
from fuseline.ir.fast.direct import ops_of, replace_uses
from fuseline.ir.provenance import node_names
from fuseline.passes.layout.rewriting.lifted_cost import slower
from fuseline.passes.layout.rewriting.lifted_rows import LiftedRows
from fuseline.passes.layout.rewriting.loops import can_expand, expand_loops
from fuseline.passes.layout.rewriting.padded_tiles import PaddedTiles, padded_tiles
from fuseline.passes.layout.rewriting.reshapes import Groups, grouped, segments
from fuseline.passes.layout.rewriting.row_cluster import NO_CHAIN, Names, RowCluster, row_cluster
from fuseline.passes.layout.rewriting.row_tiles import tiles_of
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass

Factors = Sequence[Sequence[Dim]]


@dataclass(frozen=True)
class LiftRowPadsPass(ScopedPass):
    """Has no options."""

    name = "lift-row-pads"

    def rewrite(self, scope: Scope) -> None:
        """Whatever makes tiles, in order."""
        scope.lift_sizes()
        for op in ops_of(scope.block):
            tiles = tiles_of(scope, op) if op.parent is not None else None
            rows = padded_tiles(scope, tiles) if tiles is not None else None
            if rows is not None and _lift(scope, rows):
                scope.sweep()


def _lift(scope: Scope, rows: PaddedTiles) -> bool:
    """Whether the pad of `rows` and their tiles stand where the rows are read now."""
    groups, tiles, named = _groups(scope, rows), rows.tiles, rows.named
    if groups is None:
        return False
    axes = [axis for axis, group in enumerate(groups) if len(group) > 1 or named & {*group}]
    cluster = row_cluster(scope, rows.rows, axes)
    cut = [[size for axis in group for size in tiles.factors[axis]] for group in groups]
    refused = cluster.refused or slower(rows, cluster)
    if refused is not None or not _can_split(scope, cluster, cut):
        if refused not in (None, NO_CHAIN):
            names = node_names(rows.rows.op) or "an op"
            scope.ctx.records.notes.append(f"{names}: padded and cut into tiles behind its rows: {refused}")
        return False
    opened = _split(scope, cluster, [[rows.sizes[axis] for axis in group] for group in groups])
    scope.sweep()  # reshapes that nothing reads are readers, too
    lifted = LiftedRows(scope, row_cluster(scope, opened, sorted(named)), rows)
    replace_uses(tiles.result, tiles.replacement(scope, lifted.result))
    return True


def _groups(scope: Scope, rows: PaddedTiles) -> Groups | None:
    """The dimensions that each one of the rows is read as; None where several are read as one."""
    counts = segments(scope.dims(rows.rows), rows.sizes)
    return grouped([right for _, right in counts]) if all(left == 1 for left, _ in counts) else None


def _can_split(scope: Scope, cluster: RowCluster, factors: Factors) -> bool:
    return all(can_expand(scope, StructuredOp(op), _splits(names, factors)) for op, names in cluster.names.items())


def _splits(names: Names, factors: Factors) -> dict[int, Sequence[Dim]]:
    return {loop: factors[name] for loop, name in names.items() if len(factors[name]) > 1}


def _split(scope: Scope, cluster: RowCluster, factors: Factors) -> OpResult:
    """The loops of `cluster` split; answers what the last one makes then."""
    rows: OpResult | None = None
    for op, names in cluster.names.items():
        splits = _splits(names, factors)
        rows = (expand_loops(scope, op, splits) if splits else op).results[0]
    assert rows is not None
    return rows


EXPORT = LiftRowPadsPass
