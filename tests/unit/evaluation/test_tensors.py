"""`tensor` ops in NumPy: what each makes, with odd and unknown sizes, and what each refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, TensorType, f32, i64

from fuseline.errors import FuselineError
from fuseline.evaluation import evaluate_module
from fuseline.evaluation.program import Program, Scope
from fuseline.evaluation.tensors import checked, mixed_sizes, result_shape
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from tests.draws import RNG, generator

Array = NDArray[Any]
X = generator(__name__).standard_normal((5, 7)).astype("f4")


def run(body: str, arguments: str, result: str, *args: Any) -> Array:
    """The value `%r` of `body`."""
    text = f"func.func @main({arguments}) -> {result} {{ {body}\n return %r : {result} }}"
    return evaluate_module(parse_module(text, new_context()), list(args))[0]


DYNAMIC = "%x: tensor<?x?xf32>, %n: index, %m: index"


@pytest.mark.parametrize(
    ("offsets", "sizes", "strides", "result", "expected"),
    [
        ("1, 2", "3, 4", "1, 1", "3x4", X[1:4, 2:6]),
        ("0, 1", "3, 3", "2, 2", "3x3", X[0:5:2, 1:6:2]),
        ("4, 6", "5, 7", "-1, -1", "5x7", X[::-1, ::-1]),
        ("4, 0", "3, 7", "-2, 1", "3x7", X[::-2]),
        ("2, 0", "1, 7", "1, 1", "7", X[2]),
        ("2, 3", "1, 1", "1, 1", "1", X[2, 3:4]),
        ("5, 0", "0, 7", "1, 1", "0x7", X[5:5]),
        ("0, 6", "5, 1", "1, 1", "5x1", X[:, 6:]),
    ],
)
def test_slices(offsets: str, sizes: str, strides: str, result: str, expected: Array):
    body = f"%r = tensor.extract_slice %x[{offsets}] [{sizes}] [{strides}] : tensor<5x7xf32> to tensor<{result}xf32>"
    np.testing.assert_array_equal(run(body, "%x: tensor<5x7xf32>", f"tensor<{result}xf32>", X), expected)


@pytest.mark.parametrize(("n", "m"), [(0, 0), (2, 4)])
def test_slices_of_unknown_sizes_within_their_source(n: int, m: int):
    body = "%r = tensor.extract_slice %x[%n, %m] [3, 3] [1, 1] : tensor<?x?xf32> to tensor<3x3xf32>"
    np.testing.assert_array_equal(run(body, DYNAMIC, "tensor<3x3xf32>", X, n, m), X[n : n + 3, m : m + 3])


@pytest.mark.parametrize(("n", "m", "axis"), [(3, 0, 0), (0, 5, 1), (-1, 0, 0)])
def test_slices_outside_of_their_source_are_refused(n: int, m: int, axis: int):
    body = "%r = tensor.extract_slice %x[%n, %m] [3, 3] [1, 1] : tensor<?x?xf32> to tensor<3x3xf32>"
    with pytest.raises(
        FuselineError,
        match=rf"E0305.*dimension {axis} of size {X.shape[axis]} is sliced at {(n, m)[axis]}, 3 elements, stride 1",
    ):
        run(body, DYNAMIC, "tensor<3x3xf32>", X, n, m)


def test_a_negative_size_is_refused():
    body = "%r = tensor.extract_slice %x[0, 0] [%n, %m] [1, 1] : tensor<?x?xf32> to tensor<?x?xf32>"
    np.testing.assert_array_equal(run(body, DYNAMIC, "tensor<?x?xf32>", X, 0, 7), X[:0])
    with pytest.raises(FuselineError, match=r"E0305.*-1 elements"):
        run(body, DYNAMIC, "tensor<?x?xf32>", X, -1, 7)


def test_a_slice_put_in_leaves_what_it_was_put_into():
    out, part = X.copy(), RNG.standard_normal((2, 3)).astype("f4")
    body = "%r = tensor.insert_slice %p into %x[1, 2] [2, 3] [2, 1] : tensor<2x3xf32> into tensor<5x7xf32>"
    expected = X.copy()
    expected[1:4:2, 2:5] = part
    np.testing.assert_array_equal(
        run(body, "%x: tensor<5x7xf32>, %p: tensor<2x3xf32>", "tensor<5x7xf32>", out, part), expected
    )
    np.testing.assert_array_equal(out, X)


def test_a_slice_is_put_in_with_as_many_elements_as_it_has():
    body = "%r = tensor.insert_slice %p into %x[0, 0] [%n, 3] [1, 1] : tensor<?x3xf32> into tensor<5x7xf32>"
    with pytest.raises(FuselineError, match=r"E0305.*shape \(2, 3\) does not fill a slice of sizes \(3, 3\)"):
        run(body, "%x: tensor<5x7xf32>, %p: tensor<?x3xf32>, %n: index", "tensor<5x7xf32>", X, X[:2, :3], 3)


def test_pads_take_their_border_from_the_body():
    body = """%r = tensor.pad %x low[1, 0] high[2, 3] {
      ^bb0(%i: index, %j: index):
        %s = arith.addi %i, %j : index
        %k = arith.index_cast %s : index to i32
        %v = arith.sitofp %k : i32 to f32
        tensor.yield %v : f32
      } : tensor<5x7xf32> to tensor<8x10xf32>"""
    i, j = np.indices((8, 10))
    expected = (i + j).astype("f4")
    expected[1:6, 0:7] = X
    np.testing.assert_array_equal(run(body, "%x: tensor<5x7xf32>", "tensor<8x10xf32>", X), expected)


PAD = """%z = arith.constant 0.0 : f32
  %r = tensor.pad %x low[%n, 0] high[0, %m] {
  ^bb0(%i: index, %j: index):
    tensor.yield %z : f32
  } : tensor<?x?xf32> to tensor<?x?xf32>"""


@pytest.mark.parametrize(("n", "m"), [(-1, 0), (0, -2)])
def test_negative_pads_are_refused(n: int, m: int):
    np.testing.assert_array_equal(
        run(PAD, DYNAMIC, "tensor<?x?xf32>", X, abs(n), abs(m)), np.pad(X, ((abs(n), 0), (0, abs(m))))
    )
    with pytest.raises(FuselineError, match="E0305.*negative padding"):
        run(PAD, DYNAMIC, "tensor<?x?xf32>", X, n, m)


def test_shapes_are_changed_and_checked():
    flat = "%r = tensor.collapse_shape %x [[0, 1]] : tensor<5x7xf32> into tensor<35xf32>"
    np.testing.assert_array_equal(run(flat, "%x: tensor<5x7xf32>", "tensor<35xf32>", X), X.ravel())
    split = (
        "%r = tensor.expand_shape %x [[0, 1], [2]] output_shape [%n, %m, 7] : tensor<?x7xf32> into tensor<?x?x7xf32>"
    )
    arguments = "%x: tensor<?x7xf32>, %n: index, %m: index"
    np.testing.assert_array_equal(run(split, arguments, "tensor<?x?x7xf32>", X[:4], 2, 2), X[:4].reshape(2, 2, 7))
    with pytest.raises(FuselineError, match=r"E0305.*\(5, 7\) cannot expand to \(2, 2, 7\)"):
        run(split, arguments, "tensor<?x?x7xf32>", X, 2, 2)


def test_reshapes_by_a_tensor():
    body = "%r = tensor.reshape %x(%s) : (tensor<5x7xf32>, tensor<3xi64>) -> tensor<7x1x5xf32>"
    arguments = "%x: tensor<5x7xf32>, %s: tensor<3xi64>"
    np.testing.assert_array_equal(run(body, arguments, "tensor<7x1x5xf32>", X, np.array([7, 1, 5])), X.reshape(7, 1, 5))
    for sizes, message in (
        ([7, 2, 5], r"\(5, 7\) cannot be reshaped to \(7, 2, 5\)"),
        ([5, 1, 7], r"the result has shape \(5, 1, 7\)"),
    ):
        with pytest.raises(FuselineError, match=f"E0305.*{message}"):
            run(body, arguments, "tensor<7x1x5xf32>", X, np.array(sizes))


@pytest.mark.parametrize(("axis", "size"), [(0, 5), (1, 7)])
def test_sizes(axis: int, size: int):
    assert run("%r = tensor.dim %x, %n : tensor<?x?xf32>", DYNAMIC, "index", X, axis, 0) == size


@pytest.mark.parametrize("axis", [-1, 2])
def test_sizes_of_no_dimension_are_refused(axis: int):
    with pytest.raises(FuselineError, match=rf"E0305.*dimension {axis} of a tensor of rank 2"):
        run("%r = tensor.dim %x, %n : tensor<?x?xf32>", DYNAMIC, "index", X, axis, 0)


def test_casts_check_the_shape():
    body = "%r = tensor.cast %x : tensor<?x?xf32> to tensor<5x7xf32>"
    np.testing.assert_array_equal(run(body, DYNAMIC, "tensor<5x7xf32>", X, 0, 0), X)
    with pytest.raises(FuselineError, match=r"E0305.*the result has shape \(4, 7\), its type is tensor<5x7xf32>"):
        run(body, DYNAMIC, "tensor<5x7xf32>", X[:4], 0, 0)


@pytest.mark.parametrize(
    ("element", "poison"), [("f32", np.nan), ("i32", -(2**31)), ("i8", -128), ("i1", True), ("f16", np.nan)]
)
def test_what_was_never_written_shows(element: str, poison: Any):
    found = run(f"%r = tensor.empty(%n) : tensor<?x3x{element}>", "%n: index", f"tensor<?x3x{element}>", 2)
    np.testing.assert_array_equal(found, np.full((2, 3), poison))


def test_elements():
    row = run(
        "%r = tensor.from_elements %a, %b, %a, %b : tensor<2x2xf32>",
        "%a: f32, %b: f32",
        "tensor<2x2xf32>",
        np.float32(1.5),
        np.float32(-2),
    )
    np.testing.assert_array_equal(row, [[1.5, -2], [1.5, -2]])
    everywhere = run(
        "%r = tensor.splat %a[%n] : tensor<?x2xf32>", "%a: f32, %n: index", "tensor<?x2xf32>", np.float32(1.5), 3
    )
    np.testing.assert_array_equal(everywhere, np.full((3, 2), 1.5))
    joined = run(
        "%r = tensor.concat dim(1) %x, %x : (tensor<5x7xf32>, tensor<5x7xf32>) -> tensor<5x14xf32>",
        "%x: tensor<5x7xf32>",
        "tensor<5x14xf32>",
        X,
    )
    np.testing.assert_array_equal(joined, np.hstack([X, X]))


def test_an_element_read_and_replaced():
    assert run("%r = tensor.extract %x[%n, %m] : tensor<?x?xf32>", DYNAMIC, "f32", X, 4, 6) == X[4, 6]
    out, body = X.copy(), "%v = arith.constant 9.0 : f32\n%r = tensor.insert %v into %x[%n, %m] : tensor<?x?xf32>"
    expected = X.copy()
    expected[4, 0] = 9
    np.testing.assert_array_equal(run(body, DYNAMIC, "tensor<?x?xf32>", out, 4, 0), expected)
    np.testing.assert_array_equal(out, X)
    for n, m, axis in ((5, 0, 0), (0, -1, 1)):
        for text, result in (("%r = tensor.extract %x[%n, %m] : tensor<?x?xf32>", "f32"), (body, "tensor<?x?xf32>")):
            with pytest.raises(
                FuselineError,
                match=rf"E0305.*dimension {axis} of size {X.shape[axis]} is read at {(n, m)[axis]}\.\.{(n, m)[axis]}",
            ):
                run(text, DYNAMIC, result, X, n, m)


def test_sizes_are_taken_in_order():
    op = parse_module("func.func @f(%n: index, %m: index) { return }", new_context()).body.block.first_op
    assert op is not None
    first, second = op.regions[0].block.args
    scope = Scope(Program())
    scope.bind([first, second], [np.asarray(3), np.asarray(4)])
    static = DenseArrayBase.from_list(i64, [DYNAMIC_INDEX, 2, DYNAMIC_INDEX])
    assert mixed_sizes(static, [first, second], scope) == [3, 2, 4]
    assert result_shape(TensorType(f32, [DYNAMIC_INDEX, 2, DYNAMIC_INDEX]), [second, first], scope) == [4, 2, 3]


def test_results_are_of_their_type():
    op = tensor.EmptyOp([], TensorType(f32, [5, 7]))
    assert checked(op, X, TensorType(f32, [DYNAMIC_INDEX, 7])) is X
    for shape in ([5], [5, 7, 1], [5, 6]):
        with pytest.raises(FuselineError, match="E0305"):
            checked(op, X, TensorType(f32, shape))
