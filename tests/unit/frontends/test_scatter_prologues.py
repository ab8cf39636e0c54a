"""What computes the places, updates and inits of a scatter is evaluated in its walk. Values against onnx's own
implementation, or NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import attributes_of, onnx_model

Array = NDArray[Any]
Feeds = dict[str, Array]
NUMPY: dict[str, Any] = {
    "float": np.float32, "double": np.float64, "float16": np.float16,
    "int32": np.int32, "int64": np.int64, "int8": np.int8,
}  # fmt: skip
PLACES = {
    "narrow": ("int32", "p = Cast<to = 7>(i)"),
    "floats": ("float", "p = Cast<to = 7>(i)"),
    "shifted": ("int64", "q = Sub(i, one)  p = Add(q, one)"),
    "from the end": ("int64", "q = Neg(i)  p = Sub(q, one)"),
}
UPDATES = {"as they are": "v = Identity(u)", "computed": "n = Neg(u)  v = Mul(n, u)"}
REDUCTIONS = ["none", "add", "mul", "max", "min"]


def check(model: onnx.ModelProto, feeds: Feeds, dispatches: int | None) -> fuseline.CompiledModel:
    """On both targets, in so many dispatches on the CPU (None: as many as cost least)."""
    reference: Any = ReferenceEvaluator(model)
    expected = reference.run(None, feeds)
    program = fuseline.compile(model, threads=2)
    assert dispatches in (None, program.stats["dispatches"]), [(d.code, d.detail) for d in program.decisions]
    for target in (program, fuseline.compile(model, target="interpreter")):
        for found, wanted in zip(target.run(feeds).values(), expected, strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found.astype("f8"), wanted.astype("f8"), rtol=2e-3, atol=2e-3)
    return program


def drawn(element: str, *shape: int) -> Array:
    return (3 * RNG.standard_normal(shape)).astype(NUMPY[element])


def rows(count: int, of: int, element: str = "int64") -> Array:
    """Rows, each at most once: the order of updates does not matter. None is the last, which `-1 - i` must not meet."""
    return RNG.permutation(of - 1)[:count].reshape(count, 1).astype(NUMPY[element])


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize(("size", "width", "updates"), [(16, 8, 4), (9, 67, 7), (2, 1, 1), (33, 3, 20)])
def test_rows(reduction: str, places: str, size: int, width: int, updates: int):
    kind, made = PLACES[places]
    held = attributes_of({"reduction": reduction})
    model = onnx_model(
        f"(float[n,{width}] x, {kind}[k,1] i, float[k,{width}] u) => (y)"
        f" {{ {made}  {UPDATES['computed']}  y = ScatterND{held}(x, p, v) }}",
        one=np.int64(1),
    )
    feeds = {"x": drawn("float", size, width), "i": rows(updates, size, kind), "u": drawn("float", updates, width)}
    check(model, feeds, 1)


@pytest.mark.parametrize("element", ["float16", "double", "int32", "int8"])
@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("updates", UPDATES)
def test_elements_that_replace(element: str, places: str, updates: str):
    kind, made = PLACES[places]
    model = onnx_model(
        f"({element}[5,n,9] x, {kind}[5,k,9] i, {element}[5,k,9] u) => (y)"
        f" {{ {made}  {UPDATES[updates]}  y = ScatterElements<axis = 1>(x, p, v) }}",
        one=np.int64(1),
    )
    at = np.stack([RNG.permutation(6)[:4] for _ in range(45)], axis=1).reshape(4, 5, 9).transpose(1, 0, 2)
    feeds = {"x": drawn(element, 5, 7, 9), "i": at.astype(NUMPY[kind]), "u": drawn(element, 5, 4, 9)}
    check(model, feeds, 1 if updates == "as they are" or drawn(element, 1).itemsize >= 4 else None)


@pytest.mark.parametrize("reduction", REDUCTIONS[1:])
def test_halves_that_are_combined_are_summed_up_wide(reduction: str):
    """Their totals are f32 and take no place in a result of halves: what rounds them is a dispatch of its own."""
    model = onnx_model(
        f"(float16[n,8] x, int32[k,1] i, float16[k,8] u) => (y)"
        f" {{ p = Cast<to = 7>(i)  v = Neg(u)  y = ScatterND{attributes_of({'reduction': reduction})}(x, p, v) }}"
    )
    feeds = {"x": drawn("float16", 12, 8), "i": rows(5, 12, "int32"), "u": drawn("float16", 5, 8)}
    program = check(model, feeds, 2)
    assert all(d.code == "walk" for d in program.decisions if d.verdict == "missed")


@pytest.mark.parametrize("places", PLACES)
def test_places_of_several_axes(places: str):
    """Each column of the places is cut out of what is computed."""
    kind, made = PLACES[places]
    model = onnx_model(
        f"(float[5,8,n] x, {kind}[k,2] i, float[k,n] u) => (y) {{ {made}  y = ScatterND(x, p, u) }}", one=np.int64(1)
    )
    at = np.stack([RNG.integers(0, 4, 6), RNG.permutation(7)[:6]], axis=1)
    feeds = {"x": drawn("float", 5, 8, 13), "i": at.astype(NUMPY[kind]), "u": drawn("float", 6, 13)}
    check(model, feeds, 1 if places == "narrow" else None)


def test_what_is_there_is_computed_as_well_and_something_follows():
    model = onnx_model(
        "(float[n,19] x, int32[k,1] i, float[k,19] u, float[n,19] b) => (y) { z = Exp(x)  p = Cast<to = 7>(i)"
        " v = Neg(u)  s = ScatterND(z, p, v)  a = Mul(s, b)  y = Tanh(a) }"
    )
    feeds = {"x": drawn("float", 11, 19), "i": rows(4, 11, "int32"), "u": drawn("float", 4, 19)}
    check(model, {**feeds, "b": drawn("float", 11, 19)}, 1)


def test_what_others_read_too_is_stored():
    model = onnx_model("(float[9,8] x, int64[k,1] i, float[k,8] u) => (y, v) { v = Neg(u)  y = ScatterND(x, i, v) }")
    feeds = {"x": drawn("float", 9, 8), "i": rows(4, 9), "u": drawn("float", 4, 8)}
    assert "multi-use" in {decision.code for decision in check(model, feeds, 2).decisions}


SCATTER = """func.func @main(%at: tensor<?x1xi64>, %n: index, %u: tensor<?x1xWIDTHxH>, %w: tensor<?xWIDTHxH>)
    -> tensor<?xWIDTHxH> {
  %e = tensor.empty(%n) : tensor<?x1xi32>
  %p = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>],
      iterator_types = ["parallel", "parallel"]} ins(%at : tensor<?x1xi64>) outs(%e : tensor<?x1xi32>) {
  ^bb0(%in: i64, %out: i32):
    %t = arith.trunci %in : i64 to i32
    linalg.yield %t : i32
  } -> tensor<?x1xi32>
  %r = iree_linalg_ext.scatter dimension_map = [0] unique_indices(false)
      ins(%u, %p : tensor<?x1xWIDTHxH>, tensor<?x1xi32>) outs(%w : tensor<?xWIDTHxH>) {
  ^bb0(%new: H, %old: H):
    iree_linalg_ext.yield %new : H
  } -> tensor<?xWIDTHxH>
  return %r : tensor<?xWIDTHxH>
}"""


@pytest.mark.parametrize("element", ["f16", "f32", "i8"])
@pytest.mark.parametrize(("count", "size", "width"), [(5, 9, "3x40"), (1, 1, "1"), (13, 4, "70"), (40, 6, "2x3x5")])
def test_places_outside_are_passed_over_and_the_last_update_counts(
    element: str, count: int, size: int, width: str, tmp_path: Path
):
    path = tmp_path / "scatter.mlir"
    path.write_text(SCATTER.replace("WIDTH", width).replace("H", element))
    inner = tuple(map(int, width.split("x")))
    dtype = {"f16": np.float16, "f32": np.float32, "i8": np.int8}[element]
    at = RNG.integers(-2, size + 2, (count, 1))
    u, w = ((9 * RNG.standard_normal(shape)).astype(dtype) for shape in ((count, 1, *inner), (size, *inner)))
    expected = w.copy()
    for e in range(count):
        if 0 <= at[e, 0] < size:
            expected[at[e, 0]] = u[e, 0]
    for target in ("cpu", "interpreter"):
        program = fuseline.compile(path, target=target)
        (found,) = program.run({"at": at, "n": np.int64(count), "u": u, "w": w}).values()
        np.testing.assert_array_equal(found, expected)
        assert program.stats["dispatches"] == 1
