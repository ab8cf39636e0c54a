"""Ops that need results of a root at other points than their own (`y[i] * y[j]`, `y[i, j] - y[j, i]`) are no epilogues,
whatever computes the root and however small it is."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import parser

import fuseline
from tests.draws import RNG

N = 8
ROOTS = {
    "ArgMin": "y = ArgMin <axis = 1, keepdims = 1> (x)",
    "ReduceMax": "y = ReduceMax <axes = [1], keepdims = 1> (x)",
    "columns": "r = ReduceMax <axes = [0], keepdims = 1> (x) y = Transpose <perm = [1, 0]> (r)",
    "MatMul": "y = MatMul (x, x)",
    "Softmax": "y = Softmax <axis = 1> (x)",
    "CumSum": "y = CumSum (x, one)",
    "TopK": "y, z = TopK <axis = 1> (x, most)",
    "ScatterElements": "y = ScatterElements <axis = 1> (x, i, x)",
}
READERS = {
    "outer": "t = Transpose <perm = [1, 0]> (y) out = Mul (y, t)",
    "doubled": "t = Transpose <perm = [1, 0]> (y) q = Add (y, y) out = Mul (t, q)",
    "behind": "t = Transpose <perm = [1, 0]> (y) q = Sub (t, y) out = Mul (q, y)",
}


def _model(root: str, reader: str) -> onnx.ModelProto:
    kind = "int64" if root == "ArgMin" else "float"
    places = ", ".join(map(str, np.tile(np.arange(N)[::-1], N)))
    return parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 17]> g (float[{N},{N}] x) => ({kind}[a,b] out) '
        f"<int64 one = {{1}}, int64[1] most = {{{N}}}, int64[{N},{N}] i = {{{places}}}> "
        f"{{ {ROOTS[root]} {READERS[reader]} }}"
    )


@pytest.mark.parametrize(("root", "reader"), list(product(ROOTS, READERS)))
def test_against_onnxruntime(root: str, reader: str) -> None:
    model = _model(root, reader)
    feeds = {"x": RNG.standard_normal((N, N)).astype(np.float32)}
    expected: Any = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    for fusion, threads in product(("default", "aggressive"), (1, 2)):
        found = fuseline.compile(model, fusion=fusion, threads=threads).run(feeds)["out"]
        np.testing.assert_allclose(found, expected[0], rtol=1e-4, atol=1e-4)


GATHERS = """func.func @main(%a: tensor<9x7xf32>) -> (RESULTS) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<7xf32>) -> tensor<7xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "reduction"]} ins(%a : tensor<9x7xf32>) outs(%f : tensor<7xf32>) {
  ^bb0(%x: f32, %acc: f32):
    FOLD
    linalg.yield %r : f32
  } -> tensor<7xf32>
  %h = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%s : tensor<7xf32>) outs(%e : tensor<7xf32>) {
  ^bb0(%x: f32, %o: f32):
    %r = arith.negf %x : f32
    linalg.yield %r : f32
  } -> tensor<7xf32>
  %g = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%s : tensor<7xf32>) outs(%e : tensor<7xf32>) {
  ^bb0(%x: f32, %o: f32):
    %p = math.absf %x : f32
    %i = arith.fptosi %p : f32 to i64
    %six = arith.constant 6 : i64
    %m = arith.minsi %i, %six : i64
    %at = arith.index_cast %m : i64 to index
    %r = tensor.extract SOURCE[%at] : tensor<7xf32>
    linalg.yield %r : f32
  } -> tensor<7xf32>
  return NAMES : RESULTS
}"""
"""Places that the root itself says, in what it made or what follows from that."""


FOLDS = (
    "%r = arith.addf %x, %acc : f32",
    "%r = arith.maximumf %x, %acc : f32",
    "%c = arith.cmpf olt, %acc, %acc : f32\n %r = arith.select %c, %acc, %x : f32",
)


@pytest.mark.parametrize("names", ["%g", "%s, %g", "%h, %s, %g"])
@pytest.mark.parametrize("source", ["%s", "%h"])
@pytest.mark.parametrize("fold", FOLDS)
def test_places_that_the_root_says(fold: str, source: str, names: str, tmp_path: Path) -> None:
    path, results = tmp_path / "gathers.mlir", ", ".join(["tensor<7xf32>"] * len(names.split()))
    path.write_text(
        GATHERS.replace("FOLD", fold).replace("SOURCE", source).replace("NAMES", names).replace("RESULTS", results)
    )
    a = RNG.integers(-2, 3, (9, 7)).astype(np.float32)
    s = np.maximum(a.max(0), 0) if "maximumf" in fold else a[-1] if "select" in fold else a.sum(0)
    g = (s if source == "%s" else -s)[np.minimum(np.abs(s), 6).astype(np.int64)]
    wanted = {"%s": s, "%h": -s, "%g": g}
    for fusion, threads in product(("none", "default", "aggressive"), (1, 2)):
        found = fuseline.compile(path, fusion=fusion, threads=threads).run({"a": a}).values()
        for name, result in zip(names.split(", "), found, strict=True):
            np.testing.assert_array_equal(result, wanted[name])
