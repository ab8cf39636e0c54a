"""Boxes whose runs lie across the memory that they are filled from: squares of vectors, evaluated along what is stored,
are transposed in registers on their way to scratch.

    stored    pixels ->              in the box    channels ->
     channels   a b c d               pixels         a e i m
     |          e f g h               |              b f j n
                i j k l                              c g k o
                m n o p                              d h l p

Vector by vector along the channels, each lane would be gathered from a line of memory of its own (measured: 2.5 times
as long for quantised images). Narrow elements change places in pairs, as elements of twice the width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from xdsl.ir.affine import AffineMap

from fuseline.analysis.image_box import ImageBox
from fuseline.analysis.segment_boundaries import split_at, stored_strides
from fuseline.targets.cpu.emit.squares import transpose
from fuseline.targets.cpu.families.contraction.access import is_binding
from fuseline.targets.cpu.families.contraction.loops import ContractionLoops
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import BYTES, MemRef, Operand, Value

LEAST_SQUARE = 4
"""Places of a piece from which on vectors run along it: fewer are evaluated one by one."""

Evaluate = Callable[[Operand, Operand, int, Operand | None], Value]
"""`(place along the lanes, place along a run, lanes, active)`: elements along the lanes."""


def lanes_of_box(loops: ContractionLoops, box: ImageBox) -> int | None:
    """The dimension along which stored tensors lie element by element where none of them lies so along the runs of a
    box; None where runs need no turning."""
    sizes, last = loops.view.shapes.dims(loops.lhs.value), box.order[-1]
    whole = AffineMap.identity(len(sizes))

    def contiguous(axis: int) -> int:
        strides = stored_strides(loops.view.shapes, loops.lhs.value, whole, axis, sizes, is_binding)
        return strides.count(1)

    if len(box.order) < 2 or sizes[last] == 1 or contiguous(last):
        return None
    found = [axis for axis in box.order[:-1] if sizes[axis] != 1 and box.axes[axis].step == 1 and contiguous(axis)]
    return max(found, key=contiguous) if found else None


class TurnedRuns:
    """Fills `memory` with squares of `lanes` places along the one dimension and as many of a run, or a power of two
    less; `stride`: elements between two runs."""

    def __init__(self, kernel: KernelBuilder, memory: MemRef, lanes: int, stride: int) -> None:
        self.kernel, self.memory, self.lanes, self.stride = kernel, memory, lanes, stride

    def fill(self, offset: Operand, piece: tuple[Operand, Operand], run: int, evaluate: Evaluate) -> None:
        """`run` elements of each of the runs from the first to the last of `piece`, which lie from `offset` on."""
        kernel, lanes, (begin, end) = self.kernel, self.lanes, piece
        whole = kernel.add(begin, kernel.mul(kernel.div(kernel.sub(end, begin), lanes), lanes))

        def band(start: Operand, active: Operand | None = None) -> tuple[()]:
            def square(first: Operand, count: int) -> tuple[()]:
                read = partial(evaluate, start)
                self._square(offset, (start, active), (first, count), read)
                return ()

            kernel.loop(0, run // lanes * lanes, lanes, partial(square, count=lanes))
            if run % lanes:
                square(run // lanes * lanes, run % lanes)
            return ()

        kernel.loop(begin, whole, lanes, band)
        rest = kernel.sub(end, whole)
        if not isinstance(rest, int):
            kernel.when(kernel.compare("gt", rest, 0), partial(band, whole, rest))
        elif rest:
            band(whole, rest)

    def _square(
        self,
        offset: Operand,
        places: tuple[Operand, Operand | None],
        elements: tuple[Operand, int],
        read: Callable[[Operand, int, Operand | None], Value],
    ) -> None:
        """`places`: the first run and how many there are (None: as many as lanes); `elements` of each."""
        kernel, (start, active), (first, count) = self.kernel, places, elements
        rows = [read(kernel.add(first, i), self.lanes, active) for i in range(count)]
        for number, vector in enumerate(turned(kernel, rows)):
            place = kernel.add(kernel.add(offset, first), kernel.mul(kernel.add(start, number), self.stride))
            live = None if vector.type.lanes == count else count
            store = partial(self._store, place, vector, live)
            if active is None or (isinstance(active, int) and number < active):
                store()
            elif not isinstance(active, int):
                kernel.when(kernel.compare("gt", active, number), store)

    def _store(self, place: Operand, vector: Value, live: int | None) -> tuple[()]:
        self.kernel.store(self.memory, place, vector, active=live)
        return ()


def turned(kernel: KernelBuilder, rows: Sequence[Value]) -> list[Value]:
    """For each lane of `rows` a vector of what they have there, the last one again up to a power of two."""
    side, lanes = 1 << (len(rows) - 1).bit_length(), rows[0].type.lanes
    held = [*rows, *[rows[-1]] * (side - len(rows))]
    dtype, together = rows[0].type.dtype, 1
    if BYTES[dtype] == 2 and side > 1:
        mask = [i // 2 + i % 2 * lanes for i in range(2 * lanes)]
        pairs = [kernel.shuffle(held[i], held[i + 1], mask) for i in range(0, side, 2)]
        held, together = [kernel.bitcast(pair, "i32") for pair in pairs], 2
    squares = transpose(kernel, held)
    height = len(held)
    found: list[Value] = []
    for lane in range(lanes):
        vector = kernel.bitcast(squares[lane % height], dtype)
        place = (lane - lane % height) * together
        found.append(vector if side == vector.type.lanes else kernel.lanes(vector, place, side))
    return found


def pieces_of(extent: Operand, cuts: Sequence[int]) -> list[tuple[Operand, Operand, bool]]:
    """A dimension between its cuts, and whether vectors run along each piece."""
    return [
        (begin, end, not (isinstance(begin, int) and isinstance(end, int)) or end - begin >= LEAST_SQUARE)
        for begin, end in split_at(extent, cuts)
    ]
