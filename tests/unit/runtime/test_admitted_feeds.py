"""Feeds against specs, without a session: what is taken as which array, and which sizes follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fuseline.buffers import INDEX_TYPE, TensorSpec
from fuseline.errors import FuselineError
from fuseline.runtime.feeds import admit, as_array, bind_sizes, shapes_of
from fuseline.runtime.program import Program
from fuseline.size_requirement import SizeRequirement

N, M = ("sum", ((1, "n"),)), ("sum", ((1, "m"),))
TWICE = ("sum", ((2, "n"),))
X, MASK = TensorSpec("x", "float32", (N, 4)), TensorSpec("mask", "bool", (N,))
K = TensorSpec("k", "int64", (M,), type=INDEX_TYPE)


def _error(function: Any, *arguments: Any) -> FuselineError:
    with pytest.raises(FuselineError) as caught:
        function(*arguments)
    return caught.value


def test_arrays_are_taken_as_they_are_in_the_order_of_the_inputs():
    x, mask = np.ones((3, 4), np.float32), np.ones(3, bool)
    found = admit([X, MASK], {"mask": mask, "x": x})
    assert found[0] is x and found[1] is mask


@pytest.mark.parametrize(
    ("dtype", "feed", "expected"),
    [
        ("float32", 3, np.float32(3)),
        ("float32", 2.5, np.float32(2.5)),
        ("bool", True, np.bool_(True)),
        ("int8", -128, np.int8(-128)),
        ("uint8", 255, np.uint8(255)),
        ("bfloat16", 1.5, ml_dtypes.bfloat16(1.5)),
        ("float32", [1.0, 2.0], None),
    ],
)
def test_python_numbers_take_the_dtype_that_is_wanted(dtype: str, feed: Any, expected: Any):
    spec = TensorSpec("x", dtype, ())
    if expected is None:
        assert _error(admit, [spec], {"x": feed}).code == "E0204"  # a list is float64
        return
    (found,) = admit([spec], {"x": feed})
    assert found.dtype == np.dtype(dtype) and found.shape == () and found == expected


@pytest.mark.parametrize(
    ("dtype", "feed"),
    [("int8", 128), ("int8", -129), ("uint8", -1), ("int64", 1.0), ("bool", 1), ("float32", True), ("bool", 0.0),
     ("bfloat16", True), ("int64", 1 << 63)],
)  # fmt: skip
def test_a_number_that_a_dtype_cannot_hold(dtype: str, feed: Any):
    error = _error(admit, [TensorSpec("x", dtype, ())], {"x": feed})
    assert (error.code, error.node) == ("E0204", "x") and f"{feed!r} is no {dtype}" in error.message


@pytest.mark.parametrize("feed", [np.int32(5), np.array(5, np.uint8), 5, np.array(5)])
def test_a_size_may_be_an_integer_of_any_width(feed: Any):
    (found,) = admit([K], {"k": feed})
    assert found.dtype == np.int64 and found == 5
    assert shapes_of([K], [found]) == ((5,),)


@pytest.mark.parametrize("feed", [np.float32(5), np.array([5], np.int32), np.array(True)])
def test_a_size_is_no_other_thing(feed: Any):
    assert _error(admit, [K], {"k": feed}).code == "E0204"


def test_a_size_with_dimensions():
    error = _error(shapes_of, [K], [np.array([5])])
    assert (error.code, error.node) == ("E0203", "k") and "(1,)" in error.message


@pytest.mark.parametrize(
    ("feeds", "code", "node", "says"),
    [
        ([1, 2], "E0501", None, "feeds are a list"),
        ({"x": 1, "y": 2}, "E0201", "y", "no such input"),
        ({3: 1}, "E0201", "3", "no such input"),
        ({}, "E0202", "x", "float32[n, 4]"),
        ({"x": np.ones((3, 4))}, "E0204", "x", "dtype is float64, must be float32"),
    ],
)
def test_refusals(feeds: Any, code: str, node: str | None, says: str):
    error = _error(admit, [X], feeds)
    assert (error.code, error.node) == (code, node) and says in error.message


def test_a_hint_names_the_inputs_that_there_are():
    assert _error(admit, [], {"x": 1}).hint == "inputs: none"
    assert _error(admit, [X, MASK], []).hint == "give {name: array}; inputs: x, mask"


class _Lent:
    """Has an array, and hands it out by DLPack."""

    def __init__(self, array: Any, *, broken: bool = False) -> None:
        self.array, self.broken = array, broken

    def __dlpack__(self, **options: Any) -> Any:
        if self.broken:
            raise BufferError("on another device")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_what_can_be_read_as_an_array():
    array = np.random.default_rng().standard_normal((2, 3))
    assert as_array(array, "x") is array
    np.testing.assert_array_equal(as_array(_Lent(array), "x"), array)
    assert as_array(_Lent(array), "x").ctypes.data == array.ctypes.data
    np.testing.assert_array_equal(as_array(array.tolist(), "x"), array)


@pytest.mark.parametrize("feed", [_Lent(np.zeros(2), broken=True), [[1], [2, 3]]], ids=["another device", "ragged"])
def test_what_cannot(feed: Any):
    error = _error(as_array, feed, "x")
    assert (error.code, error.node) == ("E0204", "x") and type(feed).__name__ in error.message


# sizes ----------------------------------------------------------------------------------------------------------------


def _program(*inputs: TensorSpec, requirements: Sequence[SizeRequirement] = (), **symbols: Any) -> Program:
    return Program(inputs, (), (), symbols=symbols, requirements=tuple(requirements))


def _bind(program: Program, *shapes: tuple[int, ...]) -> Mapping[str, int]:
    return bind_sizes(program, shapes)


def test_symbols_take_the_sizes_of_the_feeds():
    program = _program(X, TensorSpec("y", "float32", (M, TWICE)), n=(1, 8), m=(0, None))
    assert _bind(program, (3, 4), (0, 6)) == {"n": 3, "m": 0}


@pytest.mark.parametrize(
    ("shapes", "node", "says"),
    [
        ([(3, 4, 1), (3,)], "x", "must have 2 dimensions: [n, 4]"),
        ([(3, 5), (3,)], "x", "size of axis 1 is 5, must be 4"),
        ([(3, 4), (2,)], "mask", "size of axis 0 (n) is 2, but 3 in feed 'x'"),
        ([(9, 4), (9,)], "x", "size of axis 0 (n) is 9, must be in 2..8"),
        ([(1, 4), (1,)], "x", "size of axis 0 (n) is 1, must be in 2..8"),
    ],
)
def test_sizes_that_do_not_fit(shapes: list[tuple[int, ...]], node: str, says: str):
    error = _error(bind_sizes, _program(X, MASK, n=(2, 8)), shapes)
    assert (error.code, error.node) == ("E0203", node) and says in error.message


def test_a_symbol_without_an_upper_bound_and_one_that_is_not_declared():
    assert "must be at least 3" in _error(bind_sizes, _program(MASK, n=(3, None)), [(2,)]).message
    assert "must be at least 1" in _error(bind_sizes, _program(MASK), [(0,)]).message
    assert _bind(_program(MASK), (7,)) == {"n": 7}


def test_an_expression_is_checked_when_its_symbols_are_known():
    program = _program(TensorSpec("y", "float32", (TWICE,)), MASK, n=(1, None))
    assert _bind(program, (6,), (3,)) == {"n": 3}
    assert "size of axis 0 is 5, must be 6" in _error(bind_sizes, program, [(5,), (3,)]).message
    assert _bind(_program(TensorSpec("y", "float32", (TWICE,))), (5,)) == {}  # nobody knows n


def test_a_number_is_named_as_one():
    program = _program(K, m=(0, 4))
    assert "the value is 5, must be in 0..4" in _error(bind_sizes, program, [(5,)]).message


def test_a_size_that_may_not_be_a_number():
    program = _program(MASK, requirements=[SizeRequirement(N, 1, "node", "differ")], n=(0, None))
    assert [_bind(program, (n,)) for n in (0, 2, 7)] == [{"n": 0}, {"n": 2}, {"n": 7}]
    error = _error(bind_sizes, program, [(1,)])
    assert (error.code, error.node) == ("E0203", "node") and "may not be 1 here; it follows from n = 1" in str(error)


def test_requirements_of_the_program_are_checked():
    program = _program(MASK, requirements=[SizeRequirement(N, 3, "node", "at_least")], n=(0, None))
    assert _bind(program, (3,)) == {"n": 3}
    error = _error(bind_sizes, program, [(2,)])
    assert error.code == "E0203" and error.node == "node"
