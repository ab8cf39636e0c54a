"""Windows whose pixels share sums or maxima of whole columns: every column is combined down the window once, then
across for each pixel.

    window 5 x 5      down: 4 steps per column, for `pixels + 4` columns
                      across: 4 steps per pixel, fewer where neighbours share parts
                      instead of 24 steps per pixel

For ops whose order does not matter. What is carried through the rows of the window are the columns, not the pixels.
"""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.targets.cpu.families.combining import Combiner, combiners
from fuseline.targets.cpu.families.window.image_reader import ImageReader
from fuseline.targets.cpu.families.window.tile import Tile, Window
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Value

WindowPosition = tuple[int, ...]


class ColumnWindows:
    """The pixels of one tile, column by column."""

    def __init__(self, image: ImageReader, tile: Tile) -> None:
        self.image, self.tile, self.kernel = image, tile, image.kernel
        found = combiners(image.loops.root.op)
        assert found is not None
        self.combiner = found[0]
        across = image.loops.across
        self.taps = across.extent if across is not None else 1
        assert isinstance(self.taps, int)
        access = tile.image.access
        self.windows = [[image.place(access, pixel, tap) for tap in range(self.taps)] for pixel in range(tile.pixels)]
        users = {place: (pixel, tap) for pixel, window in enumerate(self.windows) for tap, place in enumerate(window)}
        self.users = dict(sorted(users.items()))

    def initial(self) -> list[Value]:
        """Columns of which nothing is known yet, for every vector of channels."""
        identity = self.combiner.identity(self.kernel, self.image.plan.lanes)
        return [identity] * (len(self.users) * len(self.tile.actives))

    def row(self, window: Window, columns: Sequence[Value]) -> list[Value]:
        """The columns after one more row of the window."""
        out: list[Value] = []
        for v, active in enumerate(self.tile.actives):
            for place, user in self.users.items():
                element = self.image.column(self.tile, window, place[0], user, v, active)
                out.append(self.combiner.combine(self.kernel, columns[len(out)], element))
        return out

    def totals(self, columns: Sequence[Value], starts: Sequence[Value]) -> list[Value]:
        """The pixels, each with its start, in the order of `starts`: vector by vector for each pixel."""
        vectors = len(self.tile.actives)
        lines = [
            Across(self.kernel, self.combiner, dict(zip(self.users, columns[v * len(self.users) :], strict=False)))
            for v in range(vectors)
        ]
        return [
            self.combiner.combine(self.kernel, starts[pixel * vectors + v], lines[v].of(tuple(window)))
            for pixel, window in enumerate(self.windows)
            for v in range(vectors)
        ]


class Across:
    """Runs of columns combined: those of a power of two are made of halves, which neighbours share."""

    def __init__(self, kernel: KernelBuilder, combiner: Combiner, columns: dict[WindowPosition, Value]) -> None:
        self.kernel, self.combiner = kernel, combiner
        self.known: dict[tuple[WindowPosition, ...], Value] = {(place,): value for place, value in columns.items()}

    def of(self, places: tuple[WindowPosition, ...]) -> Value:
        """All of `places` combined."""
        found = self.known.get(places)
        if found is None:
            half = 1 << ((len(places) - 1).bit_length() - 1)
            found = self.known[places] = self.combiner.combine(
                self.kernel, self.of(places[:half]), self.of(places[half:])
            )
        return found
