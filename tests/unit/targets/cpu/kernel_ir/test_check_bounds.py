"""What the bounds checker proves, and what it must not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds

AVX2 = machine("avx2")
N = 8


def problems(
    emit: Callable[[KernelBuilder, Any, Any], Any], extent: int = 100, sizes: tuple[int, ...] = (), workgroups: int = 1
) -> int:
    """How many accesses of a kernel over two buffers of `extent` elements stay unproved."""
    k = KernelBuilder("kernel", AVX2)
    emit(k, k.binding(0, "f32", extent), k.binding(1, "f32", extent, writable=True))
    return len(check_bounds(k.finish(), sizes, workgroups))


def touch(k: KernelBuilder, memory: Any, index: Any, lanes: int = 1) -> None:
    """A load for its access only."""
    k.load(memory, index, lanes)


def strips(k: KernelBuilder, x: Any, y: Any, *, end: Any = 100) -> None:
    """Whole vectors, then a masked rest."""
    whole = k.mul(k.div(end, N), N)
    k.loop(0, whole, N, lambda i: k.store(y, i, k.load(x, i, N)))
    left = k.sub(end, whole)
    k.when(k.compare("lt", whole, end), lambda: k.store(y, whole, k.load(x, whole, N, active=left), active=left))


def test_strips_are_proved() -> None:
    assert problems(strips) == 0


@pytest.mark.parametrize("end", [1, 7, 8, 99, 100])
def test_strips_of_runtime_size(end: int) -> None:
    assert problems(lambda k, x, y: strips(k, x, y, end=k.size(0)), sizes=(end,)) == 0


def test_one_too_many_is_seen() -> None:
    assert problems(lambda k, x, y: strips(k, x, y, end=101)) > 0
    assert problems(lambda k, x, y: k.load(x, 93, N)) == 1
    assert problems(lambda k, x, y: k.load(x, 92, N)) == 0


def test_below_the_buffer_is_seen() -> None:
    assert problems(lambda k, x, y: k.loop(0, 10, 1, lambda i: k.store(y, k.sub(i, 1), k.load(x, i)))) == 1


def test_unmasked_rest_is_seen() -> None:
    assert problems(lambda k, x, y: k.loop(0, 100, N, lambda i: k.store(y, i, k.load(x, i, N)))) == 2


@pytest.mark.parametrize(("workgroups", "count"), [(4, 0), (5, 1)])
def test_the_grid_bounds_workgroups(workgroups: int, count: int) -> None:
    def emit(k: KernelBuilder, x: Any, y: Any) -> None:
        k.loop(k.begin, k.end, 1, lambda w: touch(k, x, k.add(k.mul(w, 25), 24)))

    assert problems(emit, workgroups=workgroups) == count


def test_grid_points_are_digits() -> None:
    """Workgroup to (row, column) by division, as every family does."""

    def emit(k: KernelBuilder, x: Any, y: Any) -> None:
        def body(w: Any) -> None:
            row, column = k.div(w, 5), k.rem(w, 5)
            k.store(
                y, k.add(k.mul(row, 10), k.mul(column, 2)), k.load(x, k.add(k.mul(row, 10), k.add(k.mul(column, 2), 1)))
            )

        k.loop(k.begin, k.end, 1, body)

    assert problems(emit, workgroups=50) == 0
    assert problems(emit, workgroups=51) == 2


def test_branches_help() -> None:
    def emit(k: KernelBuilder, x: Any, y: Any) -> None:
        def body(i: Any) -> None:
            at = k.sub(i, 4)
            k.when(k.compare("ult", at, 100), lambda: k.store(y, at, k.load(x, at)))

        k.loop(0, 110, 1, body)

    assert problems(emit) == 0
    assert problems(emit, extent=99) == 2


def test_the_other_branch_helps_too() -> None:
    def emit(k: KernelBuilder, x: Any, y: Any) -> None:
        k.loop(0, 110, 1, lambda i: k.when(k.compare("ge", i, 100), lambda: None, lambda: k.store(y, i, k.load(x, i))))

    assert problems(emit) == 0


def test_clamped_gathers() -> None:
    """Indices that come from memory are unknown until they are clamped."""

    def emit(k: KernelBuilder, x: Any, y: Any, high: int) -> None:
        indices = k.load(k.binding(2, "i64", N), 0, N)
        k.gather(x, k.min(k.max(indices, 0), high))

    assert problems(lambda k, x, y: emit(k, x, y, 99)) == 0
    assert problems(lambda k, x, y: emit(k, x, y, 100)) == N
    assert problems(lambda k, x, y: k.gather(x, k.load(k.binding(2, "i64", N), 0, N))) == 2 * N


def test_lanes_of_a_gather() -> None:
    assert problems(lambda k, x, y: k.gather(x, k.lane_indices(0, 14, N))) == 0
    assert problems(lambda k, x, y: k.gather(x, k.lane_indices(0, 15, N))) == 1
    assert problems(lambda k, x, y: k.gather(x, k.lane_indices(0, 20, N), active=5)) == 0


def test_chosen_addresses() -> None:
    """Each side is checked where it is chosen."""

    def emit(k: KernelBuilder, x: Any, y: Any, limit: int) -> None:
        zero = k.scratch("f32", N)
        k.loop(0, 30, 1, lambda i: touch(k, k.select_mem(k.compare("ult", i, limit), x, k.mul(i, N), zero, 0), 0, N))

    assert problems(lambda k, x, y: emit(k, x, y, 12)) == 0
    assert problems(lambda k, x, y: emit(k, x, y, 13)) == 1


def test_loops_that_never_run_prove_nothing_wrong() -> None:
    assert problems(lambda k, x, y: k.loop(k.size(0), 10, 1, lambda i: touch(k, x, k.add(i, 1000))), sizes=(10,)) == 0
    assert problems(lambda k, x, y: k.loop(k.size(0), 10, 1, lambda i: touch(k, x, k.add(i, 1000))), sizes=(9,)) == 1


def test_prefetches_may_lie_outside() -> None:
    assert problems(lambda k, x, y: k.prefetch(x, 5000)) == 0
