"""The cells of recurrent layers: a small contraction for each gate and an elementwise rest. The gates of a step have
the cell's own loops, so a step is one dispatch where nothing else lies between. `recurrent_layer.py` runs them.

What is not translated here runs on the host (`reference/recurrent.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.frontends.onnx.dtypes import mlir_element
from fuseline.frontends.onnx.emission import elementwise
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.recurrent_layer import Step, run_layer
from fuseline.frontends.onnx.ops.recurrent_slices import concat, section, sum_of_biases, times, total
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import Tensor, static_size
from fuseline.ir.build import Body


@onnx_op("LSTM", ranks=(3, 3, 3, 2, 1, 3, 3, 2), in_f32=True)
def lstm(node: OnnxNode) -> list[Tensor]:
    """Gates i, o, f, c: c' = f * c + i * g; h' = o * tanh(c'). Peepholes let i, f see c and o see c'."""
    return run_layer(node, 2, _lstm_cell, sum_of_biases)


def _lstm_cell(step: Step, projected: Sequence[Tensor], state: Sequence[Tensor]) -> Sequence[Tensor]:
    h, c = state
    node, dtype = step.node, h.dtype
    sigma, squash, show = step.activations
    i, o, f, g = (total(node, own, times(node, h, r)) for own, r in zip(projected, step.r, strict=True))
    to_i, to_o, to_f = step.peepholes or (None, None, None)

    def memory(b: Body, fe: SSAValue, ce: SSAValue, ie: SSAValue, ge: SSAValue, *peep: SSAValue) -> SSAValue:
        if peep:
            ie, fe = (b.op(arith.AddfOp, gate, b.op(arith.MulfOp, p, ce)) for gate, p in ((ie, peep[0]), (fe, peep[1])))
        kept = b.op(arith.MulfOp, sigma(b, fe), ce)
        return b.op(arith.AddfOp, kept, b.op(arith.MulfOp, sigma(b, ie), squash(b, ge)))

    def shown(b: Body, oe: SSAValue, ce: SSAValue, *peep: SSAValue) -> SSAValue:
        if peep:
            oe = b.op(arith.AddfOp, oe, b.op(arith.MulfOp, peep[0], ce))
        return b.op(arith.MulfOp, sigma(b, oe), show(b, ce))

    new = elementwise(node, [f, c, i, g, *(t for t in (to_i, to_f) if t is not None)], dtype, memory)
    return [elementwise(node, [o, new, *([to_o] if to_o is not None else [])], dtype, shown), new]


@onnx_op("RNN", ranks=(3, 3, 3, 2, 1, 3), in_f32=True)
def rnn(node: OnnxNode) -> list[Tensor]:
    """h' = tanh(x W' + h R' + biases)."""
    return run_layer(node, 1, _rnn_cell, sum_of_biases)


def _rnn_cell(step: Step, projected: Sequence[Tensor], state: Sequence[Tensor]) -> Sequence[Tensor]:
    h, squash = state[0], step.activations[0]
    operands = [projected[0], times(step.node, h, step.r[0])]
    return [elementwise(step.node, operands, h.dtype, lambda b, x, y: squash(b, b.op(arith.AddfOp, x, y)))]


@onnx_op("GRU", ranks=(3, 3, 3, 2, 1, 3), in_f32=True)
def gru(node: OnnxNode) -> list[Tensor]:
    """Gates z, r, h: h' = (1 - z) * tanh(candidate) + z * h; the reset gate acts before or after the recurrent
    product."""
    after = bool(node.integer("linear_before_reset"))
    hidden = static_size(node[2].dims[2])

    def biases(node: OnnxNode, both: Tensor) -> tuple[Tensor, Tensor | None]:
        if not after:
            return sum_of_biases(node, both)
        gates = total(node, section(node, both, 0, 0, 2 * hidden), section(node, both, 0, 3 * hidden, 2 * hidden))
        merged = concat(node, [gates, section(node, both, 0, 2 * hidden, hidden)], 0)
        return merged, section(node, both, 0, 5 * hidden, hidden)

    def cell(step: Step, projected: Sequence[Tensor], state: Sequence[Tensor]) -> Sequence[Tensor]:
        return [_gru_cell(step, projected, state[0], after)]

    return run_layer(node, 1, cell, biases)


def _gru_cell(step: Step, own: Sequence[Tensor], h: Tensor, after: bool) -> Tensor:
    node, dtype = step.node, h.dtype
    sigma, squash = step.activations
    weights = step.r[2]
    z, reset = (
        elementwise(
            node, [own[k], times(node, h, step.r[k])], dtype, lambda b, x, y: sigma(b, b.op(arith.AddfOp, x, y))
        )
        for k in range(2)
    )
    if after:
        product = times(node, h, weights)
        if step.recurrent_bias is not None:
            product = elementwise(node, [product, step.recurrent_bias], dtype, lambda b, x, y: b.op(arith.AddfOp, x, y))
        product = elementwise(node, [reset, product], dtype, lambda b, x, y: b.op(arith.MulfOp, x, y))
    else:
        product = times(node, elementwise(node, [reset, h], dtype, lambda b, x, y: b.op(arith.MulfOp, x, y)), weights)
    one = mlir_element(dtype)

    def mix(b: Body, x: SSAValue, y: SSAValue, ze: SSAValue, he: SSAValue) -> SSAValue:
        candidate = squash(b, b.op(arith.AddfOp, x, y))
        rest = b.op(arith.MulfOp, b.op(arith.SubfOp, b.constant(1.0, one), ze), candidate)
        return b.op(arith.AddfOp, rest, b.op(arith.MulfOp, ze, he))

    return elementwise(node, [own[2], product, z, h], dtype, mix)
