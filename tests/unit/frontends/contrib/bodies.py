"""Calls of onnxruntime's operators outside of any model, and what their bodies compute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from onnx import helper
from onnx.reference import ReferenceEvaluator

from fuseline.frontends.onnx.contrib_bodies import contrib_body
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.tensors import Tensor, known
from tests.draws import RNG

Array = NDArray[Any]
F32 = np.dtype(np.float32)


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def call(op_type: str, inputs: Sequence[Any], outputs: str = "y", **attributes: Any) -> OnnxNode:
    """A call; an input is an array (constant), sizes of float32, a Tensor, or None."""
    names = ["" if item is None else f"x{i}" for i, item in enumerate(inputs)]
    results = ["" if name == "-" else name for name in outputs.split()]
    source = ir.from_proto(helper.make_node(op_type, names, results, domain="com.microsoft", **attributes))
    tensors = [_tensor(item) for item in inputs]
    return OnnxNode(None, None, source, "call", tensors, source.attributes, 1)  # pyright: ignore[reportArgumentType]


def _tensor(item: Any) -> Tensor | None:
    if item is None or isinstance(item, Tensor):
        return item
    return Tensor(F32, item) if isinstance(item, tuple) else known(item)


def ran(node: OnnxNode, *arrays: Array | None) -> list[Array]:
    """What the body of `node` computes, by the reference evaluator."""
    found = contrib_body(node)
    assert found is not None
    proto = ir.to_proto(found[0])
    feeds = {name: array for name, array in zip(proto.input, arrays, strict=True) if array is not None}
    return ReferenceEvaluator(proto).run(None, feeds, attributes={})  # pyright: ignore


def agrees(node: OnnxNode, arrays: Sequence[Array | None], *wanted: Array) -> None:
    found = ran(node, *arrays)
    for one, expected in zip(found, wanted, strict=False):
        scale = max(1.0, float(np.abs(expected).max(initial=0)))
        np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-4 * scale)
