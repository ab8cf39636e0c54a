"""Recurrent layers over a known number of steps: the input's part of every gate is one contraction for all steps, then a small contraction for each
gate and an elementwise cell per step. The gates of a step have the cell's own loops, so a step is one dispatch where nothing else lies between.

What is not translated here runs on the host (`reference/recurrent.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import arith, math, tensor
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import is_float, mlir_element
from fuseline.frontends.onnx.emission import broadcast_to, contract, elementwise, mapped, reshape, result
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.elementwise import sigmoid
from fuseline.frontends.onnx.ops.shape import transposed
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.slices import slice_of
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known, static_size
from fuseline.ir.build import Body, tensor_type
from fuseline.ir.dim import Dim

MAX_STEPS = 256
"""More steps than this would be more code than they are worth unrolled; they run on the host."""

Activation = Callable[[Body, SSAValue], SSAValue]
Cell = Callable[["Step", Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]]
Biases = Callable[[OnnxNode, Tensor], tuple[Tensor, Tensor | None]]
_DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}


@dataclass(frozen=True)
class Step:
    """One direction's weights for one time step. `r` has one `[hidden, hidden]` for each gate; `recurrent_bias` what is added to the last one's
    product alone; `peepholes` three `[hidden]` vectors, or none; `activations` those of this direction."""

    node: OnnxNode
    r: tuple[Tensor, ...]
    recurrent_bias: Tensor | None
    hidden: int
    activations: tuple[Activation, ...]
    peepholes: tuple[Tensor, ...] = ()


# -- parts ------------------------------------------------------------------------------------------------------------------------


def _part(node: OnnxNode, x: Tensor, axis: int, offset: int, size: Dim) -> Tensor:
    """`size` elements along `axis` from `offset` on; constants are cut at once."""
    if x.array is not None:
        cut = tuple(slice(offset, offset + static_size(size)) if i == axis else slice(None) for i in range(x.rank))
        return known(np.ascontiguousarray(x.array[cut]), x.dtype, f"{x.name}_{offset}")
    offsets: list[Dim] = [offset if i == axis else 0 for i in range(x.rank)]
    return slice_of(node, x, offsets, [size if i == axis else dim for i, dim in enumerate(x.dims)], [1] * x.rank)


def _gates(node: OnnxNode, x: Tensor, axis: int, hidden: int) -> tuple[Tensor, ...]:
    """The part of each gate along `axis`."""
    return tuple(_part(node, x, axis, k * hidden, hidden) for k in range(static_size(x.dims[axis]) // hidden))


def _one(node: OnnxNode, x: Tensor, index: int) -> Tensor:
    """Entry `index` of the first axis."""
    return reshape(node, _part(node, x, 0, index, 1), x.dims[1:])


def _concat(node: OnnxNode, parts: Sequence[Tensor], axis: int) -> Tensor:
    if len(parts) == 1:
        return parts[0]
    if all(t.array is not None for t in parts):
        return known(np.concatenate([t.numbers() for t in parts], axis=axis), parts[0].dtype)
    total = sum(static_size(t.dims[axis]) for t in parts)
    dims = (*parts[0].dims[:axis], total, *parts[0].dims[axis + 1 :])
    type_ = tensor_type(mlir_element(parts[0].dtype), dims)
    op = tensor.ConcatOp.build(operands=[[node.ssa(t) for t in parts]], result_types=[type_], properties={"dim": IntegerAttr(axis, i64)})
    return result(node.emit.add(op).result, dims, parts[0].dtype)


def _sum(node: OnnxNode, x: Tensor, y: Tensor) -> Tensor:
    if x.is_constant and y.is_constant and x.dims == y.dims:
        return known(x.numbers() + y.numbers(), x.dtype, x.name)
    return elementwise(node, [x, y], x.dtype, lambda b, p, q: b.op(arith.AddfOp, p, q))


# -- options ----------------------------------------------------------------------------------------------------------------------


def _directions(node: OnnxNode) -> list[bool]:
    """For each direction whether it runs backwards."""
    found = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}.get(node.text("direction", "forward"))
    if found is None:
        raise FuselineError("E0107", f"direction {node.text('direction')!r} is unknown", hint="forward, reverse or bidirectional")
    return found


def _activations(node: OnnxNode, direction: int) -> tuple[Activation, ...]:
    """The activations of one direction, each of its clipped input."""
    defaults = _DEFAULTS[node.op_type]
    names = [name.capitalize() for name in node.texts("activations")] or list(defaults) * (direction + 1)
    chosen = names[direction * len(defaults) : (direction + 1) * len(defaults)]
    unknown = [name for name in chosen if name not in ("Sigmoid", "Tanh", "Relu")]
    if unknown or len(chosen) != len(defaults) or node.integer("input_forget"):
        what = f"activation {unknown[0]}" if unknown else "input_forget or a missing activation"
        raise NoNativeLowering("activation", what)
    dtype, clip = node[0].dtype, node.number("clip") if node.has("clip") else None
    return tuple(_clipped_activation(name, dtype, clip) for name in chosen)


def _clipped_activation(name: str, dtype: np.dtype[Any], clip: float | None) -> Activation:
    element = mlir_element(dtype)

    def apply(b: Body, x: SSAValue) -> SSAValue:
        if clip is not None:
            x = b.op(arith.MinimumfOp, b.op(arith.MaximumfOp, x, b.constant(-clip, element)), b.constant(clip, element))
        if name == "Sigmoid":
            return sigmoid(b, dtype, x)
        return b.op(math.TanhOp, x) if name == "Tanh" else b.op(arith.MaximumfOp, x, b.constant(0.0, element))

    return apply


def _check_steps(x: Tensor) -> int:
    steps = x.dims[0]
    if not isinstance(steps, int) or steps > MAX_STEPS or not is_float(x.dtype):
        raise NoNativeLowering("recurrent-steps", f"{steps} steps")
    return steps


# -- the layer --------------------------------------------------------------------------------------------------------------------


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


def _run(node: OnnxNode, states: int, cell: Cell, biases: Biases) -> list[Tensor]:
    """All directions; answers Y `[steps, directions, batch, hidden]` and the last states `[directions, batch, hidden]`.

    With layout 1 the batch comes first in the input, the initial states and all answers.
    """
    batch_first = bool(node.integer("layout"))
    x = transposed(node, node[0], [1, 0, 2]) if batch_first else node[0]
    _check_steps(x)
    every: list[Tensor] = []
    last: list[list[Tensor]] = []
    for direction, backwards in enumerate(_directions(node)):
        outputs, state = _run_direction(node, x, direction, backwards, states, cell, biases)
        every.append(_concat(node, outputs, 0))
        last.append([reshape(node, t, (1, *t.dims)) for t in state])
    out = [_concat(node, every, 1), *(_concat(node, [states_[i] for states_ in last], 0) for i in range(states))]
    if not batch_first:
        return out
    return [transposed(node, out[0], [2, 0, 1, 3]), *(transposed(node, t, [1, 0, 2]) for t in out[1:])]


def _run_direction(
    node: OnnxNode, x: Tensor, direction: int, backwards: bool, states: int, cell: Cell, biases: Biases
) -> tuple[list[Tensor], list[Tensor]]:
    """The outputs `[1, 1, batch, hidden]` of all steps in order, and the last state."""
    steps, batch, hidden = _check_steps(x), x.dims[1], static_size(node[2].dims[2])
    given, peepholes = node.get(3), node.get(7)
    first, second = biases(node, _one(node, given, direction)) if given is not None else (None, None)
    own = _one(node, peepholes, direction) if peepholes is not None else None
    parts = tuple(_part(node, own, 0, k * hidden, hidden) for k in range(3)) if own is not None else ()
    step = Step(node, _gates(node, _one(node, node[2], direction), 0, hidden), second, hidden, _activations(node, direction), parts)
    projected = _project(node, x, _one(node, node[1], direction), first)
    state = [_initial(node, node.get(5 + i), direction, batch, hidden, x.dtype) for i in range(states)]
    outputs: list[Tensor] = []
    for t in reversed(range(steps)) if backwards else range(steps):
        new = list(cell(step, _gates(node, _one(node, projected, t), 1, hidden), state))
        shown, state = _masked(node, t, steps, new, state)
        outputs.append(reshape(node, shown, (1, 1, batch, hidden)))
    return outputs[::-1] if backwards else outputs, state


def _masked(node: OnnxNode, t: int, steps: int, new: list[Tensor], old: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """What step `t` shows and keeps: beyond its length a sequence shows zeros and keeps its state."""
    lengths = node.get(4)
    if lengths is None or (lengths.is_constant and bool((lengths.numbers() >= steps).all())):
        return new[0], new
    dtype, index = new[0].dtype, lengths.dtype

    def chosen(x: Tensor, other: Tensor) -> Tensor:
        def body(b: Body, length: SSAValue, p: SSAValue, q: SSAValue) -> SSAValue:
            return s.select(b, s.compare(b, index, "gt", length, b.constant(t, mlir_element(index))), p, q)

        return mapped(node, [(lengths, [0]), (x, [0, 1]), (other, [0, 1])], x.dims, dtype, body)

    zeros = broadcast_to(known(np.zeros((), dtype)), new[0].dims)
    return chosen(new[0], zeros), [chosen(x, other) for x, other in zip(new, old, strict=True)]


def _initial(node: OnnxNode, given: Tensor | None, direction: int, batch: Dim, hidden: int, dtype: np.dtype[Any]) -> Tensor:
    if given is None:
        return broadcast_to(known(np.zeros((), dtype)), (batch, hidden))
    if not node.integer("layout"):
        return _one(node, given, direction)
    return reshape(node, _part(node, given, 1, direction, 1), (batch, hidden))


def _sum_of_biases(node: OnnxNode, both: Tensor) -> tuple[Tensor, None]:
    half = static_size(both.dims[0]) // 2
    return _sum(node, _part(node, both, 0, 0, half), _part(node, both, 0, half, half)), None


# -- cells ------------------------------------------------------------------------------------------------------------------------


@onnx_op("LSTM", since=7)
def lstm(node: OnnxNode) -> list[Tensor]:
    """Gates i, o, f, c: c' = f * c + i * g; h' = o * tanh(c'). Peepholes let i, f see c and o see c'."""
    return _run(node, 2, _lstm_cell, _sum_of_biases)


def _lstm_cell(step: Step, projected: Sequence[Tensor], state: Sequence[Tensor]) -> Sequence[Tensor]:
    h, c = state
    node, dtype = step.node, h.dtype
    sigma, squash, show = step.activations
    i, o, f, g = (_sum(node, own, _times(node, h, r)) for own, r in zip(projected, step.r, strict=True))
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


@onnx_op("RNN", since=7)
def rnn(node: OnnxNode) -> list[Tensor]:
    """h' = tanh(x W' + h R' + biases)."""
    return _run(node, 1, _rnn_cell, _sum_of_biases)


def _rnn_cell(step: Step, projected: Sequence[Tensor], state: Sequence[Tensor]) -> Sequence[Tensor]:
    h, squash = state[0], step.activations[0]
    operands = [projected[0], _times(step.node, h, step.r[0])]
    return [elementwise(step.node, operands, h.dtype, lambda b, x, y: squash(b, b.op(arith.AddfOp, x, y)))]


@onnx_op("GRU", since=7)
def gru(node: OnnxNode) -> list[Tensor]:
    """Gates z, r, h: h' = (1 - z) * tanh(candidate) + z * h; the reset gate acts before or after the recurrent product."""
    after = bool(node.integer("linear_before_reset"))
    hidden = static_size(node[2].dims[2])

    def biases(node: OnnxNode, both: Tensor) -> tuple[Tensor, Tensor | None]:
        if not after:
            return _sum_of_biases(node, both)
        gates = _sum(node, _part(node, both, 0, 0, 2 * hidden), _part(node, both, 0, 3 * hidden, 2 * hidden))
        merged = _concat(node, [gates, _part(node, both, 0, 2 * hidden, hidden)], 0)
        return merged, _part(node, both, 0, 5 * hidden, hidden)

    def cell(step: Step, projected: Sequence[Tensor], state: Sequence[Tensor]) -> Sequence[Tensor]:
        return [_gru_cell(step, projected, state[0], after)]

    return _run(node, 1, cell, biases)


def _gru_cell(step: Step, own: Sequence[Tensor], h: Tensor, after: bool) -> Tensor:
    node, dtype = step.node, h.dtype
    sigma, squash = step.activations
    weights = step.r[2]
    z, reset = (elementwise(node, [own[k], _times(node, h, step.r[k])], dtype, lambda b, x, y: sigma(b, b.op(arith.AddfOp, x, y))) for k in range(2))
    if after:
        product = _times(node, h, weights)
        if step.recurrent_bias is not None:
            product = elementwise(node, [product, step.recurrent_bias], dtype, lambda b, x, y: b.op(arith.AddfOp, x, y))
        product = elementwise(node, [reset, product], dtype, lambda b, x, y: b.op(arith.MulfOp, x, y))
    else:
        product = _times(node, elementwise(node, [reset, h], dtype, lambda b, x, y: b.op(arith.MulfOp, x, y)), weights)
    one = mlir_element(dtype)

    def mix(b: Body, x: SSAValue, y: SSAValue, ze: SSAValue, he: SSAValue) -> SSAValue:
        candidate = squash(b, b.op(arith.AddfOp, x, y))
        rest = b.op(arith.MulfOp, b.op(arith.SubfOp, b.constant(1.0, one), ze), candidate)
        return b.op(arith.AddfOp, rest, b.op(arith.MulfOp, ze, he))

    return elementwise(node, [own[2], product, z, h], dtype, mix)
