"""What becomes of the rows that a chain of reductions makes, read off the ops behind it: padded, then cut into tiles.

rows (30, 30, 96) -> pad to (35, 35, 96) -> expand to (5, 7, 5, 7, 96) -> transpose
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, tensor
from xdsl.ir import Attribute, OpResult

from fuseline.analysis.structured import is_generic, producer_of
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim, lower_bound
from fuseline.passes.layout.rewriting.mixed import Mixed
from fuseline.passes.layout.rewriting.pads import high_of, low_of, uniform_value
from fuseline.passes.layout.rewriting.permutation import is_shared
from fuseline.passes.layout.rewriting.row_tiles import Tiles
from fuseline.passes.layout.rewriting.scope import Scope


@dataclass(frozen=True, slots=True)
class PaddedTiles:
    """The result `rows` of a generic, read with `sizes`, has `low` and `high` elements of `value` put around it, and
    `tiles` are made of that."""

    rows: OpResult
    sizes: Sequence[Dim]
    low: Sequence[Dim]
    high: Sequence[Dim]
    value: Attribute
    tiles: Tiles

    @property
    def padded(self) -> set[int]:
        """The dimensions that are padded."""
        return {axis for axis, pair in enumerate(zip(self.low, self.high, strict=True)) if pair != (0, 0)}

    @property
    def changed(self) -> set[int]:
        """The dimensions that are padded or cut."""
        return self.padded | {axis for axis, sizes in enumerate(self.tiles.factors) if len(sizes) > 1}

    @property
    def named(self) -> set[int]:
        """All dimensions but those at the end of the tiles that stay as they are: of them nobody needs to know."""
        order, changed = self.tiles.order, self.changed
        end = len(order)
        while end and order[end - 1][0] not in changed and list(order[end - 1 :]) == sorted(order[end - 1 :]):
            end -= 1
        return changed | {axis for axis, _ in order[:end]}

    def wider(self, axis: int, size: Dim) -> Dim:
        """A dimension of `size` once it is padded as `axis` is."""
        return d.sum_of([size, self.low[axis], self.high[axis]])


def padded_tiles(scope: Scope, tiles: Tiles) -> PaddedTiles | None:
    """The pad between a generic and `tiles`, with a reshape above it or not; None where something else lies between,
    where a value between has another reader, or where the padding is no constant around the rows."""
    pad = producer_of(tiles.source)
    if type(pad) is not tensor.PadOp or is_shared(pad.result):
        return None
    scalar = uniform_value(pad)
    made = producer_of(scalar) if scalar is not None else None
    low, high, value = _amounts(scope, low_of(pad)), _amounts(scope, high_of(pad)), pad.source
    if type(made) is not arith.ConstantOp or low is None or high is None or is_shared(value):
        return None
    opened = producer_of(value)
    rows = opened.src if type(opened) is tensor.ExpandShapeOp else value
    if type(rows) is not OpResult or not is_generic(rows.op) or is_shared(rows):
        return None
    return PaddedTiles(rows, scope.dims(value), low, high, made.value, tiles)


def _amounts(scope: Scope, side: Mixed) -> list[Dim] | None:
    """The padding on one side; None where it may take something away, or is not known as the function begins."""
    sizes = [amount if isinstance(amount, int) else scope.shapes.index(amount) for amount in side]
    least = [lower_bound(size) for size in sizes]
    return sizes if scope.knows_all(sizes) and all(low is not None and low >= 0 for low in least) else None
