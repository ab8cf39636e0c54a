"""The words that the native scheduler reads, against the layout that is written down."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fuseline.buffers import BufferRef, LoopOffset
from fuseline.runtime import abi
from fuseline.runtime.command_table import Addresses, CommandTable, ThreadPlan
from fuseline.runtime.program import Arm, Command, Loop, Scratch
from fuseline.runtime.sharing import Shares, share_grids
from fuseline.runtime.sizes import SizeEvaluator

N = ("sum", ((1, "n"),))
FOUR_N = ("sum", ((4, "n"),))
KERNELS = 1 << 20
ARENA, CONSTANTS = 1 << 30, 1 << 31
ADDRESSES = Addresses(
    fixed=lambda ref: {"arena": ARENA, "constant": CONSTANTS + 256 * ref.number}[ref.segment] + ref.offset,
    segment_of=lambda ref: ref.number + (0 if ref.segment == "input" else 2),
    segments=3,
)


class Table:
    """A table with `n = 10`, and readers of its parts."""

    def __init__(self, steps: Sequence[Command | Loop], threads: int = 1, addresses: Addresses = ADDRESSES) -> None:
        evaluate = SizeEvaluator({"n": 10})
        self.shares: Shares = share_grids(steps, threads, evaluate)
        self.table = CommandTable(steps, self.shares, evaluate, addresses, KERNELS, ThreadPlan(threads, 77, 128))
        self.context = self.words(self.table.address, abi.CONTEXT_BYTES // 8)

    def words(self, address: int, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}q", ctypes.string_at(address, 8 * count))

    def row(self, number: int) -> tuple[int, ...]:
        return self.words(self.context[0] + abi.ROW_BYTES * number, abi.ROW_BYTES // 8)

    def patches(self) -> list[tuple[int, int, int]]:
        """The address of the word, the segment, the offset in it."""
        count, at = self.context[8], self.context[7]
        flat = self.words(at, 3 * count)
        return [flat[i : i + 3] for i in range(0, len(flat), 3)]  # pyright: ignore[reportReturnType]


def _arm(kernel: int, *bindings: BufferRef, sizes: Sequence[Any] = (N,), grid: Any = 3, **more: Any) -> Arm:
    return Arm(kernel, bindings, tuple(sizes), grid, **more)


X, Y = BufferRef("input", 1, 12), BufferRef("output", 0, FOUR_N)
ARENA_REF, CONSTANT = BufferRef("arena", 0, 64), BufferRef("constant", 2, 8)


def test_a_row_names_kernel_bindings_sizes_and_grid():
    steps = [
        Command((_arm(16, ARENA_REF, CONSTANT, sizes=(N, 5)),)),
        Command((_arm(48, CONSTANT, sizes=(FOUR_N,), grid=N),), barrier=True),
    ]
    table = Table(steps)
    first, second = table.row(0), table.row(1)
    assert (first[0], second[0]) == (KERNELS + 16, KERNELS + 48)
    assert table.words(first[1], 2) == (ARENA + 64, CONSTANTS + 512 + 8)
    assert table.words(second[1], 1) == (CONSTANTS + 512 + 8,)
    assert (table.words(first[2], 2), table.words(second[2], 1)) == ((10, 5), (40,))
    assert (first[3], second[3]) == (3, 10)
    assert first[4:7] == (0, 0, 0)
    assert table.context[:3] == (table.context[0], 0, 2)
    assert table.context[3:6] == (1, 77, 128)


def test_rows_have_scratch_in_the_arena_or_that_of_the_run():
    in_arena = Command((_arm(0, ARENA_REF), _arm(0, CONSTANT)), scratch=Scratch(FOUR_N, 256))
    table = Table([in_arena, Loop(2, (in_arena, Command((_arm(0, ARENA_REF),))))])
    assert [table.row(number)[7:] for number in range(6)] == [
        *[(ARENA + 40, 256)] * 2,
        (0, 0),
        *[(ARENA + 40, 256)] * 2,
        (0, 0),
    ]
    apart = Table([in_arena], addresses=ADDRESSES._replace(scratch_in_arena=False))
    assert [apart.row(number)[7:] for number in range(2)] == [(0, 0)] * 2


def test_what_the_caller_owns_is_patched_before_each_run():
    table = Table([Command((_arm(0, X, ARENA_REF, Y),))])
    words = table.row(0)[1]
    assert table.words(words, 3) == (0, ARENA + 64, 0)
    assert table.patches() == [(words, 1, 12), (words + 16, 2, 40)]
    table.table.set_segments(1000, 2000, 3000)
    assert table.words(table.context[9], 3) == (1000, 2000, 3000)


def test_a_range_of_rows():
    table = Table([Command((_arm(0, ARENA_REF),)) for _ in range(4)])
    table.table.set_range(1, 3)
    assert table.words(table.table.address + abi.CONTEXT_FIRST, 2) == (1, 3)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_ranges_and_barriers_are_those_that_were_shared_out(threads: int):
    steps = [Command((_arm(0, ARENA_REF, grid=7),)), Command((_arm(0, ARENA_REF, grid=2),), barrier=True)]
    table = Table(steps, threads)
    flags = [table.row(i)[4] & abi.FLAG_BARRIER for i in range(2)]
    assert [bool(flag) for flag in flags] == table.shares.barriers == [False, threads > 1]
    if threads > 1:
        assert table.context[11] == abi.RANGE_BYTES * 2
        found = np.array(table.words(table.context[10], threads * 2 * 2)).reshape(threads, 2, 2)
        np.testing.assert_array_equal(found, table.shares.ranges)


def test_a_loop_says_how_many_rows_follow_and_how_often():
    body = (Command((_arm(8, ARENA_REF, loop_offsets=(LoopOffset(24),)),)),)
    table = Table([Loop(N, body)])
    loop, inner = table.row(0), table.row(1)
    assert loop[2:5] == (1, 10, abi.FLAG_LOOP) and loop[:2] == (0, 0)
    assert inner[0] == KERNELS + 8 and inner[5] == inner[1] and inner[6] == 1


MOVES = [
    (LoopOffset(24), (ARENA + 64, 0, -1, 24, -1)),
    (LoopOffset(24, 1, special=CONSTANT), (ARENA + 64 - 24, CONSTANTS + 520, 0, 24, -1)),
    (LoopOffset(FOUR_N, 0, True), (ARENA + 64, 0, -1, 40, 1)),
    # (i - 1) % 2 begins with the second place, and goes back from there
    (LoopOffset(24, 1, True, CONSTANT), (ARENA + 64 + 24, CONSTANTS + 520, 0, -24, 1)),
    (LoopOffset(24, special=CONSTANT, at=N), (ARENA + 64, CONSTANTS + 520, 10, 24, -1)),
]


@pytest.mark.parametrize(("move", "expected"), MOVES)
def test_how_a_binding_moves(move: LoopOffset, expected: tuple[int, ...]):
    arm = _arm(8, ARENA_REF, CONSTANT, loop_offsets=(move, LoopOffset()))
    table = Table([Loop(3, (Command((arm,)),))])
    row = table.row(1)
    assert table.words(row[5], 10) == (*expected, CONSTANTS + 520, 0, -1, 0, -1)
    assert table.context[12] == row[6] == 2  # the most that any row moves


def test_what_moves_in_the_callers_memory_is_patched_with_its_lag():
    arm = _arm(8, X, loop_offsets=(LoopOffset(8, 1, special=BufferRef("input", 0, 4)),))
    table = Table([Loop(3, (Command((arm,)),))])
    at = table.row(1)[5]
    assert table.patches() == [(at, 1, 12 - 8), (at + 8, 0, 4)]


def test_arms_have_rows_of_their_own():
    table = Table([Command((_arm(0, ARENA_REF, sizes=(1, 2)), _arm(16, CONSTANT, sizes=(3,))))])
    first, second = table.row(0), table.row(1)
    assert second[0] - first[0] == 16 and table.context[2] == 2
    assert table.words(first[2], 2) == (1, 2) and table.words(second[2], 1) == (3,)
