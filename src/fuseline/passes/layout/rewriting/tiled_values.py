"""What a chain of reductions over rows reads, as the rows are: padded, and read tile by tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.ir.dim import Dim
from fuseline.passes.layout.rewriting.padded_tiles import PaddedTiles
from fuseline.passes.layout.rewriting.pads import pad
from fuseline.passes.layout.rewriting.permutation import is_init
from fuseline.passes.layout.rewriting.reshapes import init_of_sizes
from fuseline.passes.layout.rewriting.scope import Scope

Axes = Mapping[int, int]
"""Dimension of a value -> dimension of the rows."""

Layout = Sequence[tuple[int, int | None]]
"""The dimensions of a tiled value: which one it was and which part of it, None for one that has no name."""


class TiledValues:
    """Each value that is asked for is padded and cut once; `made` has what the ops of the chain became."""

    def __init__(self, scope: Scope, rows: PaddedTiles) -> None:
        self.scope, self.rows = scope, rows
        self.made: dict[SSAValue, SSAValue] = {}
        self._changed, self._padded = rows.changed, rows.padded
        self._known: dict[tuple[SSAValue, tuple[tuple[int, int], ...], Layout], SSAValue] = {}

    def tiled(self, at: Emitter, value: SSAValue, axes: Axes) -> SSAValue:
        """`value` with dimensions `axes` as the rows have them and in the order of the tiles, the others behind
        them."""
        if value in self.made:
            return self.made[value]
        layout = self.layout(len(shape_of(value)), axes)
        changed = {axis: name for axis, name in axes.items() if name in self._changed}
        if not changed and [axis for axis, _ in layout] == list(range(len(layout))):
            return value
        if is_init(value):
            return init_of_sizes(self.scope, at, value, self._sizes(self._wider(value, axes), axes, layout))
        key = value, tuple(changed.items()), tuple(layout)
        if key not in self._known:
            self._known[key] = self._tiles(at, self._pad(at, value, axes), axes, layout)
        return self._known[key]

    def layout(self, rank: int, axes: Axes) -> Layout:
        """The dimensions of a value of `rank` once it is tiled."""
        axis_of = {name: axis for axis, name in axes.items()}
        parts = [(axis_of[name], part) for name, part in self.rows.tiles.order if name in axis_of]
        return [*parts, *[(axis, None) for axis in range(rank) if axis not in axes]]

    def _wider(self, value: SSAValue, axes: Axes) -> list[Dim]:
        dims = self.scope.dims(value)
        return [self.rows.wider(axes[axis], size) if axis in axes else size for axis, size in enumerate(dims)]

    def _sizes(self, dims: Sequence[Dim], axes: Axes, layout: Layout) -> list[Dim]:
        return [dims[axis] if part is None else self.rows.tiles.factors[axes[axis]][part] for axis, part in layout]

    def _pad(self, at: Emitter, value: SSAValue, axes: Axes) -> SSAValue:
        """`value` with zeros around it: whatever they lead to is not chosen in the end."""
        if not self._padded & set(axes.values()):
            return value
        low, high = (
            [self._number(side[axes[axis]]) if axis in axes else 0 for axis in range(len(shape_of(value)))]
            for side in (self.rows.low, self.rows.high)
        )
        shape = [size if isinstance(size, int) else DYNAMIC_INDEX for size in self._wider(value, axes)]
        return pad(at, value, low, high, at.scalar(0, element_of(value)), shape).result

    def _number(self, size: Dim) -> int | SSAValue:
        return size if isinstance(size, int) else self.scope.size_value(size)

    def _tiles(self, at: Emitter, value: SSAValue, axes: Axes, layout: Layout) -> SSAValue:
        """`value` read tile by tile: by a generic of its own, because a sum that reads so itself is a pooling."""
        into = self.scope.empty(at, element_of(value), self._sizes(self.scope.dims(value), axes, layout))
        exprs = [self._coordinate(axis, axes, layout) for axis in range(len(shape_of(value)))]
        map_ = AffineMap(len(layout), 0, tuple(exprs))
        return at.elementwise([value], into, lambda body: body.args[0], [map_])

    def _coordinate(self, axis: int, axes: Axes, layout: Layout) -> AffineExpr:
        if axis not in axes:
            return AffineExpr.dimension(layout.index((axis, None)))
        total = AffineExpr.dimension(layout.index((axis, 0)))
        for part, size in enumerate(self.rows.tiles.factors[axes[axis]][1:], start=1):
            assert isinstance(size, int)
            total = total * size + AffineExpr.dimension(layout.index((axis, part)))
        return total
