"""Optionals of tensors: what is there is known while reading. Sequences, and optionals that are fed, stay on the
host."""

from __future__ import annotations

import numpy as np

from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import Tensor, known


@onnx_op("OptionalGetElement", since=15)
def element(node: OnnxNode) -> Tensor:
    """The tensor itself."""
    return node[0]


@onnx_op("OptionalHasElement", since=15)
def has_element(node: OnnxNode) -> Tensor:
    """Whether the input is given at all."""
    return known(np.asarray(node.get(0) is not None))
