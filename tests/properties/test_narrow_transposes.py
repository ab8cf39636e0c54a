"""Casts to narrower types, transposed: every remainder of a tile, in the numbers of onnxruntime."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

NARROW = {"int8": 3, "uint8": 2, "int16": 5, "int32": 6, "float16": 10}


@pytest.mark.parametrize("source", ["float32", "float64", "int64", "int32", "int8"])
@pytest.mark.parametrize("narrow", NARROW)
def test_every_remainder(source: str, narrow: str) -> None:
    for rows in (15, 16, 17, 18, 21):
        name = {"float32": "float", "float64": "double"}.get(source, source)
        nodes = f"c = Cast<to = {NARROW[narrow]}>(x)  y = Transpose<perm = [0, 2, 1]>(c)"
        model = onnx_model(f"({name}[3, {rows}, 16] x) => (y) {{ {nodes} }}")
        x = RNG.integers(0, 100, (3, rows, 16)).astype(source)
        expected = np.asarray(ort.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0])
        np.testing.assert_array_equal(fuseline.compile(model, threads=1).run({"x": x})["y"], expected)
