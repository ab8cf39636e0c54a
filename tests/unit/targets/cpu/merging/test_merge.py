"""Kernels that differ in numbers as one kernel: it does for the numbers of each what that one did; what else they
differ in is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from fuseline.targets.cpu.kernel_ir.types import Block, Kernel, Loop, Operand, Value
from fuseline.targets.cpu.merging.forms import UnlikeError
from fuseline.targets.cpu.merging.merge import Merged, merge
from tests.kernel_ir.evaluate import evaluate
from tests.kernels import call

ISA = machine("avx2")
Build = Callable[[KernelBuilder], None]


def general(build: Build) -> Kernel:
    k = KernelBuilder("one", ISA, keeps_loops=True)
    build(k)
    return k.finish()


def merged(*builds: Build) -> tuple[Merged, list[Kernel]]:
    kernels = [general(build) for build in builds]
    return merge(kernels, "both", ISA), kernels


def check(own: Kernel, one: Kernel, numbers: tuple[int, ...], workgroups: int = 1) -> None:
    """The same bytes, on the evaluator and natively, and every access is proved."""
    rng = np.random.default_rng()
    arrays = [rng.standard_normal(memory.extent).astype(np.float32) for memory in own.bindings]  # pyright: ignore
    expected, found, native = ([array.copy() for array in arrays] for _ in range(3))
    evaluate(own, expected, (), 0, workgroups)
    evaluate(one, found, numbers, 0, workgroups)
    call(one, ISA, native, numbers, 0, workgroups)
    for array, other, third in zip(expected, found, native, strict=True):
        np.testing.assert_array_equal(array, other)
        np.testing.assert_array_equal(array, third)
    assert check_bounds(one, numbers, workgroups) == []


def rows(count: int, width: int, start: int = 0) -> Build:
    """Row sums of a `count` by `width` matrix, from element `start` of the buffer on."""

    def build(k: KernelBuilder) -> None:
        x, y = k.binding(0, "f32", start + count * width), k.binding(1, "f32", count, writable=True)

        def row(i: Operand) -> tuple[Operand, ...]:
            first = k.add(k.mul(i, width), start)
            (total,) = k.loop(
                0, width, 1, lambda j, sum_: (k.add(sum_, k.load(x, k.add(first, j))),), (k.const(0.0, "f32"),)
            )
            k.store(y, i, total)
            return ()

        k.loop(0, count, 1, row)

    return build


def test_loops_strides_and_places_are_numbers():
    sizes = [(5, 7, 0), (3, 16, 2), (1, 1, 0), (6, 1, 9)]
    one, kernels = merged(*(rows(*size) for size in sizes))
    for own, numbers in zip(kernels, one.numbers, strict=True):
        check(own, one.kernel, numbers)


def test_kernels_that_differ_in_nothing_take_no_numbers():
    one, kernels = merged(rows(4, 7), rows(4, 7), rows(4, 7))
    assert one.numbers == ((), (), ())
    check(kernels[0], one.kernel, ())


def test_loops_that_run_once_everywhere_are_no_loops():
    one, kernels = merged(rows(1, 7), rows(1, 9))
    assert one.numbers == ((7,), (9,))
    for own, numbers in zip(kernels, one.numbers, strict=True):
        check(own, one.kernel, numbers)


def test_numbers_that_are_equal_in_all_stay():
    one, _ = merged(rows(5, 7), rows(3, 7))
    assert all(len(numbers) == 1 for numbers in one.numbers)
    assert {numbers[0] for numbers in one.numbers} == {5, 3}


def unrolled(stride: int) -> Build:
    """Four elements, a stride apart, and their neighbours."""

    def build(k: KernelBuilder) -> None:
        x, y = k.binding(0, "f32", 3 * stride + 2), k.binding(1, "f32", 8, writable=True)
        for i in range(4):
            k.store(y, 2 * i, k.load(x, i * stride))
            k.store(y, 2 * i + 1, k.load(x, i * stride + 1))

    return build


def test_multiples_of_a_number_and_their_neighbours_are_one_number():
    one, kernels = merged(unrolled(5), unrolled(11))
    assert one.numbers == ((5,), (11,))
    for own, numbers in zip(kernels, one.numbers, strict=True):
        check(own, one.kernel, numbers)


def masked(active: int) -> Build:
    def build(k: KernelBuilder) -> None:
        x, y = k.binding(0, "f32", 8), k.binding(1, "f32", 8, writable=True)
        k.store(y, 0, k.load(x, 0, 8, active=active), active=active)

    return build


def test_lanes_that_live_are_numbers():
    one, kernels = merged(masked(3), masked(6))
    for own, numbers in zip(kernels, one.numbers, strict=True):
        check(own, one.kernel, numbers)


def staged(elements: int) -> Build:
    """Through scratch of so many elements, and then through other scratch in the same place."""

    def build(k: KernelBuilder) -> None:
        x, y = k.binding(0, "f32", elements), k.binding(1, "f32", 2 * elements, writable=True)
        for half in range(2):
            with k.passing_scratch():
                stage = k.scratch("f32", elements * (half + 1))
                for memory, source, start in ((stage, x, 0), (y, stage, half * elements)):
                    k.loop(
                        0,
                        elements,
                        1,
                        lambda i, memory=memory, source=source, start=start: k.store(
                            memory, k.add(i, start), k.load(source, i)
                        ),
                    )

    return build


def test_scratch_is_as_long_as_the_longest():
    one, kernels = merged(staged(20), staged(33))
    assert one.kernel.scratch_bytes == max(kernel.scratch_bytes for kernel in kernels)
    for own, numbers in zip(kernels, one.numbers, strict=True):
        check(own, one.kernel, numbers)


def tiled(extent: int, size: int) -> Build:
    """A grid of tiles of `size` of `extent` elements, the last of which may be shorter."""

    def build(k: KernelBuilder) -> None:
        x, y = k.binding(0, "f32", extent), k.binding(1, "f32", extent, writable=True)

        def tile(number: Operand) -> tuple[Operand, ...]:
            first = k.mul(k.rem(number, -(-extent // size)), size)
            end = k.min(k.add(first, size), extent)

            def element(i: Operand) -> tuple[Operand, ...]:
                inside = k.compare("lt", i, extent - 1)
                (value,) = k.when(inside, lambda: (k.load(x, i),), lambda: (k.const(2.0, "f32"),))
                k.store(y, i, value)
                return ()

            k.loop(first, end, 1, element)
            return ()

        k.loop(k.begin, k.end, 1, tile)

    return build


def test_grids_minima_rests_and_branches_are_numbers():
    sizes = [(29, 5), (7, 7), (64, 16)]
    one, kernels = merged(*(tiled(*size) for size in sizes))
    for own, numbers, (extent, size) in zip(kernels, one.numbers, sizes, strict=True):
        check(own, one.kernel, numbers, -(-extent // size))


def depths(block: Block, operation: str, depth: int = 0) -> Iterator[int]:
    """In how many loops an operation is done, for each time it is."""
    for op in block.ops:
        if isinstance(op, Loop):
            yield from depths(op.body, operation, depth + 1)
        elif isinstance(op, Value) and op.op == operation:
            yield depth


def shared_out(rows: int, width: int) -> Build:
    """Workgroup `n` copies row `n mod rows` of a matrix, element by element."""

    def build(k: KernelBuilder) -> None:
        x, y = k.binding(0, "f32", rows * width), k.binding(1, "f32", rows * width, writable=True)

        def one(number: Operand) -> tuple[Operand, ...]:
            row = k.rem(number, rows)

            def element(i: Operand) -> tuple[Operand, ...]:
                at = k.add(k.mul(row, width), i)
                k.store(y, at, k.load(x, at))
                return ()

            k.loop(0, width, 1, element)
            return ()

        k.loop(k.begin, k.end, 1, one)

    return build


def test_divisions_stay_out_of_the_loops_that_need_them():
    one, kernels = merged(shared_out(3, 8), shared_out(5, 11))
    assert list(depths(one.kernel.body, "urem")) == [1]
    for own, numbers, workgroups in zip(kernels, one.numbers, (3, 5), strict=True):
        check(own, one.kernel, numbers, workgroups)


def doubled(twice: bool) -> Build:
    def build(k: KernelBuilder) -> None:
        x, y = k.binding(0, "f32", 8), k.binding(1, "f32", 8, writable=True)
        value = k.load(x, 0, 8)
        k.store(y, 0, k.add(value, value) if twice else k.mul(value, value))

    return build


def scaled(by: float) -> Build:
    def build(k: KernelBuilder) -> None:
        x, y = k.binding(0, "f32", 8), k.binding(1, "f32", 8, writable=True)
        k.store(y, 0, k.mul(k.load(x, 0, 8), k.const(by, "f32", 8)))

    return build


def counted(steps: int) -> Build:
    def build(k: KernelBuilder) -> None:
        x, y = k.binding(0, "f32", 8), k.binding(1, "f32", 8, writable=True)
        k.loop(0, 8, steps, lambda i: k.store(y, i, k.load(x, i)))

    return build


def twice_stored(more: bool) -> Build:
    def build(k: KernelBuilder) -> None:
        x, y = k.binding(0, "f32", 8), k.binding(1, "f32", 8, writable=True)
        k.store(y, 0, k.load(x, 0))
        if more:
            k.store(y, 1, k.load(x, 0))

    return build


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        (doubled(True), doubled(False), "operations"),
        (scaled(1.5), scaled(2.5), "constants"),
        (counted(1), counted(2), "loops"),
        (twice_stored(True), twice_stored(False), "code"),
        (masked(3), masked(8), "operands"),
        (staged(4), rows(4, 4), "scratch"),
    ],
)
def test_what_is_no_number_is_refused(one: Build, other: Build, reason: str):
    with pytest.raises(UnlikeError, match=reason):
        merged(one, other)


def chosen(predicate: str, limit: int) -> Build:
    """An element where a comparison holds for its number, else the first one."""

    def build(k: KernelBuilder) -> None:
        x, y = k.binding(0, "f32", 8), k.binding(1, "f32", 8, writable=True)

        def element(i: Operand) -> tuple[Operand, ...]:
            inside = k.compare(predicate, k.sub(i, 1), limit)
            k.store(y, i, k.load(k.select_mem(inside, x, i, x, 0), 0))
            return ()

        k.loop(0, 8, 1, element)

    return build


def test_comparisons_of_other_predicates_are_not_one():
    with pytest.raises(UnlikeError, match="compare"):
        merged(chosen("ge", 0), chosen("ult", 5))


def test_comparisons_with_other_numbers_are_one():
    one, kernels = merged(chosen("ult", 5), chosen("ult", 3))
    for own, numbers in zip(kernels, one.numbers, strict=True):
        check(own, one.kernel, numbers)


def lines(count: int, apart: int) -> Build:
    """Four elements of each of `count` lines; where there is one, its number adds nothing to a place."""

    def build(k: KernelBuilder) -> None:
        x, y = k.binding(0, "f32", count * apart + 4), k.binding(1, "f32", count * 4, writable=True)

        def line(i: Operand) -> tuple[Operand, ...]:
            def element(j: Operand) -> tuple[Operand, ...]:
                first, place = (k.mul(i, n) if count > 1 else 0 for n in (apart, 4))
                k.store(y, k.add(place, j), k.load(x, k.add(first, j)))
                return ()

            k.loop(0, 4, 1, element)
            return ()

        k.loop(0, count, 1, line)

    return build


@pytest.mark.parametrize("order", [(1, 5, 3), (5, 1, 1), (2, 3, 1)])
def test_an_index_may_be_no_part_of_a_sum_in_some(order: tuple[int, ...]):
    one, kernels = merged(*(lines(count, 7 + 4 * i) for i, count in enumerate(order)))
    for own, numbers in zip(kernels, one.numbers, strict=True):
        check(own, one.kernel, numbers)


def test_quotients_that_only_one_has_are_no_part_of_a_sum_of_others():
    def places(divisor: int) -> Build:
        def build(k: KernelBuilder) -> None:
            x, y = k.binding(0, "f32", 16), k.binding(1, "f32", 8, writable=True)

            def element(i: Operand) -> tuple[Operand, ...]:
                k.store(y, i, k.load(x, k.add(i, k.div(i, divisor) if divisor else 0)))
                return ()

            k.loop(0, 8, 1, element)

        return build

    with pytest.raises(UnlikeError, match="one sum has more terms"):
        merged(places(2), places(0))
