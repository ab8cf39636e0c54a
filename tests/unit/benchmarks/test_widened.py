"""A widened model computes in float64 what the model says in float32."""

from __future__ import annotations

import numpy as np
import onnx
from benchmarks.widened import in_float64
from onnx import numpy_helper

import fuseline
from tests.graphs.onnx_text import initializers, onnx_model


def model() -> onnx.ModelProto:
    """A contraction, constants of every kind, a cast, a filled shape and an `If` with weights of its own."""
    rng = np.random.default_rng(3)
    w, bias = (rng.standard_normal(shape).astype(np.float32) for shape in ((5, 7), 7))
    held = initializers(bias=bias)
    branches = [f"{op} () => (float[3, 7] {op}) {held} {{ {op} = {op}(y, bias) }}" for op in ("Add", "Mul")]
    nodes = (
        "product = MatMul(x, w)"
        f"  third = Constant<value_float = {1 / 3}>()  rows = Constant<value_floats = {[0.1] * 7}>()"
        "  zeros = ConstantOfShape(sizes)  wide = Cast<to = 1>(flags)"
        "  y = Sum(product, third, rows, zeros, wide)"
        f"  z = If<then_branch = {branches[0]}, else_branch = {branches[1]}>(yes)"
    )
    text = f"(float[3, 5] x, int32[7] flags, bool yes) => (float[3, 7] z) {{ {nodes} }}"
    return onnx_model(text, opset=17, w=w, sizes=[3, 7])


def test_every_float32_becomes_float64():
    wide = in_float64(model())
    onnx.checker.check_model(wide, full_check=True)
    rng = np.random.default_rng(4)
    x, flags = rng.standard_normal((3, 5)), rng.integers(0, 2, 7).astype(np.int32)
    weights, bias = (
        numpy_helper.to_array(tensor).astype(np.float64)
        for tensor in (wide.graph.initializer[0], wide.graph.node[-1].attribute[0].g.initializer[0])
    )
    expected = x @ weights + np.float32(1 / 3) + np.float32(0.1) + flags
    for yes, result in ((True, expected + bias), (False, expected * bias)):
        found = fuseline.compile(wide, target="interpreter").run({"x": x, "flags": flags, "yes": np.array(yes)})["z"]
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, result, rtol=1e-13)


def test_the_model_itself_stays():
    given = model()
    before = given.SerializeToString()
    in_float64(given)
    assert given.SerializeToString() == before
