"""A reshape is settled by its first and last sizes: segments, cancellation, symbolic sizes."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import SSAValue

import fuseline
from fuseline.errors import FuselineError
from fuseline.ir.dim import Dim, floor_div, mul, product, symbol
from fuseline.passes.layout.rewriting.reshapes import can_reshape, grouped, merge_chain, reshape, root_of, segments
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.unit.passes.layout.test_permutation import Program, made, shape

N, M = symbol("n"), symbol("m")


@pytest.mark.parametrize(
    ("before", "after", "cut"),
    [
        ((129, 129, 1, 144), (1, 129, 129, 144), [(1, 2), (1, 1), (2, 1)]),
        ((4, 6), (4, 1, 6), [(1, 1), (1, 2)]),
        ((4, 6), (8, 3), [(2, 2)]),
        ((), (1,), [(0, 1)]),
        ((mul(N, M), 4), (N, M, 4), [(1, 2), (1, 1)]),
        ((N, 12), (N, 3, 4), [(1, 1), (1, 2)]),
        ((16, N, M), (16, floor_div(N, 2), 2, floor_div(M, 3), 3), [(1, 1), (1, 2), (1, 2)]),
        ((N, M), (floor_div(N, 2), 2, M), [(1, 2), (1, 1)]),
        ((N, M), (floor_div(N, 2), 3, M), [(2, 3)]),
        ((N, M), (floor_div(N, 2), floor_div(M, 2), 4), [(2, 3)]),
        ((floor_div(N, 2), 2, M), (N, M), [(3, 2)]),
    ],
)
def test_segments(before: tuple[Dim, ...], after: tuple[Dim, ...], cut: list[tuple[int, int]]) -> None:
    assert segments(before, after) == cut


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.data())
def test_every_segment_keeps_its_product(dims: list[int], data: st.DataObject) -> None:
    """Merging neighbours at random and cutting again: each segment holds as many elements on both sides."""
    after: list[int] = []
    for size in dims:
        if after and data.draw(st.booleans()):
            after[-1] *= size
        else:
            after.append(size)
    i = j = 0
    for left, right in segments(dims, after):
        assert product(dims[i : i + left]) == product(after[j : j + right])
        i, j = i + left, j + right
    assert (i, j) == (len(dims), len(after))


@pytest.mark.parametrize("factor", [2, 3])
@pytest.mark.parametrize("pooled", [True, False])
def test_lines_and_pixels_of_unknown_number_are_told_apart(factor: int, pooled: bool) -> None:
    """Pixels shuffled to the size of an image that they are added to: a size that is a multiple, or is refused."""
    step = f"kernel_shape = [{factor}, {factor}], strides = [{factor}, {factor}]"
    made = f"MaxPool <{step}> (a)" if pooled else f"AveragePool <{step}> (a)"
    channels = 4 * factor * factor
    model = onnx_model(
        f"(float[b, 4, h, w] a, float[{channels}, 4, 1, 1] f) => (y)"
        f" {{ p = {made}  c = Conv (p, f)  s = DepthToSpace <blocksize = {factor}> (c)  y = Add (s, a) }}"
    )
    session, program = ort.InferenceSession(model.SerializeToString()), fuseline.compile(model, threads=1)
    filters = RNG.standard_normal((channels, 4, 1, 1), dtype=np.float32)
    for batch, lines, pixels in [(1, 1, 1), (2, 3, 17), (1, 8, 5)]:
        image = RNG.standard_normal((batch, 4, factor * lines, factor * pixels), dtype=np.float32)
        wanted = np.asarray(session.run(None, {"a": image, "f": filters})[0])
        np.testing.assert_allclose(program.run({"a": image, "f": filters})["y"], wanted, rtol=1e-4, atol=1e-5)
    with pytest.raises(FuselineError, match="E0203"):
        program.run({"a": np.zeros((1, 4, factor * 2, factor * 2 + 1), np.float32), "f": filters})


def test_groups_are_consecutive() -> None:
    assert grouped([1, 3, 2]) == [[0], [1, 2, 3], [4, 5]]


# reshapes of values ---------------------------------------------------------------------------------------------------

STATIC = """func.func @main(%x: tensor<2x3x4xf32>, %one: tensor<1x1xf32>, %d: tensor<?x6xf32>, %v: f32) {
  %empty = tensor.empty() : tensor<2x3x4xf32>
  %fill = linalg.fill ins(%v : f32) outs(%empty : tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %splat = arith.constant dense<2.5> : tensor<2x3x4xf32>
  %flat = tensor.collapse_shape %x [[0, 1, 2]] : tensor<2x3x4xf32> into tensor<24xf32>
  %again = tensor.expand_shape %flat [[0, 1]] output_shape [4, 6] : tensor<24xf32> into tensor<4x6xf32>
  %back = tensor.collapse_shape %again [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
  %user = tensor.cast %back : tensor<24xf32> to tensor<?xf32>
  return
}"""


def reshaped(p: Program, name: str, *dims: Dim) -> SSAValue:
    value = reshape(p.scope, p.at, p[name], dims)
    p.module.verify()
    return value


def test_sizes_that_it_has_are_no_reshape() -> None:
    p = Program(STATIC)
    assert reshaped(p, "x", 2, 3, 4) is reshaped(p, "again", 2, 3, 4) is p["x"]


def test_inits_are_made_again_in_another_shape() -> None:
    p = Program(STATIC)
    fill = made(reshaped(p, "fill", 6, 4), linalg.ops.FillOp)
    assert fill.inputs[0] is p["v"] and shape(made(fill.outputs[0], tensor.EmptyOp).tensor) == (6, 4)
    assert shape(made(reshaped(p, "empty", 24), tensor.EmptyOp).tensor) == (24,)
    splat = reshaped(p, "splat", 6, 4)
    attribute = made(splat, arith.ConstantOp).value
    assert shape(splat) == (6, 4) and attribute.type == splat.type and set(attribute.get_values()) == {2.5}


@pytest.mark.parametrize("number", ["2.5", "-0.0", "0x7F800000"])
def test_a_splat_of_symbolic_sizes_is_a_fill(number: str) -> None:
    """A constant's type has numbers for sizes: `dense<2.5> : tensor<?x1xf32>` is no value."""
    p = Program(STATIC.replace("dense<2.5> : tensor<2x3x4xf32>", f"dense<{number}> : tensor<1xf32>"
                ).replace("%splat", "%one_number"))  # fmt: skip
    rows, _ = p.scope.dims(p["d"])
    op = made(reshaped(p, "one_number", rows, 1), linalg.ops.FillOp)
    assert shape(op.results[0]) == (-1, 1)
    scalar, tensor_ = (made(value, arith.ConstantOp).value for value in (op.inputs[0], p["one_number"]))
    assert isinstance(scalar, FloatAttr) and str(scalar.value.data) == str(next(iter(tensor_.get_values())))


def test_one_element_without_dimensions() -> None:
    p = Program(STATIC)
    op = made(reshaped(p, "one"), tensor.CollapseShapeOp)
    assert op.src is p["one"] and shape(op.result) == () and len(op.reassociation) == 0


def test_a_reshape_merges_then_splits() -> None:
    p = Program(STATIC)
    op = made(reshaped(p, "x", 6, 2, 2), tensor.ExpandShapeOp)
    assert shape(op.result) == (6, 2, 2)
    merged = made(op.src, tensor.CollapseShapeOp)
    assert (shape(merged.result), merged.src) == ((6, 4), p["x"])
    assert made(reshaped(p, "x", 6, 4), tensor.CollapseShapeOp).src is p["x"]
    assert made(reshaped(p, "x", 2, 3, 2, 2), tensor.ExpandShapeOp).src is p["x"]


def test_a_chain_starts_from_its_root() -> None:
    p = Program(STATIC)
    assert root_of(p["back"]) is root_of(p["again"]) is root_of(p["x"]) is p["x"]
    op = made(p["back"], tensor.CollapseShapeOp)
    user = made(p["user"], tensor.CastOp)
    merge_chain(p.scope, op)
    assert op.parent is None
    assert made(user.source, tensor.CollapseShapeOp).src is p["x"]
    first = made(p["flat"], tensor.CollapseShapeOp)
    merge_chain(p.scope, first)
    assert first.parent is p.block


def test_which_sizes_can_be_written() -> None:
    p = Program(STATIC)
    (rows, columns) = p.scope.dims(p["d"])
    assert columns == 6 and can_reshape(p.scope, (rows, 2, 3)) and can_reshape(p.scope, ())
    assert not can_reshape(p.scope, (0, 2)) and not can_reshape(p.scope, (symbol("elsewhere"), 2))
    op = made(reshaped(p, "d", rows, 2, 3), tensor.ExpandShapeOp)
    assert [shape(op.result), len(op.dynamic_output_shape)] == [(-1, 2, 3), 1]
