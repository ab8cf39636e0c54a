"""Ops that need results of a root at other points than their own (`y[i] * y[j]`, `y[i, j] - y[j, i]`) are no epilogues,
whatever computes the root and however small it is."""

from __future__ import annotations

from itertools import product
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


@pytest.mark.parametrize(("root", "reader"), product(ROOTS, READERS))
def test_against_onnxruntime(root: str, reader: str) -> None:
    model = _model(root, reader)
    feeds = {"x": RNG.standard_normal((N, N)).astype(np.float32)}
    expected: Any = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    for fusion, threads in product(("default", "aggressive"), (1, 2)):
        found = fuseline.compile(model, fusion=fusion, threads=threads).run(feeds)["out"]
        np.testing.assert_allclose(found, expected[0], rtol=1e-4, atol=1e-4)
