"""Models whose artifacts have every part that a header can describe: loops, stages, branches, held values, arms,
symbolic sizes, a second program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

from tests.graphs.onnx_builder import FLOAT, INT64, Builder
from tests.graphs.onnx_text import onnx_model
from tests.small_models import attention, convolutions, mlp

Feeds = dict[str, Any]


def _floats(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def _mlp() -> tuple[onnx.ModelProto, Feeds]:
    return mlp(), {"x": _floats(1, 4, 16)}


def _convolutions() -> tuple[onnx.ModelProto, Feeds]:
    return convolutions(), {"x": _floats(2, 1, 3, 16, 16)}


def _attention() -> tuple[onnx.ModelProto, Feeds]:
    return attention("batch", "length"), {"ids": np.random.default_rng(3).integers(0, 50, (3, 7))}


def _recurrent() -> tuple[onnx.ModelProto, Feeds]:
    """A layer whose steps are a loop, of any length."""
    b = Builder(5)
    b.node(
        "LSTM",
        "x",
        b.weight(1, 32, 6, scale=0.3),
        b.weight(1, 32, 8, scale=0.3),
        b.weight(1, 64, scale=0.1),
        outputs=3,
        hidden_size=8,
    )
    y = b.node("Squeeze", "LSTM_0_out0", b.constant(np.array([1])))
    return b.model({"x": (FLOAT, ("steps", 2, 6))}, {y: ("steps", 2, 8)}), {"x": _floats(4, 5, 2, 6)}


def _staged() -> tuple[onnx.ModelProto, Feeds]:
    """How many elements are positive is only known in the middle of a run."""
    b = Builder(6)
    places = b.node("NonZero", b.node("Relu", "x"))
    found = b.node("GatherND", "x", b.node("Transpose", places, perm=[1, 0]))
    y = b.node("Exp", b.node("Mul", found, b.node("Abs", found)))
    return b.model({"x": (FLOAT, (4, 9))}, {y: ("found",)}), {"x": _floats(5, 4, 9)}


def _branches() -> tuple[onnx.ModelProto, Feeds]:
    """Either of two programs runs."""
    then = "then () => (float[3, 9] t) { t = MatMul(x, w) }"
    other = "other () => (float[3, 6] o) { o = Tanh(x) }"
    nodes = (
        "sum = ReduceSum<keepdims = 0>(x)  positive = Greater(sum, zero)"
        f"  y0 = If<then_branch = {then}, else_branch = {other}>(positive)  y = Exp(y0)"
    )
    weights = {"w": _floats(6, 6, 9), "zero": np.float32(0)}
    model = onnx_model(f"(float[3, 6] x) => (float[] y) {{ {nodes} }}", weights)
    return model, {"x": np.abs(_floats(7, 3, 6))}


def _held() -> tuple[onnx.ModelProto, Feeds]:
    """Strings and a sequence beside native work."""
    nodes = (
        "pair = SequenceConstruct(x, x)  both = ConcatFromSequence<axis = 0>(pair)  y = Exp(both)"
        "  twice = StringConcat(word, word)"
    )
    text = f"(float[3, 5] x, string[2] word) => (float[6, 5] y, string[2] twice) {{ {nodes} }}"
    model = onnx_model(text, opset=21)
    return model, {"x": _floats(8, 3, 5), "word": np.array(["a", "b"], object)}


def _concat() -> tuple[onnx.ModelProto, Feeds]:
    """Parts of a concat are written in place, side by side; sizes of the input become a tensor."""
    b = Builder(9)
    parts = [b.node("MatMul", "x", b.weight(8, 4 * i, scale=0.3)) for i in (1, 2, 3)]
    parts.append(b.node("Transpose", b.node("Tanh", b.node("Transpose", "x", perm=[1, 0])), perm=[1, 0]))
    y = b.node("Concat", *parts, axis=1)
    b.node("Shape", y)
    return b.model({"x": (FLOAT, ("rows", 8))}, {y: ("rows", 32)}), {"x": _floats(9, 5, 8)}


def _embedding() -> tuple[onnx.ModelProto, Feeds]:
    """Indices that are fed."""
    b = Builder(10)
    y = b.node("Softmax", b.node("Gather", b.weight(11, 6), "ids"), axis=-1)
    return b.model({"ids": (INT64, ("n",))}, {y: ("n", 6)}), {"ids": np.array([0, 3, 10, -1])}


def _fallback() -> tuple[onnx.ModelProto, Feeds]:
    """An image of one row, which a second program broadcasts."""
    b = Builder(11)
    half = b.node("Slice", "x", *(b.constant(np.array([number])) for number in (0, 99, 0, 2)))
    y = b.node("MatMul", b.node("Add", b.node("Concat", half, half, axis=0), "x"), b.weight(8, 5))
    return b.model({"x": (FLOAT, ("rows", 8))}, {y: ("all", 5)}), {"x": _floats(10, 1, 8)}


MODELS: dict[str, Callable[[], tuple[onnx.ModelProto, Feeds]]] = {
    "mlp": _mlp,
    "convolutions": _convolutions,
    "attention": _attention,
    "recurrent": _recurrent,
    "staged": _staged,
    "branches": _branches,
    "held": _held,
    "concat": _concat,
    "embedding": _embedding,
    "fallback": _fallback,
}
