"""How the scheduler runs the rows of a command table."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.runtime import abi
from fuseline.targets.cpu.kernel_ir.functions import FunctionBuilder
from fuseline.targets.cpu.kernel_ir.types import I64, PTR, Function, MemRef, Operand, Value
from fuseline.targets.cpu.link.scheduler_barrier import WORD


def bindings_of() -> Function:
    """`bindings_of(row, trip, local)`: the bindings of a row in iteration `trip` of its loop, written to `local` where
    the row has moves."""
    f = FunctionBuilder("bindings_of", (PTR, I64, PTR))
    row_pointer, trip, local = f.parameters
    row = f.words(row_pointer, abi.ROW_BYTES // WORD)
    moves = f.pointer(row, abi.ROW_MOVES)

    def place(bindings: MemRef, i: Operand) -> None:
        move = f.words(f.advance(moves, f.mul(i, abi.MOVE_BYTES)), abi.MOVE_BYTES // WORD)
        steps = f.bitand(trip, f.word(move, abi.MOVE_MASK))
        moved = f.advance(f.pointer(move, abi.MOVE_BASE), f.mul(steps, f.word(move, abi.MOVE_STRIDE)))
        is_special = f.compare("eq", trip, f.word(move, abi.MOVE_AT))
        f.set_pointer(bindings, i, f.select(is_special, f.pointer(move, abi.MOVE_SPECIAL), moved))

    def place_all() -> Sequence[Operand]:
        count = f.word(row, abi.ROW_MOVE_COUNT)
        bindings = f.words(local, count)
        f.loop(0, count, 1, lambda i: place(bindings, i))
        return (local,)

    return f.finish(f.when(f.not_null(moves), place_all, lambda: (f.pointer(row, abi.ROW_BINDINGS),))[0])


def run_rows(*, alone: bool) -> Function:
    """`run_rows(team, context, thread, first, last, generation, trip)`: rows `first` up to `last` in iteration `trip`
    of the loop that they stand in; answers the generation of the last barrier passed.

    `run_rows_alone` runs whole grids, in order, and has no barriers.
    """
    return _RowRunner(alone).function()


class _RowRunner:
    def __init__(self, alone: bool) -> None:
        self.alone = alone
        self.f = f = FunctionBuilder("run_rows_alone" if alone else "run_rows", (PTR, PTR, *[I64] * 5))
        self.team, self.context_pointer, self.thread, self.first, self.last, self.generation, self.trip = f.parameters
        self.context = f.words(self.context_pointer, abi.CONTEXT_BYTES // WORD)
        self.rows = f.pointer(self.context, abi.CONTEXT_ROWS)
        self.local = f.stack(f.word(self.context, abi.CONTEXT_MOST_MOVES))
        self.scratch = self._mine(abi.CONTEXT_SCRATCH, abi.CONTEXT_STRIDE)
        self.ranges = self._mine(abi.CONTEXT_RANGES, abi.CONTEXT_RANGES_STRIDE)

    def function(self) -> Function:
        f = self.f
        rows = f.while_(lambda r, _: f.compare("lt", r, self.last), self._row, (self.first, self.generation))
        return f.finish(rows[1])

    def _mine(self, pointer: int, stride: int) -> Value:
        """This thread's part of what all threads have."""
        f = self.f
        return f.advance(f.pointer(self.context, pointer), f.mul(f.word(self.context, stride), self.thread))

    def _row(self, r: Value, generation: Value) -> Sequence[Operand]:
        """One row, or a loop's row and those behind it: the next row, and the generation."""
        f = self.f
        pointer = f.advance(self.rows, f.mul(r, abi.ROW_BYTES))
        row = f.words(pointer, abi.ROW_BYTES // WORD)
        flags = f.word(row, abi.ROW_FLAGS)
        if not self.alone:
            sync = f.compare("ne", f.bitand(flags, abi.FLAG_BARRIER), 0)
            (generation,) = f.when(sync, lambda: self._sync(generation), lambda: (generation,))
        is_loop = f.compare("ne", f.bitand(flags, abi.FLAG_LOOP), 0)

        def launch() -> Sequence[Operand]:
            self._launch(r, pointer, row)
            return f.add(r, 1), generation

        return f.when(is_loop, lambda: self._loop(r, row, generation), launch)

    def _sync(self, generation: Value) -> Sequence[Operand]:
        f = self.f
        reached = f.add(generation, 1)
        f.call("sync", (self.team, self.thread, f.word(self.context, abi.CONTEXT_THREADS), reached))
        return (reached,)

    def _loop(self, r: Value, row: MemRef, generation: Value) -> Sequence[Operand]:
        f = self.f
        first = f.add(r, 1)
        last = f.add(first, f.word(row, abi.ROW_SIZES))

        def iterate(trip: Operand, generation: Operand) -> Sequence[Operand]:
            given = self.team, self.context_pointer, self.thread, first, last, generation, trip
            return (f.call(f.symbol, given, I64),)

        (generation,) = f.loop(0, f.word(row, abi.ROW_WORKGROUPS), 1, iterate, (generation,))
        return last, generation

    def _launch(self, r: Value, pointer: Value, row: MemRef) -> None:
        """This thread's workgroups of a row."""
        f = self.f
        begin, end = self._range(r, row)

        def run() -> None:
            bindings = f.call("bindings_of", (pointer, self.trip, self.local), PTR)
            given = bindings, f.pointer(row, abi.ROW_SIZES), begin, end, self._scratch(row)
            f.call(f.pointer(row, abi.ROW_KERNEL), given)

        f.when(f.compare("lt", begin, end), run)

    def _scratch(self, row: MemRef) -> Value:
        """This thread's scratch: where the row says, or what the context has for all rows that do not."""
        f = self.f
        first = f.pointer(row, abi.ROW_SCRATCH)
        mine = f.advance(first, f.mul(f.word(row, abi.ROW_SCRATCH_STRIDE), self.thread))
        return f.select(f.not_null(first), mine, self.scratch)

    def _range(self, r: Value, row: MemRef) -> tuple[Operand, Operand]:
        f = self.f
        if self.alone:
            return 0, f.word(row, abi.ROW_WORKGROUPS)
        mine = f.words(f.advance(self.ranges, f.mul(r, abi.RANGE_BYTES)), abi.RANGE_BYTES // WORD)
        return f.word(mine, abi.RANGE_BEGIN), f.word(mine, abi.RANGE_END)
