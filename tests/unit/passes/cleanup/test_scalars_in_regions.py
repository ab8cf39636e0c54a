"""Numbers that a dispatch region of the input computes, or takes from outside: the region is a node like any other,
under every list of passes, and what was printed behind them compiles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseline
from fuseline.cli.run_passes import run_passes
from tests.draws import RNG
from tests.wishes.compared import agree

PASSES = [
    "cleanup",
    "cleanup,form-dispatch-regions",
    "cleanup,form-dispatch-regions{level=none},canonicalize,cse,form-dispatch-regions",
    "cleanup,fusion,dispatch",
    "cleanup,fusion,dispatch,dedup",
]


def _text(inside: str, number: str, rows: int, columns: int) -> str:
    of = f"tensor<{rows}x{columns}xf32>"
    same = "affine_map<(i, j) -> (i, j)>"
    return f"""func.func @main(%x: {of}, %s: f32, %p: tensor<4xf32>) -> ({of}, {of}) {{
  %c1 = arith.constant 1 : index
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : {of}
  %o = arith.addf %s, %two : f32
  %r, %g = flow.dispatch.region -> ({of}, {of}) {{
    {inside}
    %t = linalg.generic {{indexing_maps = [{same}, {same}], iterator_types = ["parallel", "parallel"]}}
        ins(%x : {of}) outs(%e : {of}) {{
      ^bb0(%in: f32, %out: f32):
        %v = arith.mulf %in, {number} : f32
        linalg.yield %v : f32
    }} -> {of}
    %f = linalg.fill ins({number} : f32) outs(%e : {of}) -> {of}
    flow.return %t, %f : {of}, {of}
  }}
  return %r, %g : {of}, {of}
}}"""


NUMBERS = {
    "argument": ("", "%s"),
    "outside": ("", "%o"),
    "inside": ("%k = arith.mulf %s, %o : f32", "%k"),
    "element": ("%a = tensor.extract %p[%c1] : tensor<4xf32>\n %k = arith.mulf %a, %o : f32", "%k"),
}


@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize("number", NUMBERS)
def test_a_region_takes_numbers_as_any_op_does(number: str, passes: str, tmp_path: Path):
    rows, columns = (int(RNG.integers(2, 40)) for _ in range(2))
    text = _text(*NUMBERS[number], rows, columns)
    x, s, p = (RNG.standard_normal(shape, dtype=np.float32) for shape in ((rows, columns), (), (4,)))
    factor = {"argument": s, "outside": s + 2, "inside": s * (s + 2), "element": p[1] * (s + 2)}[number]
    (path := tmp_path / "behind.mlir").write_text(run_passes(text, passes, verify_each=True))
    for threads in (1, 2):
        scaled, filled = fuseline.compile(path, threads=threads, cache=False).run({"x": x, "s": s, "p": p}).values()
        agree(scaled, x * factor, passes)
        agree(filled, np.full((rows, columns), factor, np.float32), passes)


@pytest.mark.parametrize("passes", PASSES)
def test_an_element_of_what_the_region_makes_stays_inside(passes: str, tmp_path: Path):
    of = "tensor<3x5xf32>"
    inside = f"""%m = linalg.exp ins(%x : {of}) outs(%e : {of}) -> {of}
    %k = tensor.extract %m[%c1, %c1] : {of}"""
    x = RNG.standard_normal((3, 5), dtype=np.float32)
    (path := tmp_path / "behind.mlir").write_text(run_passes(_text(inside, "%k", 3, 5), passes, verify_each=True))
    feeds = {"x": x, "s": np.float32(1), "p": np.ones(4, np.float32)}
    scaled, _ = fuseline.compile(path, threads=1, cache=False).run(feeds).values()
    agree(scaled, x * np.exp(x[1, 1]), passes)
