"""Recurrent layers over a known number of steps: the input's part of every gate is one contraction for all steps, then one small
contraction and an elementwise cell per step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith, math, tensor
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from fuseline.frontends.onnx.dtypes import is_float, mlir_element
from fuseline.frontends.onnx.emission import broadcast_to, contract, elementwise, mapped, reshape, result
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.elementwise import sigmoid
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.slices import slice_of
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known, static_size
from fuseline.ir.build import Body, tensor_type
from fuseline.ir.dim import Dim

MAX_STEPS = 256
"""More steps than this would be more code than they are worth unrolled; they run on the host."""

Cell = Callable[["Step", Tensor, Sequence[Tensor]], Sequence[Tensor]]


@dataclass(frozen=True)
class Step:
    """One direction's weights for one time step. `w`, `r` are `[gates * hidden, features]`; `bias` the sum of both biases, per gate."""

    node: OnnxNode
    r: Tensor
    recurrent_bias: Tensor | None
    hidden: int


def _part(node: OnnxNode, x: Tensor, axis: int, offset: int, size: Dim) -> Tensor:
    """`size` elements along `axis` from `offset` on; constants are cut at once."""
    if x.array is not None:
        cut = tuple(slice(offset, offset + static_size(size)) if i == axis else slice(None) for i in range(x.rank))
        return known(np.ascontiguousarray(x.array[cut]), x.dtype, f"{x.name}_{offset}")
    offsets: list[Dim] = [offset if i == axis else 0 for i in range(x.rank)]
    return slice_of(node, x, offsets, [size if i == axis else dim for i, dim in enumerate(x.dims)], [1] * x.rank)


def _one(node: OnnxNode, x: Tensor, index: int) -> Tensor:
    """Entry `index` of the first axis."""
    return reshape(node, _part(node, x, 0, index, 1), x.dims[1:])


def _check(node: OnnxNode, gates: int) -> tuple[int, Dim, int]:
    """Steps, batch and hidden size; refuses what the unrolled form does not cover."""
    x, r = node[0], node[2]
    if node.has("clip") or node.integer("layout") or node.integer("input_forget") or node.get(4) is not None:
        raise NoNativeLowering("recurrent-option", "clip, layout, input_forget or sequence_lens")
    defaults = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}[node.op_type]
    chosen = [name.capitalize() for name in node.texts("activations")]
    if chosen and chosen != defaults * (len(chosen) // len(defaults)):
        raise NoNativeLowering("recurrent-option", f"activations {chosen}")
    steps = x.dims[0]
    if not isinstance(steps, int) or steps > MAX_STEPS or not is_float(x.dtype):
        raise NoNativeLowering("recurrent-steps", f"{steps} steps")
    del gates
    return steps, x.dims[1], static_size(r.dims[2])


def _directions(node: OnnxNode) -> list[bool]:
    """For each direction whether it runs backwards."""
    return {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[node.text("direction", "forward")]


def _project(node: OnnxNode, x: Tensor, w: Tensor, bias: Tensor | None) -> Tensor:
    """`x[t, b, :] @ w' + bias` for all steps at once: `[steps, batch, gates * hidden]`."""
    steps, batch, features = x.dims
    product = contract(node, (x, [0, 1, 3]), (w, [2, 3]), [steps, batch, w.dims[0], features], [0, 1, 2], x.dtype)
    if bias is None:
        return product
    return mapped(node, [(product, [0, 1, 2]), (bias, [2])], product.dims, x.dtype, lambda b, e, c: b.op(arith.AddfOp, e, c))


def _times(node: OnnxNode, h: Tensor, r: Tensor) -> Tensor:
    """`h @ r'`."""
    return contract(node, (h, [0, 2]), (r, [1, 2]), [h.dims[0], r.dims[0], h.dims[1]], [0, 1], h.dtype)


def _run(node: OnnxNode, gates: int, states: int, cell: Cell, biases: Callable[[Tensor], tuple[Tensor, Tensor | None]]) -> list[Tensor]:
    """All directions; answers Y `[steps, directions, batch, hidden]` and the last states `[directions, batch, hidden]`."""
    steps, batch, hidden = _check(node, gates)
    x, every, last = node[0], [], []
    for direction, backwards in enumerate(_directions(node)):
        given = node.get(3)
        both = _one(node, given, direction) if given is not None else None
        first, second = biases(both) if both is not None else (None, None)
        projected = _project(node, x, _one(node, node[1], direction), first)
        step = Step(node, _one(node, node[2], direction), second, hidden)
        state = [_initial(node, node.get(5 + i), direction, batch, hidden, x.dtype) for i in range(states)]
        outputs: list[Tensor] = []
        for t in reversed(range(steps)) if backwards else range(steps):
            state = list(cell(step, _one(node, projected, t), state))
            outputs.append(reshape(node, state[0], (1, 1, batch, hidden)))
        every.append(_concat(node, outputs[::-1] if backwards else outputs, 0))
        last.append([reshape(node, s, (1, batch, hidden)) for s in state])
    return [_concat(node, every, 1), *(_concat(node, [states_[i] for states_ in last], 0) for i in range(states))]


def _initial(node: OnnxNode, given: Tensor | None, direction: int, batch: Dim, hidden: int, dtype: np.dtype[np.generic]) -> Tensor:
    if given is not None:
        return _one(node, given, direction)
    return broadcast_to(known(np.zeros((), dtype)), (batch, hidden))


def _concat(node: OnnxNode, parts: Sequence[Tensor], axis: int) -> Tensor:
    if len(parts) == 1:
        return parts[0]
    total = sum(static_size(t.dims[axis]) for t in parts)
    dims = (*parts[0].dims[:axis], total, *parts[0].dims[axis + 1 :])
    type_ = tensor_type(mlir_element(parts[0].dtype), dims)
    op = tensor.ConcatOp.build(operands=[[node.ssa(t) for t in parts]], result_types=[type_], properties={"dim": IntegerAttr(axis, i64)})
    return result(node.emit.add(op).result, dims, parts[0].dtype)


def _sum_of_biases(both: Tensor) -> tuple[Tensor, None]:
    array = both.numbers()
    half = array.shape[0] // 2
    return known(array[:half] + array[half:], both.dtype, both.name), None


@onnx_op("LSTM", since=7)
def lstm(node: OnnxNode) -> list[Tensor]:
    """Gates i, o, f, c: c' = f * c + i * g; h' = o * tanh(c')."""
    if node.get(7) is not None:
        raise NoNativeLowering("recurrent-option", "peepholes")

    def cell(step: Step, projected: Tensor, state: Sequence[Tensor]) -> Sequence[Tensor]:
        h, c = state
        size, dtype = step.hidden, h.dtype
        total = elementwise(step.node, [projected, _times(step.node, h, step.r)], dtype, lambda b, x, y: b.op(arith.AddfOp, x, y))
        i, o, f, g = (_part(step.node, total, 1, k * size, size) for k in range(4))

        def memory(b: Body, fe: SSAValue, ce: SSAValue, ie: SSAValue, ge: SSAValue) -> SSAValue:
            kept = b.op(arith.MulfOp, sigmoid(b, dtype, fe), ce)
            return b.op(arith.AddfOp, kept, b.op(arith.MulfOp, sigmoid(b, dtype, ie), b.op(math.TanhOp, ge)))

        new = elementwise(step.node, [f, c, i, g], dtype, memory)
        out = elementwise(step.node, [o, new], dtype, lambda b, oe, ce: b.op(arith.MulfOp, sigmoid(b, dtype, oe), b.op(math.TanhOp, ce)))
        return [out, new]

    return _run(node, 4, 2, cell, _sum_of_biases)


@onnx_op("RNN", since=7)
def rnn(node: OnnxNode) -> list[Tensor]:
    """h' = tanh(x W' + h R' + biases)."""

    def cell(step: Step, projected: Tensor, state: Sequence[Tensor]) -> Sequence[Tensor]:
        h = state[0]
        operands = [projected, _times(step.node, h, step.r)]
        return [elementwise(step.node, operands, h.dtype, lambda b, x, y: b.op(math.TanhOp, b.op(arith.AddfOp, x, y)))]

    return _run(node, 1, 1, cell, _sum_of_biases)


@onnx_op("GRU", since=7)
def gru(node: OnnxNode) -> list[Tensor]:
    """Gates z, r, h: h' = (1 - z) * tanh(candidate) + z * h; the reset gate acts before or after the recurrent product."""
    after = bool(node.integer("linear_before_reset"))
    hidden = static_size(node[2].dims[2])

    def biases(both: Tensor) -> tuple[Tensor, Tensor | None]:
        array = both.numbers()
        half = array.shape[0] // 2
        merged = array[:half].copy()
        merged[: 2 * hidden] += array[half : half + 2 * hidden]
        own = array[half + 2 * hidden :]
        if not after:
            merged[2 * hidden :] += own
        return known(merged, both.dtype, both.name), known(own.copy(), both.dtype, f"{both.name}_r") if after else None

    def cell(step: Step, projected: Tensor, state: Sequence[Tensor]) -> Sequence[Tensor]:
        return [_gru_cell(step, projected, state[0], after)]

    return _run(node, 3, 1, cell, biases)


def _gru_cell(step: Step, projected: Tensor, h: Tensor, after: bool) -> Tensor:
    node, size, dtype = step.node, step.hidden, h.dtype
    own = [_part(node, projected, 1, k * size, size) for k in range(3)]
    gates = _part(node, step.r, 0, 0, 2 * size)
    both = _times(node, h, gates)
    z, reset = (
        elementwise(node, [own[k], _part(node, both, 1, k * size, size)], dtype, lambda b, x, y: sigmoid(b, dtype, b.op(arith.AddfOp, x, y)))
        for k in range(2)
    )
    weights = _part(node, step.r, 0, 2 * size, size)
    if after:
        product = _times(node, h, weights)
        if step.recurrent_bias is not None:
            product = elementwise(node, [product, step.recurrent_bias], dtype, lambda b, x, y: b.op(arith.AddfOp, x, y))
        product = elementwise(node, [reset, product], dtype, lambda b, x, y: b.op(arith.MulfOp, x, y))
    else:
        product = _times(node, elementwise(node, [reset, h], dtype, lambda b, x, y: b.op(arith.MulfOp, x, y)), weights)
    one = mlir_element(dtype)

    def mix(b: Body, x: SSAValue, y: SSAValue, ze: SSAValue, he: SSAValue) -> SSAValue:
        candidate = b.op(math.TanhOp, b.op(arith.AddfOp, x, y))
        rest = b.op(arith.MulfOp, b.op(arith.SubfOp, b.constant(1.0, one), ze), candidate)
        return b.op(arith.AddfOp, rest, b.op(arith.MulfOp, ze, he))

    return elementwise(node, [own[2], product, z, h], dtype, mix)
