"""Arithmetic on sizes while reading, against the same arithmetic in NumPy at each size."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from numpy.typing import NDArray

from fuseline.frontends.onnx.folding import FOLD_LIMIT, fill_value, fold
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.tensors import Tensor, known
from fuseline.ir.dim import Dim, add, evaluate, mul, symbol
from tests.draws import RNG
from tests.one_node import by_onnxruntime, feeds_of, one_node

Array = NDArray[Any]
N, M = symbol("n", 0), symbol("m", 1)
SIZES = [{"n": n, "m": m} for n in (0, 1, 3, 8) for m in (1, 2, 5)]


def _node(op_type: str, *inputs: Any, domain: str = "", **attributes: Any) -> OnnxNode:
    """A node outside of any model; an input is an array, a list of sizes, a Tensor, or None."""
    source = ir.Node(domain, op_type, [None] * len(inputs), ir.convenience.convert_attributes(attributes))
    tensors = [item if item is None or isinstance(item, Tensor) else known(_array(item)) for item in inputs]
    return OnnxNode(None, None, source, "node", tensors, source.attributes, 18)  # pyright: ignore[reportArgumentType]


def _array(item: Any) -> Array:
    if not isinstance(item, list):
        return np.asarray(item)
    out = np.empty(len(item), object)
    out[:] = item
    return out


def _folded(op_type: str, *inputs: Any, **attributes: Any) -> Tensor:
    found = fold(_node(op_type, *inputs, **attributes))
    assert found is not None
    return found


def _at(array: Array, sizes: dict[str, int]) -> Array:
    return np.asarray(np.frompyfunc(lambda dim: evaluate(dim, sizes), 1, 1)(array), np.int64)


X: list[Dim] = [N, 7, add(mul(N, 2), 3)]
Y: list[Dim] = [3, M, M]


@pytest.mark.parametrize(
    ("op_type", "wanted"),
    [
        ("Add", np.add),
        ("Sub", np.subtract),
        ("Mul", np.multiply),
        ("Div", np.floor_divide),
        ("Mod", np.remainder),
        ("Min", np.minimum),
        ("Max", np.maximum),
    ],
)
def test_arithmetic_on_symbols(op_type: str, wanted: np.ufunc) -> None:
    found = _folded(op_type, X, Y)
    assert (found.dtype, found.dims) == (np.int64, (3,))
    for sizes in SIZES:
        np.testing.assert_array_equal(_at(found.array, sizes), wanted(_at(_array(X), sizes), _at(_array(Y), sizes)))  # pyright: ignore


@pytest.mark.parametrize("divisor", [1, 2, 3, 7])
def test_differences_of_sizes_are_divided_towards_zero(divisor: int) -> None:
    found = _folded("Div", [add(M, -6)], [divisor])
    for m in range(1, 20):
        assert _at(found.array, {"m": m}) == int((m - 6) / divisor)  # pyright: ignore[reportArgumentType]


def _numbers(op_type: str, dtype: Any) -> tuple[Array, Array]:
    x, y = RNG.integers(-9, 10, (2, 4)).astype(dtype), RNG.integers(1, 5, (2, 4)).astype(dtype)
    if op_type in ("Div", "Mod"):
        y *= RNG.choice([-1, 1], y.shape).astype(dtype)
    return x, y


ARITHMETIC = "Add Sub Mul Div Mod Min Max Equal Less LessOrEqual Greater GreaterOrEqual Pow".split()


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32"])
@pytest.mark.parametrize("op_type", ARITHMETIC)
def test_numbers_as_onnxruntime_computes_them(op_type: str, dtype: str) -> None:
    x, y = _numbers(op_type, dtype)
    attributes = {"fmod": 1} if (op_type, dtype) == ("Mod", "float32") else {}
    found = _folded(op_type, x, y, **attributes)
    (wanted,) = by_onnxruntime(one_node(op_type, [x, y], attributes), feeds_of([x, y]))
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found.numbers(), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    "op_type", ["Neg", "Abs", "Sqrt", "Reciprocal", "Floor", "Ceil", "Not", "Identity", "Transpose"]
)
def test_numbers_of_one_operand(op_type: str) -> None:
    x = RNG.integers(0, 2, (2, 3)).astype(bool) if op_type == "Not" else RNG.uniform(0.1, 3, (2, 3)).astype(np.float32)
    (wanted,) = by_onnxruntime(one_node(op_type, [x]), feeds_of([x]))
    np.testing.assert_allclose(_folded(op_type, x).numbers(), wanted, rtol=1e-6)


@pytest.mark.parametrize("op_type", ["And", "Or"])
def test_conditions(op_type: str) -> None:
    x, y = np.array([False, False, True, True]), np.array([False, True, False, True])
    wanted = x & y if op_type == "And" else x | y
    np.testing.assert_array_equal(_folded(op_type, x, y).numbers(), wanted)


@pytest.mark.parametrize(
    ("op_type", "x", "y", "answer"),
    [
        ("Equal", [N], [N], True),
        ("Equal", [N], [-1], False),
        ("Equal", [add(N, 1)], [N], False),
        ("Equal", [N], [3], None),
        ("Less", [N], [add(N, 1)], True),
        ("Less", [M], [1], False),
        ("Less", [M], [2], None),
        ("LessOrEqual", [1], [M], True),
        ("LessOrEqual", [add(M, 1)], [M], False),
        ("LessOrEqual", [M], [1], None),
        ("Greater", [M], [0], True),
        ("Greater", [N], [add(N, 1)], False),
        ("Greater", [M], [1], None),
        ("GreaterOrEqual", [M], [1], True),
        ("GreaterOrEqual", [N], [add(N, 1)], False),
        ("GreaterOrEqual", [N], [1], None),
    ],
)
def test_comparisons_that_bounds_settle(op_type: str, x: list[Dim], y: list[Dim], answer: bool | None) -> None:
    found = fold(_node(op_type, x, y))
    assert (None if found is None else found.numbers().tolist()) == (None if answer is None else [answer])


def test_symbols_move_like_numbers() -> None:
    dims = [N, 2, M]
    assert _folded("Gather", dims, np.array([2, 0]), axis=0).sizes() == [M, N]
    assert _folded("Concat", dims, np.array([5]), axis=0).sizes() == [N, 2, M, 5]
    assert _folded("Concat", np.ones((2, 1)), np.zeros((2, 2)), axis=1).dims == (2, 3)
    assert _folded("Unsqueeze", dims, np.array([0])).dims == (1, 3)
    assert _folded("Squeeze", _folded("Unsqueeze", dims, np.array([1])), np.array([1])).sizes() == dims
    assert _folded("Squeeze", _folded("Unsqueeze", dims, np.array([0, 2]))).dims == (3,)
    assert _folded("Reshape", dims, np.array([0, 1])).dims == (3, 1)
    assert _folded("Reshape", dims, np.array([1, -1])).sizes() == dims
    assert _folded("Expand", [N], np.array([2, 1])).sizes() == [N, N]
    assert _folded("Where", np.array([True, False, True]), dims, [7, 8, 9]).sizes() == [N, 8, M]
    assert _folded("Transpose", _folded("Unsqueeze", dims, np.array([0])), perm=[1, 0]).dims == (3, 1)
    assert _folded("Neg", [N]).sizes() == [mul(N, -1)]
    assert (
        _folded("Cast", dims, to=7).sizes() == _folded("Floor", dims).sizes() == _folded("Ceil", dims).sizes() == dims
    )


def test_attributes_of_older_versions() -> None:
    assert _folded("Unsqueeze", [N], axes=[0]).dims == (1, 1)
    assert _folded("Squeeze", _folded("Unsqueeze", [N, 2], axes=[0]), axes=[0]).sizes() == [N, 2]
    assert _folded("Reshape", [N, 2], shape=[2, 1]).dims == (2, 1)
    assert _folded("ReduceProd", [N, 2], axes=[0]).sizes() == [mul(N, 2)]


@pytest.mark.parametrize(
    ("more", "attributes", "dims", "sizes"),
    [
        ([], {}, (1,), [mul(N, 6)]),
        ([], {"keepdims": 0}, (), [mul(N, 6)]),
        ([np.array([0])], {}, (1,), [mul(N, 6)]),
        ([np.array([-1])], {"keepdims": 0}, (), [mul(N, 6)]),
        ([np.zeros(0, np.int64)], {"noop_with_empty_axes": 1}, (3,), [N, 2, 3]),
        ([None], {"noop_with_empty_axes": 1}, (3,), [N, 2, 3]),
        ([np.zeros(0, np.int64)], {}, (1,), [mul(N, 6)]),
    ],
)
def test_products_of_sizes(more: list[Any], attributes: dict[str, Any], dims: Any, sizes: list[Dim]) -> None:
    found = _folded("ReduceProd", [N, 2, 3], *more, **attributes)
    assert (found.dims, found.sizes()) == (dims, sizes)


def test_sums_and_extremes_of_sizes() -> None:
    items = [N, 2, add(N, 3)]
    assert _folded("ReduceSum", items).sizes() == [add(mul(N, 2), 5)]
    assert _folded("ReduceMax", [N, add(N, 3)], keepdims=0).sizes() == [add(N, 3)]
    assert _folded("ReduceMin", [add(N, 3), N], np.array([0])).sizes() == [N]
    assert _folded("ReduceMin", np.array([4, -2, 9])).sizes() == [-2]
    assert fold(_node("ReduceMin", np.zeros(0, np.int64))) is None


@pytest.mark.parametrize(
    ("first", "last", "step"),
    [(0, 5, 1), (5, 0, -2), (0.5, 2.0, 0.25), (3, 3, 1), (np.int32(2), np.int32(9), np.int32(3))],
)
def test_ranges(first: Any, last: Any, step: Any) -> None:
    inputs = [np.asarray(item, np.float32 if isinstance(item, float) else None) for item in (first, last, step)]
    inputs = [item.astype(inputs[2].dtype) for item in inputs]
    (wanted,) = by_onnxruntime(one_node("Range", inputs), feeds_of(inputs))
    found = _folded("Range", *inputs)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.numbers(), wanted)


def test_what_only_needs_sizes() -> None:
    x = Tensor(np.dtype(np.float32), (N, 4, M))
    assert _folded("Shape", x).sizes() == [N, 4, M]
    assert _folded("Shape", x, start=1, end=-1).sizes() == [4]
    assert _folded("Shape", x, start=-1).sizes() == [M]
    size = _folded("Size", x)
    assert (size.dims, size.sizes()) == ((), [mul(mul(N, 4), M)])


def test_constants_of_a_shape() -> None:
    zeros = _folded("ConstantOfShape", np.array([2, 3]))
    assert (zeros.dtype, zeros.dims, zeros.numbers().any()) == (np.float32, (2, 3), False)
    value = ir.tensor(np.array([5], np.int8), name="v")
    node = _node("ConstantOfShape", np.array([4]), value=value)
    assert fill_value(node) == 5
    found = fold(node)
    assert found is not None and (found.dtype, found.numbers().tolist()) == (np.int8, [5] * 4)
    for shape in (np.array([FOLD_LIMIT + 1]), np.array([-1, -1]), [N], Tensor(np.dtype(np.int64), (1,))):
        assert fold(_node("ConstantOfShape", shape)) is None
    assert fold(_node("ConstantOfShape", np.array([FOLD_LIMIT]))) is not None


FLOAT_N = _node("Cast", [N, 4], to=1)


def test_sizes_that_are_counted_in_floats() -> None:
    sizes = fold(FLOAT_N)
    assert sizes is not None and (sizes.dtype, sizes.sizes()) == (np.float32, [N, 4])
    assert _folded("Mul", sizes, np.array(2, np.float32)).sizes() == [mul(N, 2), 8]
    assert _folded("Div", _folded("Mul", sizes, np.array(6, np.float32)), np.array(2, np.float32)).sizes()[0] == mul(
        N, 3
    )
    assert fold(_node("Div", sizes, np.array(2, np.float32))) is None  # leaves a rest
    assert fold(_node("Mul", sizes, np.array(0.5, np.float32))) is None
    assert fold(_node("Mod", sizes, np.array(3, np.float32), fmod=1)) is None
    assert fold(_node("Cast", [N], to=10)) is None  # halves round
    assert fold(_node("Cast", [N], to=17)) is None  # no tensor holds 8-bit floats


@pytest.mark.parametrize(
    "node",
    [
        _node("Add", Tensor(np.dtype(np.int64), (2,)), np.array([1, 2])),
        _node("Add", np.zeros(FOLD_LIMIT + 1), np.zeros(1)),
        _node("Expand", np.zeros(2), np.array([FOLD_LIMIT, 2])),
        _node("Expand", [N], [M]),
        _node("Range", np.array(0), np.array(FOLD_LIMIT + 1), np.array(1)),
        _node("Range", np.array(0), [N], np.array(1)),
        _node("Range", np.array(0), np.array(5), np.array(0)),
        _node("Div", np.array([3]), np.array([0])),
        _node("Div", [N], [0]),
        _node("Div", [N], [add(M, -2)]),
        _node("Mod", [add(N, -2)], [3]),
        _node("Pow", [N], [2]),
        _node("Abs", [N]),
        _node("Add", [N], np.array(["a"])),
        _node("Gather", np.array([1, 2]), [N]),
        _node("Where", [N], np.array([1]), np.array([2])),
        _node("Reshape", [N, 2], [N, 2]),
        _node("Reshape", np.zeros(3), np.array([2, 2])),
        _node("ReduceProd", np.ones((2, 2), np.int64)),
        _node("ReduceProd", np.ones(2, np.float32)),
        _node("ReduceProd", [N, 2], np.array([1])),
        _node("Relu", np.zeros(3)),
        _node("Add", np.zeros(3), np.zeros(3), domain="com.example"),
        _node("Shape", Tensor(np.dtype(np.float32), (N,)), domain="com.example"),
    ],
    ids=lambda node: node.op_type,
)
def test_what_is_left_to_the_program(node: OnnxNode) -> None:
    assert fold(node) is None


def test_as_much_as_a_fold_may_make() -> None:
    assert fold(_node("Range", np.array(0), np.array(FOLD_LIMIT), np.array(1))) is not None
    assert fold(_node("Add", np.zeros(FOLD_LIMIT), np.zeros(1))) is not None
    assert fold(_node("Expand", np.zeros(2), np.array([FOLD_LIMIT // 2, 2]))) is not None
    assert fold(_node("Concat", np.zeros(FOLD_LIMIT), np.zeros(1), axis=0)) is None
    assert fold(_node("Constant")) is None
