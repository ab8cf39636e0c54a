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
    """The result of `root`, `lanes` elements at a time, and whatever follows from it by `paths`. Vectors run along the
    last loop of the lanes."""

    def __init__(self, emitter: BodyEmitter, root: StructuredOp, paths: Sequence[ResultPath], lanes: int) -> None:
        self.emitter, self.kernel, self.buffers = emitter, emitter.kernel, emitter.buffers
        self.root, self.paths, self.lanes = root, paths, lanes
        self._value: Value | None = None
        emitter.known[root.op.results[0]] = self._held

    def _held(self, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
        del index, lanes, active
        assert self._value is not None
        return self._value

    def starts(self, rows: int, actives: Actives, at: At) -> list[Value]:
        """What the accumulators of a tile start from: the inits of the root."""
        splat = splat_value(self.root.outputs[0])
        if splat is not None:
            return [self.kernel.const(splat, dtype_of(self.root.outputs[0].type), self.lanes)] * (rows * len(actives))
        return [self.start(at(row, v), active) for row in range(rows) for v, active in enumerate(actives)]

    def start(self, loops: Sequence[AnyIndex], active: Operand | None) -> Value:
        """The init at one vector."""
        index = self.emitter.through(self.root.output_maps[0], list(loops), self.lanes)
        return self.emitter.value_at(self.root.outputs[0], index, self.lanes, active)

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

    def finish(self, loops: Sequence[AnyIndex], active: Operand | None, value: Value) -> None:
        """The epilogue of one vector of the root's result, and its stores."""
        self._value = value
        for path in self.paths:
            index = path.index(self.buffers, loops, self.lanes)
            path.store(self.buffers, index, self.emitter.value_at(path.value, index, self.lanes, active), active)
