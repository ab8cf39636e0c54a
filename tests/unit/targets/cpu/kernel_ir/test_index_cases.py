"""Loops by cases of their index: what is counted in the last block of several is a number there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from fuseline.targets.cpu.kernel_ir.index_bounds import IndexBounds
from fuseline.targets.cpu.kernel_ir.index_cases import MOST_CASES, Case, is_shown, whole_case

WIDTH = 5  # elements of a line


def blocks(lines: int, block: int, height: int, *, beyond: int = 0) -> Callable[[KernelBuilder, Any], None]:
    """`lines` in blocks; the elements of a block, in tiles of `height`, and a rest that begins `height` before the
    block's end: both overlap."""

    def emit(k: KernelBuilder, memory: Any) -> None:
        def body(w: Any) -> tuple[()]:
            first = k.mul(w, block)
            count = k.mul(k.min(k.sub(lines, first), block), WIDTH)
            whole, place = k.div(count, height), k.mul(first, WIDTH)

            def tile(t: Any) -> tuple[()]:
                k.load(memory, k.add(place, k.mul(t, height)), height)
                return ()

            def rest() -> tuple[()]:
                k.load(memory, k.add(place, k.add(k.sub(count, height), beyond)), height)
                return ()

            k.loop(0, whole, 1, tile)
            k.when(k.compare("lt", k.mul(whole, height), count), rest)
            return ()

        k.loop(k.begin, k.end, 1, body)

    return emit


def problems(emit: Callable[[KernelBuilder, Any], None], extent: int, workgroups: int) -> int:
    """How many accesses to `extent` elements are not proved."""
    k = KernelBuilder("kernel", machine("avx2"))
    emit(k, k.binding(0, "f32", extent))
    return len(check_bounds(k.finish(), (), workgroups))


@pytest.mark.parametrize(("lines", "block"), [(55, 14), (197, 99), (27, 7), (13, 2), (1000, 33)])
@pytest.mark.parametrize("height", [3, 4, 8])
def test_the_last_block_is_shorter(lines: int, block: int, height: int):
    workgroups = -(-lines // block)
    emit = blocks(lines, block, height)
    assert problems(emit, lines * WIDTH, workgroups) == 0
    assert problems(emit, lines * WIDTH - 1, workgroups) > 0, "one element less"
    assert problems(emit, lines * WIDTH, workgroups + 1) > 0, "one block more"


def test_one_past_the_end_of_one_block_is_seen():
    lines, block, height = 55, 14, 4  # 65 elements of the last block, a rest of 1 at its end
    assert problems(blocks(lines, block, height), lines * WIDTH, 4) == 0
    assert problems(blocks(lines, block, height, beyond=1), lines * WIDTH, 4) == 1


@pytest.mark.parametrize("bad", range(9))
def test_an_access_of_any_one_iteration_is_seen(bad: int):
    """Elements 0, 1, ..; only in iteration `bad` one that does not exist."""

    def emit(k: KernelBuilder, memory: Any) -> None:
        def body(w: Any) -> tuple[()]:
            k.load(memory, k.select(k.compare("eq", w, bad), 10, w))
            return ()

        k.loop(k.begin, k.end, 1, body)

    assert (problems(emit, 11, 9), problems(emit, 10, 9)) == (0, 1)


def test_columns_of_a_grid_that_count_fastest():
    """The last of three column blocks of every line is shorter."""

    def emit(k: KernelBuilder, memory: Any) -> None:
        def body(w: Any) -> tuple[()]:
            line, first = k.div(w, 3), k.mul(k.rem(w, 3), 8)
            count = k.min(k.sub(20, first), 8)
            half = k.div(k.mul(count, 3), 6)
            k.load(memory, k.add(k.mul(line, 20), k.add(first, k.mul(half, 2))))  # count is even: the element behind
            return ()

        k.loop(k.begin, k.end, 1, body)

    assert (problems(emit, 4 * 20 + 1, 12), problems(emit, 4 * 20, 12)) == (0, 1)


def test_every_case_is_looked_at():
    """Halves until they hold, and together they are all."""
    looked_at: list[tuple[int, int]] = []

    def holds(case: Case) -> bool:
        looked_at.append((case.first, case.last))
        return case.last - case.first < 2

    assert is_shown(Case(_loop(10), 0, 9), holds)
    assert {i for first, last in looked_at if last - first < 2 for i in range(first, last + 1)} == set(range(10))


@pytest.mark.parametrize("wrong", range(10))
def test_one_case_that_does_not_hold_is_enough(wrong: int):
    assert not is_shown(Case(_loop(10), 0, 9), lambda case: not case.first <= wrong <= case.last)


def test_a_long_loop_is_given_up():
    count = 0

    def holds(case: Case) -> bool:
        nonlocal count
        count += 1
        return case.first == case.last

    assert not is_shown(Case(_loop(10), 0, 1 << 60), holds)
    assert count <= MOST_CASES


@pytest.mark.parametrize(("lo", "hi", "step", "expected"), [(0, 4, 1, (0, 3)), (4, 4, 1, None), (0, 4, 2, None)])
def test_which_loops_have_cases(lo: int, hi: int, step: int, expected: tuple[int, int] | None):
    k = KernelBuilder("kernel", machine("avx2"))
    data = k.load(k.binding(0, "i64", 1), 0)
    k.loop(lo, k.min(data, hi), step, lambda i: ())
    kernel = k.finish()
    loops = [op for op in kernel.body.ops if hasattr(op, "step")]
    case = whole_case(IndexBounds(kernel, (), 1, {}), loops[0])  # pyright: ignore[reportArgumentType]
    assert (None if case is None else case[1:]) == expected


def _loop(end: int) -> Any:
    k = KernelBuilder("kernel", machine("avx2"))
    k.loop(0, end, 1, lambda i: ())
    return k.finish().body.ops[-1]
