"""Models into which faults are planted, and what is asked of them."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import onnx

from fuseline.compile_options import CompileOptions
from fuseline.verify.bisect.criterion import Differs
from fuseline.verify.bisect.finding import Question
from fuseline.verify.check.original import Original
from tests.graphs.onnx_text import onnx_model

TEXT = """(float[1, 8, 12, 12] x) => (z) {
    [conv] p = Conv<pads = [1, 1, 1, 1]>(x, f) [relu] r = Relu(p)
    [conv2] q = Conv<pads = [1, 1, 1, 1]>(r, f) [plus] a = Add(q, r) [twice] a2 = Mul(a, a)
    [pool] m = MaxPool<kernel_shape = [3, 3], strides = [2, 2]>(a2) [flat] fl = Flatten(m)
    [fc] y = MatMul(fl, w) [bias] b = Add(y, c) [bend] t = Tanh(b) [scale] s = Mul(t, d) [soft] z = Softmax(s)
}"""
MORE_CHANNELS = """(float[1, 32, 24, 24] x) => (z) {
    [conv] p = Conv<pads = [1, 1, 1, 1]>(x, g) [bend] z = Tanh(p)
}"""

DENSE = "(float[33, 16] x) => (z) { [fc] p = MatMul(x, h) [bend] z = Tanh(p) }"
WEIGHTS = {"f": (8, 8, 3, 3), "w": (200, 10), "c": (10,), "d": (1, 10), "g": (32, 32, 3, 3), "h": (16, 24)}


def _small(*shape: int) -> np.ndarray:
    return (0.1 * np.random.default_rng(len(shape)).standard_normal(shape)).astype(np.float32)


@cache
def question(text: str) -> Question:
    """What is asked of a model; what is right is known from now on, before anything is wrong."""
    used = {name: _small(*shape) for name, shape in WEIGHTS.items() if re.search(rf", {name}\)", text)}
    model: onnx.ModelProto = onnx_model(text, used, opset=13)
    options = CompileOptions(threads=2)
    feeds = {"x": _small(*(dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim)) * 10}
    original = Original(model, options)
    exact = original.run(feeds)
    expected = original.in_own_types(exact, feeds)
    differs = Differs(feeds, "float64", expected, 1e-4, lambda: (exact, list(original.noisy_runs(feeds))))
    return Question("m.onnx", model, options, differs, "interpreter")
