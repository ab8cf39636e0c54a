"""The image of a window root: vectors of its columns, where a window leaves it pad values or what its border repeats,
and the checks that tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuseline.analysis.operand_access import LinearAccess
from fuseline.analysis.source_paths import Border, Bound
from fuseline.ir import dim as d
from fuseline.targets.cpu.emit.coordinates import Index
from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.emit.folded_address import Folding
from fuseline.targets.cpu.families.contraction.axes import Axis
from fuseline.targets.cpu.families.contraction.runtime_pixels import Tiles
from fuseline.targets.cpu.families.contraction.runtime_rows import interior_of
from fuseline.targets.cpu.families.window.loops import Image
from fuseline.targets.cpu.families.window.plan import WindowPlan
from fuseline.targets.cpu.families.window.tile import Tile, Window
from fuseline.targets.cpu.kernel_ir.types import Address, MemRef, Operand, Value


class ImageReader:
    """Reads the image of a plan, a part of which lies in `memory(part)`. Beside it there is the padding row
    (`padding_row`, of pad values), where any are read."""

    def __init__(self, plan: WindowPlan, buffers: DispatchBuffers, memory: Callable[[Image], MemRef]) -> None:
        self.plan, self.loops, self.buffers, self.kernel, self.memory = (
            plan,
            plan.loops,
            buffers,
            buffers.kernel,
            memory,
        )
        padded = [image.access for image in self.loops.images if image.access.padding]
        self.pad = padded[0].pad if padded else 0
        self.padding_row = self.kernel.scratch(self.loops.image_dtype, plan.width) if padded else None

    def fill_padding_row(self) -> None:
        """Write the pad values."""
        if self.padding_row is not None:
            value = self.kernel.const(self.pad, self.loops.image_dtype, self.plan.lanes)
            for v in range(self.plan.vectors):
                self.kernel.store(self.padding_row, v * self.plan.lanes, value)

    def interior(self, pixel: Axis, tiles: Tiles) -> tuple[Operand, Operand] | None:
        """The whole tiles that meet no padding along the line; None where that is not known."""
        across = self.loops.across
        taps: dict[int, d.Dim] = {across.inner: across.extent} if across is not None else {}
        found = interior_of(
            [bound for image in self.loops.images for bound in image.access.bounds], pixel.inner, taps, tiles.width
        )
        return (
            (found.first, self.kernel.min(self.buffers.operand(found.end), tiles.whole)) if found is not None else None
        )

    def clipped(self, tile: Tile, axis: Axis, bounds: Sequence[Bound]) -> tuple[Operand, Operand]:
        """The iterations of `axis` that lie in the image, where padding may be left out; else all."""
        kernel = self.kernel
        lo, hi = 0, self.buffers.operand(axis.extent)
        for bound in bounds if self.loops.skips_padding else ():
            if bound.border is not None:
                continue
            base, step = self.coordinate(tile, bound, {}, 0), bound.coordinate.terms[axis.inner]
            assert isinstance(step, int)
            lo = kernel.max(lo, kernel.ceil_div(kernel.max(kernel.sub(0, base), 0), step))
            hi = kernel.min(
                hi, kernel.ceil_div(kernel.max(kernel.sub(self.buffers.operand(bound.size), base), 0), step)
            )
        return lo, hi

    def place(self, access: LinearAccess, pixel: int, tap: int) -> tuple[int, ...]:
        """Where a pixel's tap reads, from the tile's first: elements, and every padded coordinate (two may differ only
        in the latter)."""
        loops = self.loops
        offset = pixel * int_stride(access, loops.pixel) + tap * int_stride(access, loops.across)
        moves = [(axis, i) for axis, i in ((loops.pixel, pixel), (loops.across, tap)) if axis is not None]
        bounds = [b for b in access.bounds if self.moves(b)]
        return (offset, *(sum(i * b.coordinate.terms.get(axis.inner, 0) for axis, i in moves) for b in bounds))  # pyright: ignore

    def column(
        self, tile: Tile, window: Window, offset: int, user: tuple[int, int], v: int, active: Operand | None
    ) -> Value:
        """A vector of an image column, or of pad values outside the image, as the window combines them."""
        return self.kernel.cast(self._stored(tile, window, offset, user, v, active), self.loops.dtype)

    def _stored(
        self, tile: Tile, window: Window, offset: int, user: tuple[int, int], v: int, active: Operand | None
    ) -> Value:
        kernel = self.kernel
        address = kernel.offset(self.start(tile, window), offset)
        for bound, coordinate, low, high in self._columns_outside(tile, window, user):
            if bound.border is not None:
                address = self._folding(bound, bound.border).at(kernel, address, coordinate, low=low, high=high)
        for inside in (*window.rows, *self._column_checks(tile, window, user)):
            assert self.padding_row is not None
            address = kernel.select_mem(inside, address, 0, self.padding_row, 0)
        step = int_stride(tile.image.access, self.loops.channel)
        if step != 1:
            first = kernel.add(kernel.add(window.image, offset), v * self.plan.lanes * step)
            return self.buffers.load(self.memory(tile.image), Index(first, step), self.plan.lanes)
        return kernel.load_at(address, v * self.plan.lanes, self.plan.lanes, active)

    def start(self, tile: Tile, window: Window) -> Address:
        """Where the window of a tile's first pixel begins."""
        if window.place is not None:
            return window.place
        return self.kernel.address(self.memory(tile.image), window.image)

    def folded(self, tile: Tile, place: Address, bounds: Sequence[Bound], at: dict[Axis, Operand]) -> Address:
        """The start of the window row at `at`, given the one as if the image went on beyond the borders among
        `bounds`."""
        for bound in bounds:
            if bound.border is not None:
                coordinate = self.coordinate(tile, bound, at, 0)
                place = self._folding(bound, bound.border).at(self.kernel, place, coordinate)
        return place

    def _folding(self, bound: Bound, border: Border) -> Folding:
        operand = self.buffers.operand
        return Folding(border.mode, operand(bound.size), operand(border.stride))

    def _column_checks(self, tile: Tile, window: Window, user: tuple[int, int]) -> list[Value]:
        outside = [edge for edge in self._columns_outside(tile, window, user) if edge[0].border is None]
        found = [self._inside(coordinate, bound, low, high) for bound, coordinate, low, high in outside]
        return [inside for inside in found if inside is not None]

    def _columns_outside(
        self, tile: Tile, window: Window, user: tuple[int, int]
    ) -> list[tuple[Bound, Operand, bool, bool]]:
        """The bounds that a column may leave: its coordinate, and at which sides."""
        pixel, tap = user
        across = self.loops.across
        at = {**window.at, **({across: tap} if across is not None else {})}
        found: list[tuple[Bound, Operand, bool, bool]] = []
        for bound in tile.image.access.bounds:
            if not self.moves(bound) or (tile.inside and self._along(bound)):
                continue
            low, high = self._crosses(tile, bound, pixel, tap)
            if low or high:
                found.append((bound, self.coordinate(tile, bound, at, pixel), low, high))
        return found

    def moves(self, bound: Bound) -> bool:
        """Whether a bound differs between the pixels of a tile, or between the taps of a window row."""
        across, pixel = self.loops.across, self.loops.pixel
        return any(axis is not None and axis.inner in bound.coordinate.terms for axis in (across, pixel))

    def _along(self, bound: Bound) -> bool:
        """Whether a bound moves with the pixels of a tile."""
        return self.loops.pixel is not None and self.loops.pixel.inner in bound.coordinate.terms

    def axis_of(self, bound: Bound) -> Axis | None:
        """The reduction axis that a bound moves with; None where there is none."""
        return next((axis for axis in self.loops.reduction if axis.inner in bound.coordinate.terms), None)

    def rows_inside(self, tile: Tile, bounds: Sequence[Bound], at: dict[Axis, Operand]) -> tuple[Value, ...]:
        """What tells that the window row at `at` lies inside the image, one check for each of `bounds` that needs
        any."""
        padding = [bound for bound in bounds if bound.border is None]
        found = [self._inside(self.coordinate(tile, bound, at, 0), bound, True, True) for bound in padding]
        return tuple(inside for inside in found if inside is not None)

    def _inside(self, coordinate: Operand, bound: Bound, low: bool, high: bool) -> Value | None:
        kernel, size = self.kernel, self.buffers.operand(bound.size)
        if not low and not high:
            return None
        if not low:
            return kernel.compare("lt", coordinate, size)
        return kernel.compare("ult", coordinate, size) if high else kernel.compare("ge", coordinate, 0)

    def coordinate(self, tile: Tile, bound: Bound, at: dict[Axis, Operand], pixel: int) -> Operand:
        """A padded coordinate of a pixel; reduction axes that are not in `at` are at 0."""
        kernel, loops = self.kernel, self.loops
        places = {axis.inner: value for axis, value in (*tile.outer.items(), *at.items())}
        if loops.pixel is not None:
            places[loops.pixel.inner] = kernel.add(tile.start, pixel)
        total = self.buffers.operand(bound.coordinate.constant)
        for loop, coefficient in bound.coordinate.loops.items():
            total = kernel.add(total, kernel.mul(places.get(loop, 0), self.buffers.operand(coefficient)))
        return total

    def _crosses(self, tile: Tile, bound: Bound, pixel: int, tap: int) -> tuple[bool, bool]:
        """Whether the column can lie below 0, and at or beyond the size, in any tile that this code serves."""
        constant, size = bound.coordinate.constant, bound.size
        if not isinstance(constant, int) or not isinstance(size, int):
            return True, True
        low = high = constant
        for loop, coefficient in bound.coordinate.loops.items():
            reach = self._reach(tile, loop, pixel, tap)
            if reach is None or not isinstance(coefficient, int):
                return True, True
            ends = (coefficient * reach[0], coefficient * reach[1])
            low, high = low + min(ends), high + max(ends)
        return low < 0, high >= size

    def _reach(self, tile: Tile, loop: int, pixel: int, tap: int) -> tuple[int, int] | None:
        loops = self.loops
        if loops.pixel is not None and loop == loops.pixel.inner:
            return None if tile.start_range is None else (tile.start_range[0] + pixel, tile.start_range[1] + pixel)
        if loops.across is not None and loop == loops.across.inner:
            return tap, tap
        extent = loops.extents[loop]
        return (0, extent - 1) if isinstance(extent, int) else None


def int_stride(access: LinearAccess, axis: Axis | None) -> int:
    """Elements between two steps of an axis that is traversed by numbers known now; 0 without an axis."""
    stride = access.stride(axis.inner) if axis is not None else 0
    assert isinstance(stride, int)
    return stride
