"""What the bounds checker takes remainders and quotients of any number for: signed and unsigned, of loops that begin
below 0 and of data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.proved import ProvedProgram

from .index_algebra import AVX2


def problems(place: Callable[[KernelBuilder, Any, Any], Any], extent: int) -> int:
    """How many accesses to `extent` elements at `place(loop from -3 to 4, an element)` are not proved."""
    k = KernelBuilder("kernel", AVX2)
    memory, data = k.binding(0, "f32", extent), k.binding(1, "i64", 1)

    def body(i: Any) -> None:
        k.load(memory, place(k, k.sub(i, 3), k.load(data, 0)))

    k.loop(0, 8, 1, body)
    return len(check_bounds(k.finish()))


PLACES: dict[str, tuple[Callable[[KernelBuilder, Any, Any], Any], int]] = {
    "signed rest of data": (lambda k, i, e: k.add(k.srem(e, 5), 4), 9),
    "signed rest by what is chosen": (lambda k, i, e: k.add(k.srem(e, k.select(k.compare("gt", i, 0), 2, 5)), 4), 9),
    "signed rest by a negative number": (lambda k, i, e: k.add(k.srem(e, -5), 4), 9),
    "unsigned rest of data": (lambda k, i, e: k.rem(e, 5), 5),
    "unsigned rest of what may be negative": (lambda k, i, e: k.rem(i, 9), 9),
    "unsigned rest of what is not negative": (lambda k, i, e: k.rem(k.add(i, 3), 9), 8),
    "quotient of what is not negative": (lambda k, i, e: k.div(k.add(i, 3), 2), 4),
}


@pytest.mark.parametrize("name", PLACES)
def test_it_is_no_greater(name: str):
    place, extent = PLACES[name]
    assert problems(place, extent) == 0
    assert problems(place, extent - 1) > 0


def test_a_signed_rest_may_be_as_far_below_0():
    assert problems(lambda k, i, e: k.add(k.srem(e, 5), 3), 100) == 1
    assert problems(lambda k, i, e: k.sub(5, k.srem(e, 6)), 11) == 0
    assert problems(lambda k, i, e: k.sub(5, k.srem(e, 6)), 10) == 1
    assert problems(lambda k, i, e: k.sub(4, k.srem(e, 6)), 11) == 1


@pytest.mark.parametrize(("divisors", "most"), [((2, 5), 4), ((2, -7), 6), ((-7, 3), 6)])
def test_a_signed_rest_is_nearer_to_0_than_any_divisor(divisors: tuple[int, int], most: int):
    def place(k: KernelBuilder, i: Any, e: Any) -> Any:
        return k.add(k.srem(e, k.select(k.compare("gt", i, 0), *divisors)), most)

    assert (problems(place, 2 * most + 1), problems(place, 2 * most)) == (0, 1)


@pytest.mark.parametrize("divisor", [lambda k, e: e, lambda k, e: k.max(e, 1), lambda k, e: k.min(e, -1)])
def test_a_rest_by_what_nobody_knows_may_be_any_number(divisor: Callable[[KernelBuilder, Any], Any]):
    assert problems(lambda k, i, e: k.srem(e, divisor(k, e)), 1 << 40) == 2


def test_a_quotient_by_what_may_be_any_number_may_be_0():
    assert problems(lambda k, i, e: k.div(k.add(i, 4), k.max(e, 1)), 9) == 0
    assert problems(lambda k, i, e: k.sub(k.div(k.add(i, 4), k.max(e, 1)), 1), 9) == 1


def test_minus_one_is_negative():
    """`i - 1` for `i` from 0 on is divided as a large number once."""
    assert problems(lambda k, i, e: k.div(k.add(i, 3), 2), 4) == 0
    assert problems(lambda k, i, e: k.div(k.add(i, 2), 2), 4) == 2


def test_conditions_that_lead_in_a_circle_end():
    k = KernelBuilder("kernel", AVX2)
    memory, data = k.binding(0, "f32", 10), k.binding(1, "i64", 2)
    a, b = k.load(data, 0), k.load(data, 1)
    k.when(k.compare("eq", a, b), lambda: (k.load(memory, a), ())[1])
    assert len(check_bounds(k.finish())) == 2


def test_what_may_be_negative_is_a_large_number_when_it_is_divided():
    """And twice that is any number, since it does not fit."""
    assert problems(lambda k, i, e: k.div(i, 2), 1 << 40) > 0
    assert problems(lambda k, i, e: k.mul(k.div(i, 2), 2), 1 << 40) > 0
    assert problems(lambda k, i, e: k.min(k.mul(k.div(i, 2), 2), 9), 10) == 1
    assert problems(lambda k, i, e: k.min(k.div(e, k.select(k.compare("gt", i, 0), 1, 2)), 9), 10) == 1


def test_a_condition_on_a_quotient_tells_its_range():
    """A condition may name the very quotient that it helps to bound."""

    def count(extent: int) -> int:
        k = KernelBuilder("kernel", AVX2)
        memory = k.binding(0, "f32", extent)

        def body(i: Any) -> None:
            half = k.div(i, 2)
            k.when(
                k.compare("le", i, half),
                lambda: k.when(k.compare("lt", half, 3), lambda: (k.load(memory, half), ())[1]),
            )

        k.loop(0, 2, 1, lambda _: k.loop(0, 40, 1, body))  # an outermost loop is looked at by cases
        return len(check_bounds(k.finish()))

    assert (count(3), count(2)) == (0, 1)


def test_a_number_fits_its_type_by_itself_and_not_by_a_condition():
    """What is known of a value in one branch is forgotten behind it."""
    k = KernelBuilder("kernel", AVX2)
    memory = k.binding(0, "f32", 10)

    def body(i: Any) -> None:
        rest = k.cast(k.cast(k.div(i, 2), "i32"), "i64")
        k.when(k.compare("ge", i, 0), lambda: (k.load(memory, k.min(rest, 9)), ())[1])
        k.load(memory, k.min(rest, 9))

    k.loop(-3, 20, 1, body)
    assert [problem.detail[-12:] for problem in check_bounds(k.finish())][-1:] == ["not negative"]


NARROW: dict[str, tuple[Callable[[KernelBuilder, Any], Any], int]] = {
    "a sum that fits": (lambda k, i: k.add(i, i), 127),
    "a sum that may not fit": (lambda k, i: k.add(i, k.const(65, "i8")), -1),
    "a product that may not fit": (lambda k, i: k.mul(i, k.const(3, "i8")), -1),
    "a difference that fits": (lambda k, i: k.sub(k.const(63, "i8"), i), 64),
    "a difference that may not fit": (lambda k, i: k.sub(k.const(-66, "i8"), i), -1),
    "the least number that fits": (lambda k, i: k.sub(i, k.const(63, "i8")), -1),
    "a number of another sign": (lambda k, i: k.const(200, "i8"), -1),
}


@pytest.mark.parametrize("name", NARROW)
def test_arithmetic_in_fewer_bits_wraps(name: str):
    place, extent = NARROW[name]
    k = KernelBuilder("kernel", AVX2)
    memory = k.binding(0, "f32", abs(extent) if extent > 0 else 1 << 40)
    k.loop(0, 64, 1, lambda i: (k.load(memory, k.cast(place(k, k.cast(i, "i8")), "i64")), None)[1])
    assert bool(check_bounds(k.finish())) is (extent < 0)


def _in_steps(begin: int, step: int, divisor: int, further: int, extent: int) -> int:
    """How many accesses are not proved at the rest of `index + further`, in a loop of some steps."""
    k = KernelBuilder("kernel", AVX2)
    memory, size = k.binding(0, "f32", extent), k.size(0)

    def body(i: Any) -> None:
        k.load(memory, k.rem(k.add(i, further), divisor))

    k.loop(begin, k.add(begin, k.mul(size, step)), step, body)
    return len(check_bounds(k.finish(), (int(RNG.integers(2, 9)),)))


@pytest.mark.parametrize("draw", range(8))
def test_the_rest_of_whole_steps_is_that_of_where_a_loop_begins(draw: int):
    del draw
    divisor, begin, further = (int(number) for number in RNG.integers(2, 12, 3))
    step, rest = divisor * int(RNG.integers(1, 4)), (begin + further) % divisor
    assert _in_steps(begin, step, divisor, further, rest + 1) == 0
    assert rest == 0 or _in_steps(begin, step, divisor, further, rest) > 0
    assert _in_steps(begin, step + 1, divisor, further, divisor) == 0
    assert _in_steps(begin, step + 1, divisor, further, 1) > 0


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8"])
@pytest.mark.parametrize("rows", [2, 4, 8, 16, 32])
def test_a_turned_matrix_is_read_inside_whatever_its_rows_are(rows: int, dtype: str):
    """As many rows as a vector has lanes: each vector of the result is one column."""
    columns = int(RNG.integers(2, 20))
    element = {"float64": "double", "float32": "float", "int8": "int8"}[dtype]
    model = onnx_model(f"({element}[{rows}, {columns}] x) => (y) {{ y = Transpose<perm = [1, 0]>(x) }}")
    x = (100 * RNG.standard_normal((rows, columns))).astype(dtype)
    np.testing.assert_array_equal(ProvedProgram(model).run({"x": x})[0], x.T)
