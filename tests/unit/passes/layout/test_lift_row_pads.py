"""Rows that are padded and cut into tiles behind their reductions: one dispatch, whatever the sizes; what refuses."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fuseline
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.passes.registry import parse_passes
from fuseline.pipeline import PASS_PHASES
from tests.draws import RNG
from tests.equivalence import compare_programs
from tests.fused import compare, outputs
from tests.graphs.onnx_text import onnx_model

ROWS = {
    "layer norm": "m = ReduceMean<axes = [-1]>(x)  c = Sub(x, m)  q = Mul(c, c)  v = ReduceMean<axes = [-1]>(q)"
    "  d = Sqrt(v)  y = Div(c, d)",
    "rms norm": "q = Mul(x, x)  v = ReduceMean<axes = [-1]>(q)  d = Sqrt(v)  y = Div(x, d)",
    "softmax": "y = Softmax(x)",
    "sum": "v = ReduceSum<keepdims = 1>(x, last)  y = Mul(x, v)",
    "two arguments": "v = ReduceMax<axes = [-1]>(x)  y = Add(z, v)",
}


def _tiled(sizes: tuple[int, ...], tiles: tuple[int, ...], low: tuple[int, ...]) -> tuple[str, dict[str, Any]]:
    """The text that pads `y` to whole tiles and moves what is inside of the tiles behind them."""
    high = [-(size + before) % tile for size, before, tile in zip(sizes, low, tiles, strict=True)]
    whole = [size + before + after for size, before, after in zip(sizes, low, high, strict=True)]
    cut, outer, inner = list[int](), list[int](), list[int]()
    for size, tile in zip(whole, tiles, strict=True):
        outer.append(len(cut))
        cut.append(size // tile)
        if tile > 1:
            inner.append(len(cut))
            cut.append(tile)
    perm = [*outer, *inner] if tiles[-1] > 1 else [*outer[:-1], *inner, outer[-1]]
    text = f"p = Pad(y, pads, value)  r = Reshape(p, cut)  t = Transpose<perm = {perm}>(r)"
    constants = {"pads": np.array([*low, *high]), "cut": np.array(cut), "value": np.float32(RNG.choice([0, 1.5]))}
    return text, {**constants, "last": np.array([-1])}


def _program(rows: str, text: str, sizes: tuple[int, ...], constants: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    shape = ", ".join(map(str, sizes))
    model = onnx_model(f"(float[{shape}] x, float[{shape}] z) => (t) {{ {rows}  {text} }}", opset=13, **constants)
    return model, {name: RNG.standard_normal(sizes).astype(np.float32) for name in ("x", "z")}


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("threads", [1, 2])
def test_windows_of_an_image_that_is_padded_are_one_dispatch(rows: str, threads: int):
    sizes = (int(RNG.integers(6, 12)), int(RNG.integers(6, 12)), int(RNG.integers(16, 40)))
    text, constants = _tiled(sizes, (4, 3, 1), (int(RNG.integers(0, 2)), 0, 0))
    model, feeds = _program(ROWS[rows], text, sizes, constants)
    program = fuseline.compile(model, threads=threads)
    assert program.stats["dispatches"] == 1
    assert compare(outputs(model.SerializeToString(), feeds), list(program.run(feeds).values())) <= 1


@pytest.mark.parametrize("rows", ["sum", "two arguments"])
def test_columns_that_are_padded_are_summed_as_they_were(rows: str):
    """They are those of a pack: the sum traverses what there was, its reader all that is stored."""
    sizes = (int(RNG.integers(12, 30)), int(RNG.integers(16, 50)))
    text, constants = _tiled(sizes, (8, 4), (0, int(RNG.integers(0, 3))))
    model, feeds = _program(ROWS[rows], text, sizes, constants)
    program = fuseline.compile(model)
    assert program.stats["dispatches"] == 1
    assert compare(outputs(model.SerializeToString(), feeds), list(program.run(feeds).values())) <= 1


# what refuses ---------------------------------------------------------------------------------------------------------

PROGRAM = """
func.func @main(%x: tensor<5x16xTYPE>, %w: tensor<16x16xTYPE>) -> (tensor<2x3x16xTYPE>, tensor<5x16xTYPE>) {
  %zero = arith.constant ZERO : TYPE
  %e1 = tensor.empty() : tensor<5xTYPE>
  %e = tensor.empty() : tensor<5x16xTYPE>
  %et = tensor.empty() : tensor<2x3x16xTYPE>
  %f = linalg.fill ins(%zero : TYPE) outs(%e1 : tensor<5xTYPE>) -> tensor<5xTYPE>
  %f2 = linalg.fill ins(%zero : TYPE) outs(%e : tensor<5x16xTYPE>) -> tensor<5x16xTYPE>
  %m = linalg.matmul ins(%x, %w : tensor<5x16xTYPE>, tensor<16x16xTYPE>)
      outs(%f2 : tensor<5x16xTYPE>) -> tensor<5x16xTYPE>
  %s = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(READ : tensor<5x16xTYPE>) outs(%f : tensor<5xTYPE>) {
  ^bb0(%i: TYPE, %o: TYPE):
    %a = SUM %o, %i : TYPE
    linalg.yield %a : TYPE
  } -> tensor<5xTYPE>
  %y = linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>,
      affine_map<(i, k) -> (i, k)>], iterator_types = ["parallel", "parallel"]}
      ins(READ, %s : tensor<5x16xTYPE>, tensor<5xTYPE>) outs(%e : tensor<5x16xTYPE>) {
  ^bb0(%i: TYPE, %j: TYPE, %o: TYPE):
    %q = BODY %i, %j : TYPE
    linalg.yield %q : TYPE
  } -> tensor<5x16xTYPE>
  %p = tensor.pad %y LOW {
  ^bb0(%a: index, %b: index):
    tensor.yield %zero : TYPE
  } : tensor<5x16xTYPE> to tensor<6x16xTYPE>
  %r = tensor.expand_shape %p [[0, 1], [2]] output_shape [3, 2, 16] : tensor<6x16xTYPE> into tensor<3x2x16xTYPE>
  %t = linalg.transpose ins(%r : tensor<3x2x16xTYPE>) outs(%et : tensor<2x3x16xTYPE>) permutation = [1, 0, 2]
  return %t, ALSO : tensor<2x3x16xTYPE>, tensor<5x16xTYPE>
}"""

PLAIN = {"TYPE": "f32", "ZERO": "0.0", "READ": "%x", "SUM": "arith.addf", "BODY": "arith.subf",
         "LOW": "low[1, 0] high[0, 0]", "ALSO": "%x"}  # fmt: skip


INTEGERS = {"TYPE": "i32", "ZERO": "0", "SUM": "arith.addi", "BODY": "arith.subi"}


def _lifted(**changes: str) -> bool:
    """Whether the pad of the program stands above its reduction after the pass."""
    text = PROGRAM
    for word, value in {**PLAIN, **changes}.items():
        text = text.replace(word, value)
    assert list(compare_programs(text, "generalize-named-ops,lift-row-pads")) == []
    ctx = new_context()
    module = parse_module(text, ctx)
    for step in parse_passes("generalize-named-ops,lift-row-pads", PASS_PHASES):
        step.apply(ctx, module)
    kinds = [op.name for op in module.walk()]
    return "linalg.index" in kinds


def test_the_program_that_the_refusals_change_is_lifted():
    assert _lifted()
    assert _lifted(**INTEGERS)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"ALSO": "%y"}, id="somebody else reads the rows"),
        pytest.param({"READ": "%m"}, id="what the rows are made of is made for them alone"),
        pytest.param(
            {"TYPE": "i32", "ZERO": "0", "SUM": "arith.addi", "BODY": "arith.divsi"}, id="integers are divided"
        ),
        pytest.param({"LOW": "low[-1, 0] high[2, 0]"}, id="rows are taken away"),
        pytest.param({"5x16x": "2x16x", "<5x": "<2x", "low[1, 0]": "low[4, 0]"}, id="most of it is padding"),
        pytest.param({"16x": "15x", "2, 16]": "2, 15]"}, id="rows are short"),
    ],
)
def test_a_pad_stays_below_the_rows(changes: dict[str, str]):
    assert not _lifted(**changes)


def test_a_softmax_is_stored_before_it_is_packed():
    """Its exponentials are summed along the columns that are padded."""
    text, constants = _tiled((5, 9, 17), (2, 4, 4), (0, 0, 0))
    model = onnx_model(f"(float[5, 9, 17] x) => (t) {{ y = Softmax(x)  {text} }}", opset=13, **constants)
    program = fuseline.compile(model)
    assert program.stats["dispatches"] > 1
    assert any("cut into tiles behind its rows" in note for note in program.record.notes)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("element", ["float16", "bfloat16"])
@pytest.mark.parametrize("rows", ["layer norm", "rms norm", "softmax"])
def test_windows_of_halves_are_one_dispatch_where_rows_are_long(rows: str, element: str, threads: int):
    length = int(RNG.integers(*{"float16": (192, 240), "bfloat16": (384, 420)}[element]))
    assert _halves(rows, element, length, threads)[0] == 1


@pytest.mark.parametrize(("element", "most"), [("float16", 192), ("bfloat16", 384)])
def test_short_rows_of_halves_are_stored_before_they_are_cut(element: str, most: int):
    dispatches, notes = _halves("rms norm", element, int(RNG.integers(110, most)), 1)  # so many that a launch is little
    assert dispatches > 1 and any("elements are too short" in note for note in notes)


def _halves(rows: str, element: str, length: int, threads: int) -> tuple[int, list[str]]:
    """Dispatches and notes of an image of halves whose rows are made and cut; results are those of the interpreter."""
    dtype = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}[element]
    sizes = (int(RNG.choice([17, 18, 19, 21, 22, 23])), int(RNG.integers(17, 24)), length)  # padded to whole tiles
    text, constants = _tiled(sizes, (5, 4, 1), (int(RNG.integers(0, 2)), 0, 0))
    shape = ", ".join(map(str, sizes))
    constants["value"] = constants["value"].astype(dtype)
    model = onnx_model(f"({element}[{shape}] x) => (t) {{ {ROWS[rows]}  {text} }}", opset=13, **constants)
    program = fuseline.compile(model, threads=threads)
    x = RNG.standard_normal(sizes).astype(dtype)
    (found,) = program.run({"x": x}).values()
    (wanted,) = fuseline.compile(model, target="interpreter").run({"x": x}).values()
    tolerance = 3e-2 if element == "bfloat16" else 4e-3
    np.testing.assert_allclose(found.astype(np.float32), wanted.astype(np.float32), rtol=tolerance, atol=tolerance)
    return program.stats["dispatches"], list(program.record.notes)


def test_what_the_rows_are_made_of_may_be_computed_where_others_read_it():
    assert _lifted(READ="%m", ALSO="%m")
