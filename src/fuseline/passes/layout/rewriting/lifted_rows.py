"""A chain of reductions over rows that are padded and cut into tiles where they are read, instead of where they are
made.

    tiles of pad(x * rsqrt(sum(x)), v)      =>      i inside ? x' * rsqrt(sum(x')) : v,   x' = tiles of pad(x)

Outside of the rows nothing is right until the last op, which chooses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith, linalg
from xdsl.ir import OpResult, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint

from fuseline.analysis.structured import StructuredOp
from fuseline.ir.build import Emitter
from fuseline.ir.dim import Dim
from fuseline.ir.fast.create import create_constant
from fuseline.ir.fast.direct import body_of, erase, last_of, operand_of, replace_uses, set_operand
from fuseline.passes.layout.rewriting.generics import index_ops, rebuilt
from fuseline.passes.layout.rewriting.padded_tiles import PaddedTiles
from fuseline.passes.layout.rewriting.row_cluster import Names, RowCluster, named_axes
from fuseline.passes.layout.rewriting.row_tiles import Part
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.tiled_values import TiledValues

Loops = Sequence[int | Part]
"""The loops of an op over tiles: a part of a dimension, or a loop that it had, by its number there."""


class LiftedRows:
    """The ops of `cluster` over tiles; `result` has those of the rows."""

    def __init__(self, scope: Scope, cluster: RowCluster, rows: PaddedTiles) -> None:
        self.scope, self.rows = scope, rows
        self.values = TiledValues(scope, rows)
        lifted = [self._lift(op, names) for op, names in cluster.names.items()]
        self.result, loops = lifted[-1]
        self._choose(loops)

    def _lift(self, op: linalg.ops.GenericOp, names: Names) -> tuple[OpResult, Loops]:
        view, at = StructuredOp(op), Emitter.before(op)
        loops = self._loops(view.rank, names)
        values, maps = list[SSAValue](), list[AffineMap]()
        for value, map_ in zip(view.operands, view.maps, strict=True):
            axes = named_axes(map_, names) or {}
            values.append(self.values.tiled(at, value, axes))
            maps.append(self._map(map_, axes, loops))
        iterators = ["parallel" if isinstance(loop, tuple) else view.iterators[loop] for loop in loops]
        new = rebuilt(op, values[: view.input_count], values[view.input_count :], maps, iterators)
        self.values.made[op.results[0]] = new.results[0]
        for index in index_ops(new):
            self._move_index(index, names, loops)
        return new.results[0], loops

    def _loops(self, rank: int, names: Names) -> Loops:
        """The loops of an op: the parts of those that have names, in order, then the others by their old numbers."""
        named = set(names.values())
        return [
            *[part for part in self.rows.tiles.order if part[0] in named],
            *[loop for loop in range(rank) if loop not in names],
        ]

    def _map(self, map_: AffineMap, axes: Mapping[int, int], loops: Loops) -> AffineMap:
        at: dict[int | Part, AffineExpr] = {loop: AffineExpr.dimension(i) for i, loop in enumerate(loops)}
        rest = [at.get(loop, AffineExpr.constant(0)) for loop in range(map_.num_dims)]
        exprs = [
            at[axes[axis], part] if part is not None else map_.results[axis].replace_dims_and_symbols(rest, [])
            for axis, part in self.values.layout(len(map_.results), axes)
        ]
        return AffineMap(len(loops), 0, tuple(exprs))

    def _move_index(self, index: linalg.ops.IndexOp, names: Names, loops: Loops) -> None:
        loop, at = index.dim.value.data, Emitter(InsertPoint.before(index), location=index.location)
        if loop in names:
            new = self._row(at, names[loop], loops)
        else:
            new = at.add(linalg.ops.IndexOp(loops.index(loop))).result
        replace_uses(index.result, new)
        erase(index)

    def _row(self, at: Emitter, name: int, loops: Loops) -> SSAValue:
        """The coordinate along a dimension of the rows: below 0 and beyond its size in the padding."""
        whole, low = self._whole(at, name, loops), self.rows.low[name]
        return whole if low == 0 else at.add(arith.SubiOp(whole, self._size(at, low))).result

    def _whole(self, at: Emitter, name: int, loops: Loops) -> SSAValue:
        """The coordinate along a dimension of the rows, from its parts."""
        total: SSAValue | None = None
        for i, size in enumerate(self.rows.tiles.factors[name]):
            part = at.add(linalg.ops.IndexOp(loops.index((name, i)))).result
            if total is not None:
                scaled = at.add(arith.MuliOp(total, self._size(at, size))).result
                part = at.add(arith.AddiOp(scaled, part)).result
            total = part
        assert total is not None
        return total

    def _size(self, at: Emitter, size: Dim) -> SSAValue:
        return at.index(size) if isinstance(size, int) else self.scope.size_value(size)

    def _choose(self, loops: Loops) -> None:
        """Let the last op yield the padding outside of the rows."""
        end = last_of(body_of(self.result.op))
        assert end is not None
        at, value = Emitter(InsertPoint.before(end), location=self.result.op.location), operand_of(end, 0)
        outside = at.add(create_constant(self.rows.value, value.type)).result
        for axis in sorted(self.rows.padded):
            row, size = self._row(at, axis, loops), self._size(at, self.rows.sizes[axis])
            inside = at.add(arith.CmpiOp(row, size, "ult")).result
            value = at.add(arith.SelectOp(inside, value, outside)).result
        set_operand(end, 0, value)
