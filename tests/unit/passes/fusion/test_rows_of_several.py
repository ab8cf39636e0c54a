"""An argument is quantised once for several products that read it along the same rows: all by blocks of rows in one
dispatch."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model


def _projections(rows: int, steps: int, widths: list[int], element: Any, residual: str) -> onnx.ModelProto:
    """Products of one quantised argument; `residual`: what is added to the first, if anything."""
    zero = np.asarray(np.iinfo(element).min + int(RNG.integers(90, 170)), element)
    values: dict[str, Any] = {"s": np.float32(0.03), "z": zero, "t": np.float32(0.01), "o": np.int8(0)}
    lines = ["q = QuantizeLinear(x, s, z)  a = DequantizeLinear(q, s, z)"]
    for i, width in enumerate(widths):
        values[f"w{i}"] = RNG.integers(-127, 128, (steps, width)).astype(np.int8)
        lines.append(f"f{i} = DequantizeLinear(w{i}, t, o)  y{i} = MatMul(a, f{i})")
    if residual:
        lines.append(f"y = Add(y0, {residual})")
    results = [f"y{i}" for i in range(len(widths))] + ["y"] * bool(residual)
    return onnx_model(
        f"(float[{rows}, {steps}] x) => ({', '.join(results)}) {{ {'  '.join(lines)} }}", values, opset=20
    )


@pytest.mark.parametrize("element", [np.uint8, np.int8])
@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("residual", ["", "a"])
def test_products_of_one_argument_quantise_its_rows_once(residual: str, count: int, element: Any) -> None:
    """Queries, keys and values: products by blocks of rows in one dispatch."""
    rows, steps = int(RNG.integers(40, 120)), int(RNG.integers(30, 200))
    widths = [steps if residual else int(RNG.integers(65, 200)) for _ in range(count)]
    model, threads = _projections(rows, steps, widths, element, residual), int(RNG.integers(1, 3))
    assert fuseline.compile(model, target="null", threads=threads).stats["dispatches"] == 1
    x = RNG.normal(0, 1, (rows, steps)).astype(np.float32)
    wanted = fuseline.compile(model, target="interpreter", fusion="none").run({"x": x})
    for name, found in fuseline.compile(model, threads=threads).run({"x": x}).items():
        np.testing.assert_allclose(found, wanted[name], rtol=1e-4, atol=1e-3)
