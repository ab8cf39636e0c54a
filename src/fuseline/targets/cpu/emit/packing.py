"""Operands laid out for the register tiles: columns in panels `[columns / width][reduction][width]`, at compile time or
into scratch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

from fuseline.analysis.segment_boundaries import split_at
from fuseline.targets.cpu.emit.squares import transpose
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand, Value
from fuseline.weight_layouts import PackedLayout


@dataclass(frozen=True, slots=True)
class PackedColumns:
    """A constant operand in panels: the layout, and the elements between two steps of each loop and between panels."""

    layout: PackedLayout
    strides: dict[int, int]
    panel_stride: int
    elements: int


def packed_columns(
    shape: Sequence[int],
    loops: Sequence[int | None],
    column: int,
    outer: Sequence[int],
    reduction: Sequence[int],
    width: int,
    *,
    together: int = 1,
) -> PackedColumns:
    """The panels of a constant of `shape` whose dimension `i` is loop `loops[i]` (None: of size 1).

    Memory order: `outer` loops, panel, `reduction` loops, `width` columns; the columns are padded with zeros to whole
    panels. `together`: so many steps of the innermost reduction loop lie side by side in each column, the last ones
    beside zeros; its stride stays that of a step.

    >>> layout = packed_columns((5, 20), (2, 1), 1, (), (2,), 16).layout
    >>> layout.pad_to, layout.reshape, layout.permutation
    ((5, 32), (5, 2, 16), (1, 0, 2))
    >>> layout = packed_columns((5, 20), (2, 1), 1, (), (2,), 16, together=2).layout
    >>> layout.pad_to, layout.reshape, layout.permutation
    ((6, 32), (3, 2, 2, 16), (2, 0, 3, 1))
    """
    place = {loop: i for i, loop in enumerate(loops) if loop is not None}
    paired = place[reduction[-1]] if together > 1 else None
    factors = {place[column]: width} | ({paired: together} if paired is not None else {})
    counts = [-(-size // factors.get(i, 1)) for i, size in enumerate(shape)]
    reshape: list[int] = []
    moved: list[int] = []
    for i, count in enumerate(counts):
        moved.append(len(reshape))
        reshape += [count, factors[i]] if i in factors else [count]
    split = place[column]
    rest = [i for i in range(len(shape)) if i != split and loops[i] not in outer and loops[i] not in reduction]
    order = [*(moved[place[loop]] for loop in outer if loop in place), *(moved[i] for i in rest), moved[split]]
    order += [moved[place[loop]] for loop in reduction] + [moved[i] + 1 for i in (split, paired) if i is not None]
    strides, step = _strides_after(reshape, order)
    by_loop = {
        loop: strides[moved[place[loop]]] // (together if place[loop] == paired else 1)
        for loop in (*outer, *reduction)
        if loop in place
    }
    pad_to = tuple(count * factors.get(i, 1) for i, count in enumerate(counts))
    return PackedColumns(PackedLayout(pad_to, tuple(reshape), tuple(order)), by_loop, strides[moved[split]], step)


def packed_groups(
    shape: Sequence[int], loops: Sequence[int | None], channels: tuple[int, ...], reduction: Sequence[int], groups: int
) -> PackedColumns:
    """The panels of a constant of `shape` whose dimension `i` is loop `loops[i]`; `channels` are the loops of the group
    and of the column in it.

    Memory order: panel, `reduction` loops, `groups` groups, columns of a group; the groups are padded with zeros to
    whole panels.

    >>> layout = packed_groups((3, 5, 2, 4), (2, 0, 3, 1), (0, 1), (2, 3), 2).layout
    >>> layout.pad_to, layout.reshape, layout.permutation
    ((3, 6, 2, 4), (3, 3, 2, 2, 4), (1, 0, 3, 2, 4))
    """
    place = {loop: i for i, loop in enumerate(loops) if loop is not None}
    split, column = (place[loop] for loop in channels)
    panels = -(-shape[split] // groups)
    pad_to = tuple(panels * groups if i == split else size for i, size in enumerate(shape))
    reshape = (*pad_to[:split], panels, groups, *pad_to[split + 1 :])

    def moved(i: int) -> int:
        return i if i <= split else i + 1

    rest = [i for i in range(len(shape)) if i not in (split, column) and loops[i] not in reduction]
    order = [
        split,
        *(moved(i) for i in rest),
        *(moved(place[loop]) for loop in reduction if loop in place),
        split + 1,
        moved(column),
    ]
    strides, step = _strides_after(reshape, order)
    by_loop = {loop: strides[moved(place[loop])] for loop in reduction if loop in place}
    return PackedColumns(PackedLayout(pad_to, reshape, tuple(order)), by_loop, strides[split], step)


def _strides_after(reshape: Sequence[int], order: Sequence[int]) -> tuple[dict[int, int], int]:
    """Elements between two steps of each dimension once they lie in `order`, and of the whole."""
    strides: dict[int, int] = {}
    step = 1
    for dimension in reversed(order):
        strides[dimension] = step
        step *= reshape[dimension]
    return strides, step


def over_axes(
    kernel: KernelBuilder,
    extents: Sequence[Operand],
    strides: Sequence[Operand],
    body: Callable[[Operand, tuple[Operand, ...]], None],
    cuts: Sequence[Collection[int]] = (),
) -> None:
    """Run `body(sum of index * stride, indices)` for every point of `extents`, outermost first; axis `i` piece by piece
    between `cuts[i]`."""

    def level(i: int, offset: Operand, at: tuple[Operand, ...]) -> None:
        if i == len(extents):
            body(offset, at)
            return

        def inside(index: Operand) -> tuple[Operand, ...]:
            level(i + 1, kernel.add(offset, kernel.mul(index, strides[i])), (*at, index))
            return ()

        for begin, end in split_at(extents[i], cuts[i] if cuts else ()):
            kernel.loop(begin, end, 1, inside)

    level(0, 0, ())


def over_vectors(
    kernel: KernelBuilder,
    extent: Operand,
    cuts: Collection[int],
    lanes: int,
    piece: Callable[[Operand, int, Operand | None], None],
) -> None:
    """`piece(first, lanes, active)` for the vectors of a run, which is cut at `cuts`: whole ones in a loop, then the
    rest."""

    def whole_vector(i: Operand) -> tuple[Operand, ...]:
        piece(i, lanes, None)
        return ()

    for begin, end in split_at(extent, cuts):
        whole = kernel.add(begin, kernel.mul(kernel.div(kernel.sub(end, begin), lanes), lanes))
        kernel.loop(begin, whole, lanes, whole_vector)
        rest = kernel.sub(end, whole)
        if not isinstance(rest, int):
            kernel.when(kernel.compare("gt", rest, 0), partial(piece, whole, lanes, rest))
        elif rest:
            piece(whole, lanes, rest)


class PanelPacker:
    """Packs one panel of columns `[reduction][width]` into scratch, read through `read(indices, first column, lanes
    along columns, active)` or, where the operand lies along the innermost reduction loop, through `read_along` and a
    transpose in registers.
    """

    def __init__(self, kernel: KernelBuilder, buffer: MemRef, lanes: int, vectors: int) -> None:
        self.kernel, self.buffer, self.lanes, self.vectors = kernel, buffer, lanes, vectors

    def copy(
        self, extents: Sequence[Operand], strides: Sequence[Operand], actives: Sequence[Operand | None],
        read: Callable[..., Value],
        cuts: Sequence[Collection[int]] = (),
    ) -> None:  # fmt: skip
        """Columns are neighbours in memory: vectors move as they are. `read(indices, vector, active)`."""

        def body(offset: Operand, at: tuple[Operand, ...]) -> None:
            for v, active in enumerate(actives):
                self.kernel.store(self.buffer, self.kernel.add(offset, v * self.lanes), read(at, v, active))

        over_axes(self.kernel, extents, strides, body, cuts)

    def turn(
        self,
        extents: Sequence[Operand],
        strides: Sequence[Operand],
        vectors: int,
        read: Callable[..., Value],
        cuts: Sequence[Collection[int]] = (),
    ) -> None:
        """The innermost reduction loop is contiguous: squares are loaded along it, turned and stored. `read(indices,
        column, active)` gives lanes along the innermost loop for one column of the panel; rows beyond the extent are
        stored too, into the buffer's slack.
        """
        kernel, lanes = self.kernel, self.lanes

        def body(offset: Operand, at: tuple[Operand, ...]) -> None:
            def square(k: Operand) -> tuple[Operand, ...]:
                active = _remaining(kernel, extents[-1], k, lanes)

                def vector(v: Operand) -> tuple[Operand, ...]:
                    first = kernel.mul(v, lanes)
                    columns = [read((*at, k), kernel.add(first, i), active) for i in range(lanes)]
                    for i, row in enumerate(transpose(kernel, columns)):
                        place = kernel.add(
                            kernel.add(kernel.add(offset, kernel.mul(k, strides[-1])), first),
                            kernel.mul(strides[-1], i),
                        )
                        kernel.store(self.buffer, place, row)
                    return ()

                kernel.loop(0, vectors, 1, vector)
                return ()

            for begin, end in split_at(extents[-1], cuts[-1] if cuts else ()):
                kernel.loop(begin, end, lanes, square)

        over_axes(kernel, extents[:-1], strides[:-1], body, cuts[:-1])


def _remaining(kernel: KernelBuilder, extent: Operand, k: Operand, lanes: int) -> Operand | None:
    """How many of `lanes` elements from `k` on exist; None for all."""
    if isinstance(extent, int) and extent % lanes == 0:
        return None
    return kernel.min(kernel.sub(extent, k), lanes)
