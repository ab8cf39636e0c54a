"""onnxruntime's LSTM with 8-bit weights, as an LSTM with the weights they stand for.

onnxruntime also rounds the input and the state of every step to 8 bits, with a scale of their own each time
(docs/ContribOperators.md); here they stay as they are, so that results are nearer to those of the model before
quantisation.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.recurrent import lstm
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import Tensor, known


@onnx_op("DynamicQuantizeLSTM", domain="com.microsoft")
def dynamic_quantize_lstm(node: OnnxNode) -> list[Tensor]:
    """X, W `[directions, features, 4 * hidden]`, R `[directions, hidden, 4 * hidden]`, what LSTM takes besides, scales
    and zero points of W and R."""
    w, r = (_weights(node, index, 8 + 2 * (index - 1)) for index in (1, 2))
    return lstm(replace(node, inputs=[node[0], w, r, *(node.get(index) for index in range(3, 8))]))


def _weights(node: OnnxNode, index: int, scale_at: int) -> Tensor:
    """Constant `[directions, from, to]` as the f32 numbers `[directions, to, from]` it stands for; a scale each
    direction or each `to`."""
    whole, zero = node[index].numbers(), node.get(scale_at + 1)
    scale, shift = node[scale_at].numbers(), zero.numbers() if zero is not None else np.zeros(1, np.int32)
    scale, shift = (p.reshape(p.shape[0], 1, -1) if p.ndim else p for p in (scale, shift))
    real = (whole.astype(np.int32) - shift.astype(np.int32)).astype(np.float32) * scale.astype(np.float32)
    return known(np.ascontiguousarray(real.transpose(0, 2, 1)), name=node[index].name)
