"""Arguments that an epilogue reads across its lanes: loaded along the rows of a tile, transposed in registers.

    in memory    rows ->          a tile    columns (lanes) ->
                 a e i             rows     a b c d
                 b f j              |       e f g h
                 c g k                      i j k l
                 d h l

An image with its channels first that is added to what a convolution makes with its channels last would be gathered
element by element. The rows of a tile lie side by side in it: a vector of rows of each column makes a square. It is the
counterpart of `turned_stores.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager

from xdsl.ir import SSAValue

from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.emit.coordinates import AnyIndex
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.emit.squares import side_by_side, transpose
from fuseline.targets.cpu.families.contraction.results import RootPath
from fuseline.targets.cpu.kernel_ir.types import Operand, Value

LEAST_ROWS = 2
"""Rows of a square: a single one is gathered."""

Held = Mapping[SSAValue, Value]
"""The elements of each argument that belong to one vector of a row."""


class TurnedLoads:
    """Loads whole tiles of what lies along the rows of a tile: the arguments at `paths`, vectors of `lanes`."""

    def __init__(self, emitter: BodyEmitter, paths: Sequence[RootPath], lanes: int) -> None:
        self.emitter, self.kernel, self.buffers = emitter, emitter.kernel, emitter.buffers
        self.paths, self.lanes = paths, lanes

    def rows(self, starts: Sequence[Sequence[AnyIndex]], active: Operand | None, exist: Operand) -> Sequence[Held]:
        """What belongs to each row of a tile, of which `exist`; `starts`: where the root's loops are there. `active`:
        the live lanes, None for all; nothing where only the run tells how many there are."""
        found: list[dict[SSAValue, Value]] = [{} for _ in starts]
        for path in self.paths if _is_known(active) else ():
            for row, vector in enumerate(self._turned(path, starts, active, exist)):
                found[row][path.value] = vector
        return found

    def aside(
        self,
        height: int,
        actives: Sequence[Operand | None],
        at: Callable[[Operand, Operand], Sequence[AnyIndex]],
        exist: Operand,
    ) -> Callable[[Operand, int], Held]:
        """The same for `exist` of `height` rows of several vectors, with those live lanes: put aside, and loaded again
        by row and vector. `at`: where the root's loops are there."""
        kernel, lanes, width = self.kernel, self.lanes, len(actives)
        align = kernel.machine.vector_bytes
        memory = {path.value: kernel.scratch(dtype_of(path.value.type), height * width * lanes) for path in self.paths}
        for v, active in enumerate(actives):
            for row, held in enumerate(self.rows([at(row, v) for row in range(height)], active, exist)):
                for value, vector in held.items():
                    kernel.store(memory[value], (row * width + v) * lanes, vector, align=align)

        def loaded(row: Operand, v: int) -> Held:
            place = kernel.mul(kernel.add(kernel.mul(row, width), v), lanes)
            held = memory if _is_known(actives[v]) else {}
            return {value: kernel.load(stage, place, lanes, align=align) for value, stage in held.items()}

        return loaded

    def _turned(
        self, path: RootPath, starts: Sequence[Sequence[AnyIndex]], active: Operand | None, exist: Operand
    ) -> Iterator[Value]:
        """A vector of columns for each row."""
        kernel, lanes = self.kernel, self.lanes
        for first in range(0, len(starts), lanes):
            height = min(lanes, len(starts) - first)
            side = max(LEAST_ROWS, 1 << (height - 1).bit_length())
            count = kernel.max(kernel.min(kernel.sub(exist, first), height), 0)
            columns = [self._column(path, starts[first], lane, side, active, count) for lane in range(lanes)]
            yield from transpose(kernel, side_by_side(kernel, columns))[:height]

    def _column(
        self, path: RootPath, start: Sequence[AnyIndex], lane: int, side: int, active: Operand | None, count: Operand
    ) -> Value:
        """The first `count` of `side` rows of a column; beyond the last live one that again."""
        kernel, buffers = self.kernel, self.buffers
        live = min(lane, active - 1) if isinstance(active, int) else lane
        place = buffers.placed(path.box, path.index(buffers, [buffers.at_lane(at, live) for at in start], 1), 1)
        return kernel.load(buffers.argument(path.value), place.base, side, active=None if count == side else count)

    @contextmanager
    def known(self, held: Held) -> Generator[None]:
        """Epilogues inside read `held`."""
        known = self.emitter.known
        known.update({value: lambda *_, vector=vector: vector for value, vector in held.items()})
        yield
        for value in held:
            del known[value]


def _is_known(active: Operand | None) -> bool:
    return active is None or isinstance(active, int)
