"""The block of a blocked dispatch: how far it reaches along each loop of the grid, and where a tensor's part of it
lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from fuseline.analysis.convolution_dims import linear_terms
from fuseline.dispatch.loop_ref import LoopRef
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.families.blocked.dispatch import BlockedDispatch


@dataclass(frozen=True, slots=True)
class Tile:
    """A loop of the grid in blocks of `size` points; the last one may be shorter.

    `number` is the symbol of the block's number, `rest` that of its extent where blocks differ (None: all have `size`).
    """

    full: Dim
    size: int
    number: str
    rest: str | None

    @property
    def count(self) -> Dim:
        """How many blocks there are."""
        return d.ceil_div(self.full, self.size)

    @property
    def offset(self) -> Dim:
        """Where the block begins."""
        return d.mul(d.symbol(self.number, 0), self.size)

    @property
    def extent(self) -> Dim:
        """How far it reaches."""
        return self.size if self.rest is None else d.symbol(self.rest, 1, self.size)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a loop that each block meets in full: `extent` points from `offset` on."""

    offset: int
    extent: int


@dataclass(frozen=True, slots=True)
class Box:
    """A part of a tensor: where it begins and how large it is, per dimension."""

    offsets: tuple[Dim, ...]
    sizes: tuple[Dim, ...]

    @property
    def begins_at_zero(self) -> bool:
        """Whether it is not moved along any dimension."""
        return all(offset == 0 for offset in self.offsets)

    def within(self, made: Box) -> Box:
        """The box as a part of what a block made of the same tensor: all of that along a dimension which is not read
        from a later place."""
        axes = zip(self.offsets, self.sizes, made.offsets, made.sizes, strict=True)
        pairs = [(d.sub(at, begin), read) if at not in (0, begin) else (0, whole) for at, read, begin, whole in axes]
        return Box(tuple(offset for offset, _ in pairs), tuple(size for _, size in pairs))


class Tiling:
    """The tiles of a dispatch's grid; a loop without one runs in full inside each block, or as much of it as `parts`
    says. `cuts` are both."""

    def __init__(
        self,
        dispatch: BlockedDispatch,
        tiles: Mapping[LoopRef, Tile],
        parts: Mapping[LoopRef, Part] = MappingProxyType({}),
    ) -> None:
        self.dispatch, self.tiles = dispatch, dict(tiles)
        self.cuts: dict[LoopRef, Tile | Part] = {**tiles, **parts}

    def box_of(self, value: SSAValue) -> Box:
        """The part of a value that a block makes."""
        dims = self.dispatch.view.shapes.dims(value)
        found = [self.cuts.get(axis) if axis is not None else None for axis in self.dispatch.axes.of_value(value)]
        offsets = tuple(tile.offset if tile is not None else 0 for tile in found)
        return Box(
            offsets, tuple(tile.extent if tile is not None else size for tile, size in zip(found, dims, strict=True))
        )

    def box_read(
        self, loops: Sequence[LoopRef | None], extents: Sequence[Dim], exprs: Sequence[AffineExpr], dims: Sequence[Dim]
    ) -> Box:
        """The part of a tensor of sizes `dims` that an op over `loops` of `extents` reads at `exprs` while it makes a
        block."""
        pairs = [self._read(loops, extents, expr, size) for expr, size in zip(exprs, dims, strict=True)]
        return Box(tuple(offset for offset, _ in pairs), tuple(size for _, size in pairs))

    def _read(
        self, loops: Sequence[LoopRef | None], extents: Sequence[Dim], expr: AffineExpr, size: Dim
    ) -> tuple[Dim, Dim]:
        found = linear_terms(expr)
        terms = found[0] if found is not None else {}
        tiles = {
            loop: tile
            for loop in terms
            if (axis := loops[loop]) is not None and (tile := self.cuts.get(axis)) is not None
        }
        if found is None or not tiles:
            return 0, size
        offset: Dim = 0
        reach: Dim = found[1] + 1
        for loop, coefficient in terms.items():
            tile = tiles.get(loop)
            if tile is not None:
                offset = d.add(offset, d.mul(tile.offset, coefficient))
            extent = tile.extent if tile is not None else extents[loop]
            reach = d.add(reach, d.mul(d.sub(extent, 1), coefficient))
        return offset, reach
