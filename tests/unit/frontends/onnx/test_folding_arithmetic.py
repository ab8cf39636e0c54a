"""Arithmetic on arrays of sizes: as on numbers at every size, or left to the program."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from numpy.typing import NDArray

from fuseline.frontends.onnx.folding_arithmetic import (
    Unfoldable,
    array_of_sizes,
    binary,
    comparison,
    divide,
    equal,
    less,
    less_equal,
    modulo,
    negated,
    not_of_sizes,
    unary,
    with_python_numbers,
)
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.tensors import known
from fuseline.ir import dim as d
from tests.draws import RNG

Array = NDArray[Any]
N, M = d.symbol("n", 0, 12), d.symbol("m", 1, 5)


def _node(*inputs: Array, **attributes: Any) -> OnnxNode:
    source = ir.Node("", "Op", [None] * len(inputs), ir.convenience.convert_attributes(attributes))
    tensors = [known(item) for item in inputs]
    return OnnxNode(None, None, source, "node", tensors, source.attributes, 18)  # pyright: ignore[reportArgumentType]


def _sizes(*items: d.Dim) -> Array:
    return array_of_sizes(items, [len(items)])


def _applied(folder: Callable[..., Array], x: Array, y: Array, **attributes: Any) -> Array:
    return folder(_node(x, y, **attributes), x, y)


def _at(array: Array, n: int, m: int) -> list[int]:
    return [d.evaluate(size, {"n": n, "m": m}) for size in array.reshape(-1)]


def test_sizes_lie_in_row_major_order():
    found = array_of_sizes([N, 2, M, 4, 5, 6], (2, 3))
    assert found.dtype == object and found.shape == (2, 3) and found[0, 2] == M and found[1, 0] == 4
    assert array_of_sizes([N], ()).shape == () and array_of_sizes([], (0,)).size == 0


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint32, np.bool_, np.float32, np.float64])
def test_whole_numbers_become_python_numbers(dtype: Any):
    numbers = RNG.integers(0, 100, (3, 2)).astype(dtype)
    found = with_python_numbers(numbers)
    assert found.dtype == object and found.shape == (3, 2)
    assert [type(item) for item in found.reshape(-1)] in ([int] * 6, [bool] * 6)
    np.testing.assert_array_equal(found.astype(dtype), numbers)
    sizes = _sizes(N, M)
    assert with_python_numbers(sizes) is sizes


@pytest.mark.parametrize("numbers", [np.array([1.0, 2.5]), np.array([np.nan]), np.array(["a"])])
def test_other_numbers_do_not(numbers: Array):
    with pytest.raises(Unfoldable):
        with_python_numbers(numbers)


def test_two_operands_broadcast_sizes_or_not():
    folder = binary(d.add, np.add)
    x, y = RNG.integers(-9, 9, (2, 3)), RNG.integers(-9, 9, 3)
    np.testing.assert_array_equal(_applied(folder, x, y), x + y)
    assert _applied(folder, x, y).dtype == np.int64
    found = _applied(folder, array_of_sizes([N, M], (2, 1)), y)
    assert found.shape == (2, 3) and found.dtype == object
    for n, m in product(range(13), range(1, 6)):
        assert _at(found, n, m) == [*(n + y), *(m + y)]
    with pytest.raises(Unfoldable):
        _applied(folder, _sizes(N), np.array([0.5]))


@pytest.mark.parametrize("divisor", [_sizes(3), _sizes(M)], ids=["number", "size"])
@pytest.mark.parametrize("dividend", [N, d.sub(N, 5), d.sub(2, M), d.sub(M, d.symbol("n", 0))], ids=str)
def test_sizes_are_divided_towards_zero(dividend: d.Dim, divisor: Array):
    x = _sizes(dividend)
    found = _applied(divide, x, divisor)
    for n, m in product(range(13), range(1, 6)):
        (a,), (b,) = _at(x, n, m), _at(divisor, n, m)
        assert _at(found, n, m) == [int(a / b)]


def test_numbers_are_divided_as_their_type_says():
    x = RNG.integers(-50, 50, 20)
    y = RNG.choice([-7, -2, -1, 1, 3, 8], 20)
    np.testing.assert_array_equal(_applied(divide, x, y), [int(a / b) for a, b in zip(x, y, strict=True)])
    floats = x.astype(np.float32), y.astype(np.float32)
    np.testing.assert_array_equal(_applied(divide, *floats), floats[0] / floats[1])
    with np.errstate(divide="ignore"):
        assert _applied(divide, np.ones(1, np.float32), np.zeros(1, np.float32)).tolist() == [np.inf]


def test_what_cannot_be_divided():
    for x, y in [
        (np.array([1, 2]), np.array([1, 0])),
        (_sizes(N), _sizes(d.sub(N, 3))),
    ]:
        with pytest.raises(Unfoldable):
            _applied(divide, x, y)


def test_sizes_in_floats_are_divided_without_a_rest():
    def quotient(x: d.Dim, y: int) -> Array:
        operands = _sizes(x), np.array([y], np.float32)
        return divide(_node(np.ones(1, np.float32), operands[1]), *operands)

    assert quotient(d.mul(N, 6), 3).tolist() == [d.mul(N, 2)]
    for x, y in ((N, 2), (d.add(d.mul(N, 2), 1), 2), (N, 0)):
        with pytest.raises(Unfoldable):
            quotient(x, y)


def test_rests_have_the_sign_that_the_node_asks_for():
    x, y = RNG.integers(-50, 50, 20), RNG.choice([-7, -2, 3, 8], 20)
    np.testing.assert_array_equal(_applied(modulo, x, y), x % y)
    np.testing.assert_array_equal(_applied(modulo, x, y, fmod=1), np.fmod(x, y))
    found = _applied(modulo, _sizes(N, d.add(N, M)), _sizes(4, M))
    for n, m in product(range(13), range(1, 6)):
        assert _at(found, n, m) == [n % 4, (n + m) % m]
    with pytest.raises(Unfoldable):
        _applied(modulo, _sizes(d.sub(N, 1)), _sizes(4))


def test_what_means_nothing_for_sizes():
    folder = binary(not_of_sizes, np.bitwise_and)
    np.testing.assert_array_equal(_applied(folder, np.array([6, 5]), np.array([3, 4])), [2, 4])
    with pytest.raises(Unfoldable):
        _applied(folder, _sizes(N), np.array([1]))


ENDS = (None, -2, -1, 0, 1, 2)
RANGES = [(low, high) for low, high in product(ENDS, ENDS) if low is None or high is None or low <= high]


@pytest.mark.parametrize(
    ("holds", "test"),
    [
        (less, lambda value: value < 0),
        (less_equal, lambda value: value <= 0),
        (equal, lambda value: value == 0),
        (negated(less), lambda value: value >= 0),
        (negated(equal), lambda value: value != 0),
    ],
)
@pytest.mark.parametrize("ends", RANGES)
def test_bounds_settle_exactly_what_all_values_between_agree_on(
    ends: tuple[int | None, int | None],
    holds: Callable[[int | None, int | None], bool | None],
    test: Callable[[int], bool],
):
    low, high = (-9 if ends[0] is None else ends[0]), (9 if ends[1] is None else ends[1])
    answers = {test(value) for value in range(low, high + 1)}
    assert holds(*ends) is (answers.pop() if len(answers) == 1 else None)


def test_comparisons_answer_booleans():
    folder = comparison(less, np.less)
    found = _applied(folder, _sizes(N, M, 3), _sizes(d.add(N, 1), 1, 3))
    assert found.dtype == bool and found.tolist() == [True, False, False]
    assert _applied(folder, np.array([1, 5]), np.array([2, 2])).tolist() == [True, False]
    with pytest.raises(Unfoldable):
        _applied(folder, _sizes(N), _sizes(M))


def test_one_operand():
    x, sizes = RNG.integers(-9, 9, 5), _sizes(N, d.sub(M, 3))
    negative = unary(np.negative, lambda size: d.mul(size, -1))
    np.testing.assert_array_equal(negative(_node(x), x), -x)
    assert _at(negative(_node(sizes), sizes), 7, 2) == [-7, 1]
    with pytest.raises(Unfoldable):
        unary(np.sqrt)(_node(sizes), sizes)
