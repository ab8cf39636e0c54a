"""Small models that together ask a target about most of what there is: sizes that no tile divides, every kind of op,
sizes that only the run tells, integers, a loop. Weights are drawn anew for each seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx.parser
from onnx import numpy_helper

Shape = tuple[int, ...]

_PRODUCT = "g (float[13, 37] x) => (z) { a = MatMul(x, w) b = Add(a, c) z = Relu(b) }"

_CONVOLUTION = """g (float[1, 3, 17, 13] x) => (z) {
    a = Conv<pads = [1, 1, 1, 1]>(x, w, b)
    r = Clip(a, lo, hi)
    c = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(r, w2)
    d = Conv(c, w3, b3)
    z = Add(d, c)
}"""

_DEPTHWISE = """g (float[1, 10, 11, 9] x) => (z) {
    a = Conv<group = 10, pads = [2, 2, 2, 2], dilations = [2, 2]>(x, w, b)
    r = Relu(a)
    z = Conv(r, w2)
}"""

_ROWS = """g (float[2, 7, 19] x) => (z, n) {
    s = MatMul(x, w)
    p = Softmax<axis = -1>(s)
    z = MatMul(p, v)
    n = LayerNormalization<axis = -1>(z, gain, bias)
}"""

_WINDOWS = """g (float[1, 5, 14, 14] x) => (z) {
    a = MaxPool<kernel_shape = [3, 3], strides = [2, 2]>(x)
    b = GlobalAveragePool(a)
    f = Flatten(b)
    h = Gemm(f, w, c)
    z = Tanh(h)
}"""

_MOVES = """g (float[3, 4, 6] x, int64[5] at) => (z, k) {
    t = Transpose<perm = [1, 0, 2]>(x)
    r = Reshape(t, shape)
    j = Concat<axis = 1>(r, r)
    e = Exp(j)
    z = Slice(e, first, last)
    k = Gather<axis = 0>(r, at)
}"""

_SYMBOLIC = """g (float[batch, length, 12] x) => (z) {
    h = MatMul(x, w)
    g = Gelu(h)
    s = ReduceMean<keepdims = 1>(g, axis)
    z = Sub(g, s)
}"""

_INTEGERS = """g (float[1, 3, 10, 10] x) => (z) {
    q = QuantizeLinear(x, s, o)
    d = DequantizeLinear(q, s, o)
    f = DequantizeLinear(w, ws, wo)
    c = Conv<pads = [1, 1, 1, 1]>(d, f)
    r = Relu(c)
    e = QuantizeLinear(r, s, o)
    z = DequantizeLinear(e, s, o)
}"""

_LOOP = "g (float[5, 1, 6] x) => (y) { y, h, c = LSTM<hidden_size = 7>(x, w, r, b) }"

QUANTIZATION_STEP = 0.05
"""Between two values that the outputs of `integers` can have."""

GRAPHS = ("product", "convolution", "depthwise", "rows", "windows", "moves", "symbolic", "integers", "loop")
"""The names of the models."""

_ALL_TEXTS = (_PRODUCT, _CONVOLUTION, _DEPTHWISE, _ROWS, _WINDOWS, _MOVES, _SYMBOLIC, _INTEGERS, _LOOP)
_TEXTS: Mapping[str, str] = dict(zip(GRAPHS, _ALL_TEXTS, strict=True))

_WEIGHTS: Mapping[str, Mapping[str, Shape]] = {
    "product": {"w": (37, 21), "c": (21,)},
    "convolution": {"w": (11, 3, 3, 3), "b": (11,), "w2": (11, 11, 3, 3), "w3": (11, 11, 1, 1), "b3": (11,)},
    "depthwise": {"w": (10, 1, 3, 3), "b": (10,), "w2": (6, 10, 1, 1)},
    "rows": {"w": (19, 23), "v": (23, 9), "gain": (9,), "bias": (9,)},
    "windows": {"w": (5, 6), "c": (6,)},
    "symbolic": {"w": (12, 10)},
    "loop": {"w": (1, 28, 6), "r": (1, 28, 7), "b": (1, 56)},
}


def graph(name: str, seed: int = 0) -> onnx.ModelProto:
    """The model of this name (of `GRAPHS`), with weights drawn from `seed`."""
    rng = np.random.default_rng([seed, GRAPHS.index(name)])
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]>\n{_TEXTS[name]}')
    drawn = {key: _normal(rng, shape) for key, shape in _WEIGHTS.get(name, {}).items()}
    for key, array in {**drawn, **_fixed(name, rng)}.items():
        model.graph.initializer.append(numpy_helper.from_array(array, key))
    for number, node in enumerate(model.graph.node):
        node.name = f"{node.op_type}_{number}"
    return onnx.shape_inference.infer_shapes(model)


def feeds(model: onnx.ModelProto, seed: int = 0) -> dict[str, Any]:
    """An array for each input; sizes that the model leaves open are 3 and 5."""
    rng = np.random.default_rng(seed)
    known = {"batch": 3, "length": 5}
    found: dict[str, Any] = {}
    for item in model.graph.input:
        dims = item.type.tensor_type.shape.dim
        shape = tuple(known[dim.dim_param] if dim.dim_param else dim.dim_value for dim in dims)
        whole = item.type.tensor_type.elem_type == onnx.TensorProto.INT64
        found[item.name] = rng.integers(0, 3, shape) if whole else _normal(rng, shape)
    return found


def _fixed(name: str, rng: np.random.Generator) -> dict[str, Any]:
    """What is no matrix of weights: bounds, axes, scales."""
    if name == "convolution":
        return {"lo": np.float32(0), "hi": np.float32(6)}
    if name == "moves":
        places = {"shape": [12, 6], "first": [1, 2], "last": [9, 11]}
        return {key: np.array(value, np.int64) for key, value in places.items()}
    if name == "symbolic":
        return {"axis": np.array([2], np.int64)}
    if name != "integers":
        return {}
    weights = rng.integers(-100, 100, (8, 3, 3, 3)).astype(np.int8)
    scales = {"s": np.float32(QUANTIZATION_STEP), "ws": np.float32(0.01), "o": np.int8(0), "wo": np.int8(0)}
    return {"w": weights, **{key: np.asarray(value) for key, value in scales.items()}}


def _normal(rng: np.random.Generator, shape: Shape) -> Any:
    return (0.3 * rng.standard_normal(shape)).astype(np.float32)
