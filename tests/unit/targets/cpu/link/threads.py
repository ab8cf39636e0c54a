"""A team of threads and a command table in an address space, for the scheduler's functions evaluated one at a time."""

from __future__ import annotations

from collections.abc import Callable

from fuseline.runtime import abi
from fuseline.targets.cpu.isa.baseline import MACHINE as BASELINE
from fuseline.targets.cpu.kernel_ir.types import Function
from fuseline.targets.cpu.link.scheduler import scheduler_functions
from tests.kernel_ir.evaluate_functions import AddressSpace, call_function

WORD = 8
FUTEX = 202
FUNCTIONS = {part.symbol: part for part in scheduler_functions(BASELINE) if isinstance(part, Function)}


def call(space: AddressSpace, symbol: str, *arguments: int) -> int:
    """Call a function of the scheduler."""
    return call_function(FUNCTIONS, symbol, arguments, space)


class Team:
    """A team in an address space; `on_yield` and `on_syscall` are what other threads do meanwhile."""

    def __init__(self, *, pauses: int = 3, yields: int = 4) -> None:
        self.space = AddressSpace()
        self.address, self.words = self.space.words(abi.TEAM_BYTES // WORD)
        self.calls: list[tuple[int, ...]] = []
        self.yields = 0
        self.on_yield: Callable[[], None] = lambda: None
        self.on_syscall: Callable[[], None] = lambda: None
        self[abi.TEAM_PAUSES], self[abi.TEAM_YIELDS] = pauses, yields
        self[abi.TEAM_YIELD], self[abi.TEAM_SYSCALL] = (
            self.space.function(self._yield),
            self.space.function(self._syscall),
        )

    def __getitem__(self, offset: int) -> int:
        return int(self.words[offset // WORD])

    def __setitem__(self, offset: int, value: int) -> None:
        self.words[offset // WORD] = value

    def flag(self, thread: int) -> int:
        """The offset of a thread's flag."""
        return abi.TEAM_FLAGS + thread * abi.LINE_BYTES

    def call(self, symbol: str, *arguments: int) -> int:
        return call(self.space, symbol, self.address, *arguments)

    def _yield(self) -> int:
        self.yields += 1
        self.on_yield()
        return 0

    def _syscall(self, *arguments: int) -> int:
        self.calls.append(arguments)
        self.on_syscall()
        return 0

    def wait(self, want: int) -> None:
        """Wait for the flag of thread 1."""
        self.call("wait", self.address + self.flag(1), want, self.address + abi.TEAM_SLEEPERS)


class Table:
    """A command table in an address space; what kernels are called with is `launched`, by thread."""

    def __init__(self, rows: list[dict[int, int]], ranges: list[list[tuple[int, int]]], first: int = 0) -> None:
        self.team = Team()
        self.space = self.team.space
        self.launched: list[tuple[int, ...]] = []
        self.address, self.context = self.space.words(abi.CONTEXT_BYTES // WORD)
        at, words = self.space.words(max(len(rows), 1) * abi.ROW_BYTES // WORD)
        for number, row in enumerate(rows):
            for offset, value in row.items():
                words[(number * abi.ROW_BYTES + offset) // WORD] = value
        shares, table = self.space.words(max(sum(map(len, ranges)), 1) * 2)
        table[: 2 * sum(map(len, ranges))] = [word for thread in ranges for share in thread for word in share]
        scratch, _ = self.space.words(64)
        given = {
            abi.CONTEXT_ROWS: at,
            abi.CONTEXT_FIRST: first,
            abi.CONTEXT_LAST: len(rows),
            abi.CONTEXT_THREADS: max(len(ranges), 1),
            abi.CONTEXT_SCRATCH: scratch,
            abi.CONTEXT_STRIDE: 64,
            abi.CONTEXT_RANGES: shares,
            abi.CONTEXT_RANGES_STRIDE: len(rows) * abi.RANGE_BYTES,
            abi.CONTEXT_MOST_MOVES: 4,
        }
        for offset, value in given.items():
            self.context[offset // WORD] = value
        self.scratch = scratch

    def kernel(self, number: int) -> int:
        """A kernel that notes its number, its two bindings, its size and its range."""

        def launch(bindings: int, sizes: int, begin: int, end: int, scratch: int) -> None:
            (bound, at), (size, place) = self.space.find(bindings), self.space.find(sizes)
            found = int(bound[at]), int(bound[at + 1]), int(size[place])
            self.launched.append((number, *found, begin, end, scratch - self.scratch))

        return self.space.function(launch)

    def walk(self, thread: int | None, rows: int) -> int:
        """All rows as one thread of several, or alone (None)."""
        symbol = "run_rows_alone" if thread is None else "run_rows"
        return self.team.call(symbol, self.address, thread or 0, 0, rows, 40, 0)
