"""How a root's values start and leave: the inits of its accumulators, and its epilogue on each vector of a tile.

tile of rows x vectors        values[row * vectors + v]        at(row, v): where the root's loops are there (those
                                                               reduced at 0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from fuseline.analysis.structured import StructuredOp, splat_value
from fuseline.targets.cpu.combinators.split import Range
from fuseline.targets.cpu.combinators.stage import in_turn, put_aside
from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.emit.coordinates import AnyIndex
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.contraction.results import ResultPath
from fuseline.targets.cpu.families.root.column_stores import ColumnStores, lies_across
from fuseline.targets.cpu.families.root.operand_paths import operand_paths
from fuseline.targets.cpu.families.root.tile_stores import TileStores
from fuseline.targets.cpu.families.root.turned_loads import TurnedLoads
from fuseline.targets.cpu.families.root.turned_stores import TurnedStores, lies_along
from fuseline.targets.cpu.kernel_ir.types import BITS, MemRef, Operand, Value

At = Callable[[Operand, Operand], list[AnyIndex]]
"""`(row, vector) -> loops of the root`."""

Place = Callable[[Operand, int], Operand]
"""`(row, vector) -> element of a stage`."""

OnValue = Callable[[Value, Sequence[AnyIndex], "Operand | None"], Value]
"""`(vector, loops of the root, live lanes) -> vector`."""

Actives = Sequence["Operand | None"]
"""The live lanes of each vector of a row (None: all)."""


class RootResults:
    """The results of `root`, `lanes` elements at a time, and whatever follows from them by `paths`. Vectors run along
    `lane`; `rows`: the loops along which the rows of a tile follow each other."""

    def __init__(
        self,
        emitter: BodyEmitter,
        root: StructuredOp,
        paths: Sequence[ResultPath],
        lanes: int,
        *,
        rows: Sequence[int] = (),
        lane: int | None = None,
    ) -> None:
        self.emitter, self.kernel, self.buffers = emitter, emitter.kernel, emitter.buffers
        self.root, self.paths, self.lanes = root, paths, lanes
        self._storers = dict(self._by_column(rows, lane)) if lanes > 1 else {}
        self._columnwise = [path for path in paths if path.position in self._storers]
        self._others = [path for path in paths if path not in self._columnwise]
        read = operand_paths(emitter.view, root, paths) if lanes > 1 else []
        self._loads = TurnedLoads(emitter, [path for path in read if lies_along(path, rows)], lanes)
        self._values: Sequence[Value] = ()
        for number, result in enumerate(root.op.results):
            emitter.known[result] = partial(self._held, number)

    def _by_column(self, rows: Sequence[int], lane: int | None) -> Iterator[tuple[int, TileStores]]:
        """What is stored column by column, by the number of the result."""
        for path in self.paths:
            if lies_along(path, rows):
                yield path.position, TurnedStores(self.buffers, path)
            elif lies_across(path, rows, lane):
                yield path.position, ColumnStores(self.buffers, path)

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
        if self._by_tiles and first == 0 and len(values) > width:
            for v, active in enumerate(actives):
                self._store_vectors(values[v::width], active, [at(row, v) for row in range(len(values) // width)])
            return
        for row in range(len(values) // width):
            held = values[row * width : (row + 1) * width]
            self.kernel.when(self.kernel.compare("ge", row, first), partial(self._store_row, held, actives, at, row))

    def store_staged(self, stage: MemRef, values: Sequence[Value], actives: Actives, at: At, rows: Range) -> None:
        """Put the values of a tile aside, then finish and store `rows` of them in a loop: the epilogue's code is there
        once for each vector of a row, in compact kernels once."""
        kernel, lanes, width = self.kernel, self.lanes, len(actives) * self.lanes
        put_aside(kernel, stage, values)
        if self.takes_tiles(stage) and rows[0] == 0 and len(values) > len(actives):
            self.store_tile(
                stage,
                len(values) // len(actives),
                actives,
                at,
                rows[1],
                lambda r, v: kernel.add(kernel.mul(r, width), v * lanes),
            )
            return

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

    def _store_vectors(self, values: Sequence[Value], active: Operand | None, at: Sequence[Sequence[AnyIndex]]) -> None:
        """The epilogue on one vector of each row, where the root's loops are `at`; what lies along the rows is stored
        for all of them at once."""
        made: list[list[Value]] = [[] for _ in self._columnwise]
        held = self._loads.rows(at, active, len(values))
        for row, value in enumerate(values):
            with self._loads.known(held[row]):
                self._finish_by(self._others, at[row], active, value)
                for path, rows in zip(self._columnwise, made, strict=True):
                    rows.append(self._evaluated(path, at[row], active)[1])
        for path, rows in zip(self._columnwise, made, strict=True):
            self._storers[path.position].store(rows, at, active, len(values))

    @property
    def _by_tiles(self) -> bool:
        """Whether something is stored, or loaded, for all rows of a tile at once."""
        return bool(self._columnwise or self._loads.paths)

    def takes_tiles(self, stage: MemRef) -> bool:
        """Whether something is stored, or loaded, for all rows of a tile in `stage` at once: what is stored so has to
        be one value, of as many bits as the elements there."""
        values = {path.value for path in self._columnwise}
        widths = {BITS[dtype_of(one.type)] for one in values}
        return self._by_tiles and not self.kernel.compact and len(values) < 2 and widths <= {BITS[stage.dtype]}

    def store_tile(
        self,
        stage: MemRef,
        height: int,
        actives: Actives,
        at: At,
        exist: Operand,
        place: Place,
        value: OnValue | None = None,
    ) -> None:
        """The epilogue of the first `exist` of `height` rows in a loop, which leaves in `stage` what lies along them;
        that is stored behind it. A vector of a row is at `place(row, vector)`; `value`: what is done with it first."""
        kernel, lanes, align = self.kernel, self.lanes, self.kernel.machine.vector_bytes
        columnwise = self._columnwise[:1]

        def row(r: Operand) -> tuple[()]:
            for v, active in enumerate(actives):
                loops, held = at(r, v), kernel.load(stage, place(r, v), lanes, align=align)
                started = held if value is None else value(held, loops, active)
                with self._loads.known(loaded(r, v)):
                    self._finish_by(self._others, loops, active, started)
                    for path in columnwise:
                        found = kernel.bitcast(self._evaluated(path, loops, active)[1], stage.dtype)
                        kernel.store(stage, place(r, v), found, align=align)
            return ()

        with kernel.passing_scratch():
            loaded = self._loads.aside(height, actives, at, exist)
            kernel.loop(0, exist, 1, row)
        for v, active in enumerate(actives if columnwise else ()):
            dtype = dtype_of(columnwise[0].value.type)
            rows = [kernel.bitcast(kernel.load(stage, place(r, v), lanes, align=align), dtype) for r in range(height)]
            for path in self._columnwise:
                self._storers[path.position].store(rows, [at(r, v) for r in range(height)], active, exist)

    def finish(self, loops: Sequence[AnyIndex], active: Operand | None, *values: Value) -> None:
        """The epilogue of one vector of each of the root's results, and its stores."""
        self._finish_by(self.paths, loops, active, *values)

    def _finish_by(
        self, paths: Sequence[ResultPath], loops: Sequence[AnyIndex], active: Operand | None, *values: Value
    ) -> None:
        self._values = values
        for path in paths:
            index, found = self._evaluated(path, loops, active)
            path.store(self.buffers, index, found, active)

    def _evaluated(
        self, path: ResultPath, loops: Sequence[AnyIndex], active: Operand | None
    ) -> tuple[list[AnyIndex], Value]:
        """Where a vector of a result is, and the vector."""
        lanes = self._values[0].type.lanes
        index = path.index(self.buffers, loops, lanes)
        return index, self.emitter.value_at(path.value, index, lanes, active)
