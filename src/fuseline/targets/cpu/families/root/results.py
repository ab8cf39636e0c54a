"""How a root's values start and leave: the inits of its accumulators, and its epilogue on each vector of a tile.

tile of rows x vectors        values[row * vectors + v]        at(row, v): where the root's loops are there (those
                                                               reduced at 0)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from fuseline.analysis.structured import StructuredOp, splat_value
from fuseline.targets.cpu.combinators.split import Range
from fuseline.targets.cpu.combinators.stage import in_turn, put_aside
from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.emit.coordinates import AnyIndex
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.contraction.results import ResultPath
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand, Value

At = Callable[[Operand, Operand], list[AnyIndex]]
"""`(row, vector) -> loops of the root`."""

Actives = Sequence["Operand | None"]
"""The live lanes of each vector of a row (None: all)."""


class RootResults:
    """The results of `root`, `lanes` elements at a time, and whatever follows from them by `paths`. Vectors run along
    the last loop of the lanes."""

    def __init__(self, emitter: BodyEmitter, root: StructuredOp, paths: Sequence[ResultPath], lanes: int) -> None:
        self.emitter, self.kernel, self.buffers = emitter, emitter.kernel, emitter.buffers
        self.root, self.paths, self.lanes = root, paths, lanes
        self._values: Sequence[Value] = ()
        for number, result in enumerate(root.op.results):
            emitter.known[result] = partial(self._held, number)

    def _held(self, number: int, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
        del index, lanes, active
        return self._values[number]

    def starts(self, rows: int, actives: Actives, at: At) -> list[Value]:
        """What the accumulators of a tile start from: the inits of the root."""
        splat = splat_value(self.root.outputs[0])
        if splat is not None:
            return [self.kernel.const(splat, dtype_of(self.root.outputs[0].type), self.lanes)] * (rows * len(actives))
        return [self.start(at(row, v), active) for row in range(rows) for v, active in enumerate(actives)]

    def start(self, loops: Sequence[AnyIndex], active: Operand | None, *, lanes: int = 0, result: int = 0) -> Value:
        """The init of a result at one vector (of `lanes`, if not of as many as ever)."""
        lanes = lanes or self.lanes
        index = self.emitter.through(self.root.output_maps[result], list(loops), lanes)
        return self.emitter.value_at(self.root.outputs[result], index, lanes, active)

    def store(self, values: Sequence[Value], actives: Actives, at: At, *, first: Operand = 0) -> None:
        """Finish and store the rows of a tile from `first` on, each written out."""
        width = len(actives)
        for row in range(len(values) // width):
            held = values[row * width : (row + 1) * width]
            self.kernel.when(self.kernel.compare("ge", row, first), partial(self._store_row, held, actives, at, row))

    def store_staged(self, stage: MemRef, values: Sequence[Value], actives: Actives, at: At, rows: Range) -> None:
        """Put the values of a tile aside, then finish and store `rows` of them in a loop: the epilogue's code is there
        once for each vector of a row, in compact kernels once."""
        kernel, lanes, width = self.kernel, self.lanes, len(actives) * self.lanes
        put_aside(kernel, stage, values)

        def row(r: Operand) -> tuple[()]:
            first = kernel.mul(r, width)
            if kernel.compact:
                in_turn(
                    kernel, stage, first, lanes, actives, lambda v, active, value: self.finish(at(r, v), active, value)
                )
                return ()
            places = [kernel.add(first, v * lanes) for v in range(len(actives))]
            held = [kernel.load(stage, place, lanes, align=kernel.machine.vector_bytes) for place in places]
            return self._store_row(held, actives, at, r)

        kernel.loop(*rows, 1, row)

    def _store_row(self, values: Sequence[Value], actives: Actives, at: At, row: Operand) -> tuple[()]:
        for v, active in enumerate(actives):
            self.finish(at(row, v), active, values[v])
        return ()

    def finish(self, loops: Sequence[AnyIndex], active: Operand | None, *values: Value) -> None:
        """The epilogue of one vector of each of the root's results, and its stores."""
        self._values, lanes = values, values[0].type.lanes
        for path in self.paths:
            index = path.index(self.buffers, loops, lanes)
            path.store(self.buffers, index, self.emitter.value_at(path.value, index, lanes, active), active)
