"""Models whose artifacts have every part that a header can describe: loops, stages, branches, held values, arms,
symbolic sizes, a second program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.small_models import FLOAT, INT64, Builder, attention, convolutions, mlp

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
    value = helper.make_tensor_value_info
    weight = numpy_helper.from_array(_floats(6, 6, 9), "w")
    then = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["t"])], "then", [], [value("t", FLOAT, [3, 9])])
    other = helper.make_graph([helper.make_node("Tanh", ["x"], ["o"])], "other", [], [value("o", FLOAT, [3, 6])])
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["positive"]),
        helper.make_node("If", ["positive"], ["y0"], then_branch=then, else_branch=other),
        helper.make_node("Exp", ["y0"], ["y"]),
    ]
    zero = numpy_helper.from_array(np.zeros((), np.float32), "zero")
    graph = helper.make_graph(nodes, "g", [value("x", FLOAT, [3, 6])], [value("y", FLOAT, None)], [weight, zero])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    return model, {"x": np.abs(_floats(7, 3, 6))}


def _held() -> tuple[onnx.ModelProto, Feeds]:
    """Strings and a sequence beside native work."""
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["pair"]),
        helper.make_node("ConcatFromSequence", ["pair"], ["both"], axis=0),
        helper.make_node("Exp", ["both"], ["y"]),
        helper.make_node("StringConcat", ["word", "word"], ["twice"]),
    ]
    words = [value(name, TensorProto.STRING, [2]) for name in ("word", "twice")]
    graph = helper.make_graph(nodes, "g", [value("x", FLOAT, [3, 5]), words[0]], [value("y", FLOAT, [6, 5]), words[1]])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
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
