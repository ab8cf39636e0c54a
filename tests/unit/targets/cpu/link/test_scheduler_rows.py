"""What a thread launches of a command table, on which bindings, in which order. That threads keep out of each other's
way is for tests/unit/runtime."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fuseline.runtime import abi
from tests.unit.targets.cpu.link.threads import WORD, Table


def _moved(move: tuple[int, int, int, int, int], trip: int) -> int:
    base, special, at, stride, mask = move
    return special if trip == at else base + (trip & mask) * stride


MOVES = st.tuples(
    st.integers(0, 999),
    st.integers(1000, 1999),
    st.integers(-1, 3),
    st.integers(-50, 50),
    st.sampled_from([-1, 1]),
)
LAUNCHES = st.tuples(st.booleans(), st.integers(0, 5), st.tuples(MOVES, MOVES))
STEPS = st.lists(st.one_of(LAUNCHES, st.tuples(st.integers(0, 3), st.lists(LAUNCHES, max_size=3))), max_size=4)


class Walk:
    """Random steps as a table, and what one thread must be seen to do: `wanted` launches and `barriers`."""

    def __init__(self, steps: list[Any], threads: int, thread: int | None) -> None:
        self.rows: list[dict[int, int]] = []
        self.ranges: list[list[tuple[int, int]]] = [[] for _ in range(threads)]
        self.table = Table([], [])
        self.thread, self.wanted, self.barriers = thread, list[tuple[int, ...]](), 0
        for step in steps:
            if len(step) == 3:
                self._add(step, [0], moving=False)
            else:
                self._loop(*step)
        self.table = self._filled()

    def _loop(self, trips: int, body: list[Any]) -> None:
        self._row({abi.ROW_SIZES: len(body), abi.ROW_WORKGROUPS: trips, abi.ROW_FLAGS: abi.FLAG_LOOP}, 0)
        before = len(self.wanted)
        for launch in body:
            self._add(launch, range(trips), moving=True)
        found = self.wanted[before:]  # one launch after the other, each in all iterations
        self.wanted[before:] = sorted(found, key=lambda launch: launch[-1])

    def _row(self, row: dict[int, int], workgroups: int) -> None:
        self.rows.append(row)
        cuts = [workgroups * t // len(self.ranges) for t in range(len(self.ranges) + 1)]
        for shares, share in zip(self.ranges, pairwise(cuts), strict=True):
            shares.append(share)

    def _add(self, launch: Any, trips: Any, *, moving: bool) -> None:
        barrier, workgroups, moves = launch
        number = len(self.rows)
        flags = abi.FLAG_BARRIER if barrier else 0
        self._row({abi.ROW_WORKGROUPS: workgroups, abi.ROW_FLAGS: flags, -1: moving, -2: moves}, workgroups)  # pyright: ignore[reportArgumentType]
        begin, end = (0, workgroups) if self.thread is None else self.ranges[self.thread][number]
        for trip in trips:
            self.barriers += barrier and self.thread is not None
            if begin < end:
                bound = [_moved(move, trip) if moving else move[0] for move in moves]
                first, stride = (512, 192) if number % 2 else (0, 64)  # every other row has scratch of its own
                distance = first + stride * (self.thread or 0)
                self.wanted.append((number, *bound, 7 * number, begin, end, distance, trip))

    def _filled(self) -> Table:
        """The table, its launches with kernels, sizes, and bindings or moves."""
        table = Table([{k: v for k, v in row.items() if k >= 0} for row in self.rows], self.ranges)
        rows, first = table.space.find(int(table.context[abi.CONTEXT_ROWS // WORD]))
        for number, row in enumerate(self.rows):
            if -1 not in row:
                continue
            sizes, words = table.space.words(1)
            words[0] = 7 * number
            moves: Any = row[-2]
            bindings, bound = table.space.words(2 * abi.MOVE_BYTES // WORD)
            bound[: 2 if not row[-1] else 10] = (
                [number for move in moves for number in move] if row[-1] else [m[0] for m in moves]
            )
            filled = {abi.ROW_KERNEL: table.kernel(number), abi.ROW_BINDINGS: bindings, abi.ROW_SIZES: sizes}
            filled |= {abi.ROW_MOVES: bindings, abi.ROW_MOVE_COUNT: 2} if row[-1] else {}
            filled |= {abi.ROW_SCRATCH: table.scratch + 512, abi.ROW_SCRATCH_STRIDE: 192} if number % 2 else {}
            for offset, value in filled.items():
                rows[first + (number * abi.ROW_BYTES + offset) // WORD] = value
        return table


@settings(max_examples=60, deadline=None)
@given(STEPS, st.sampled_from([(1, None), (1, 0), (2, 0), (2, 1), (3, 2)]))
def test_a_thread_does_its_share_of_every_row_in_order(steps: list[Any], who: tuple[int, int | None]) -> None:
    walk = Walk(steps, *who)
    team = walk.table.team
    for other in range(who[0]):
        team[team.flag(other)] = 10**6  # everybody else is far ahead
    reached = walk.table.walk(who[1], len(walk.rows))
    assert walk.table.launched == [launch[:-1] for launch in walk.wanted]
    assert reached == 40 + walk.barriers
