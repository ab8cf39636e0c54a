"""Recurrent layers: the input's part of every gate is one contraction for all steps, then a small contraction for each gate and an elementwise
cell per step. The gates of a step have the cell's own loops, so a step is one dispatch where nothing else lies between.

The steps are a loop of the program (`loops.py`), all directions side by side in it. What is not translated here runs on the host
(`reference/recurrent.py`).
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
from fuseline.frontends.onnx.emission import BOOL, broadcast_to, contract, elementwise, mapped, reshape, result
from fuseline.frontends.onnx.loops import CountedLoop, Rows, Stack, StackRow, StepInputs, StepResult
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.elementwise import sigmoid
from fuseline.frontends.onnx.ops.shape import transposed
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.slices import slice_of
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known, static_size
from fuseline.ir.build import Body, tensor_type
from fuseline.ir.dim import Dim

UNROLLED_STEPS = 1
"""Up to this many steps are written out: a single one needs no loop. More are a loop: an iteration costs no more than a step written out."""

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


@dataclass(frozen=True)
class _Direction:
    """One direction of a layer: what is the same in every step, the input's part of the gates `[steps, batch, gates * hidden]`, the first states.

    `weights` are the recurrent weights of each gate, then what else a step reads: a bias where `has_bias`, and the peepholes.
    """

    backwards: bool
    weights: tuple[Tensor, ...]
    gates: int
    has_bias: bool
    activations: tuple[Activation, ...]
    projected: Tensor
    states: tuple[Tensor, ...]

    def step(self, node: OnnxNode, weights: Sequence[Tensor], hidden: int) -> Step:
        """The step with `weights` as `node` sees them."""
        others = list(weights[self.gates :])
        bias = others.pop(0) if self.has_bias else None
        return Step(node, tuple(weights[: self.gates]), bias, hidden, self.activations, tuple(others))


def _run(node: OnnxNode, states: int, cell: Cell, biases: Biases) -> list[Tensor]:
    """All directions; answers Y `[steps, directions, batch, hidden]` and the last states `[directions, batch, hidden]`.

    With layout 1 the batch comes first in the input, the initial states and all answers.
    """
    batch_first = bool(node.integer("layout"))
    x = transposed(node, node[0], [1, 0, 2]) if batch_first else node[0]
    if not is_float(x.dtype):
        raise NoNativeLowering("element-type", f"{x.dtype}")
    directions = [_direction(node, x, number, backwards, states, biases) for number, backwards in enumerate(_directions(node))]
    layer = _Layer(node, cell, directions, _active(node, x.dims[0], x.dims[1]), static_size(node[2].dims[2]))
    steps = x.dims[0]
    every, last = layer.unrolled(steps) if isinstance(steps, int) and steps <= UNROLLED_STEPS else layer.loop(steps)
    out = [every, *(_concat(node, [reshape(node, of[i], (1, *of[i].dims)) for of in last], 0) for i in range(states))]
    if not batch_first:
        return out
    return [transposed(node, out[0], [2, 0, 1, 3]), *(transposed(node, t, [1, 0, 2]) for t in out[1:])]


def _direction(node: OnnxNode, x: Tensor, number: int, backwards: bool, states: int, biases: Biases) -> _Direction:
    batch, hidden = x.dims[1], static_size(node[2].dims[2])
    given, peepholes = node.get(3), node.get(7)
    first, second = biases(node, _one(node, given, number)) if given is not None else (None, None)
    own = _one(node, peepholes, number) if peepholes is not None else None
    parts = [_part(node, own, 0, k * hidden, hidden) for k in range(3)] if own is not None else []
    gates = _gates(node, _one(node, node[2], number), 0, hidden)
    weights = (*gates, *([second] if second is not None else []), *parts)
    projected = _project(node, x, _one(node, node[1], number), first)
    initial = tuple(_initial(node, node.get(5 + i), number, batch, hidden, x.dtype) for i in range(states))
    return _Direction(backwards, weights, len(gates), second is not None, _activations(node, number), projected, initial)


def _active(node: OnnxNode, steps: Dim, batch: Dim) -> Tensor | None:
    """For each step and sequence `[steps, batch]` whether the sequence is that long; None where all are."""
    lengths = node.get(4)
    if lengths is None:
        return None
    if lengths.is_constant and isinstance(steps, int):
        longer = lengths.numbers().reshape(1, -1) > np.arange(steps).reshape(-1, 1)
        return None if longer.all() else known(np.broadcast_to(longer, (steps, static_size(batch))).copy())
    index = lengths.dtype

    def body(b: Body, length: SSAValue) -> SSAValue:
        step = b.op(arith.IndexCastOp, s.loop_index(b, 0), mlir_element(index))
        return s.compare(b, index, "gt", length, step)

    return mapped(node, [(lengths, [1])], (steps, batch), BOOL, body)


@dataclass(frozen=True)
class _Layer:
    """A layer of `directions`; `active` says which sequences each step belongs to, None: all."""

    node: OnnxNode
    cell: Cell
    directions: Sequence[_Direction]
    active: Tensor | None
    hidden: int

    def loop(self, steps: Dim) -> tuple[Tensor, list[list[Tensor]]]:
        """Y and the last states of each direction, by a loop over the steps."""
        first = self.directions[0]
        batch, dtype, count = first.projected.dims[1], first.projected.dtype, len(first.states)
        rows = [Rows(of.projected, of.backwards) for of in self.directions]
        rows += [Rows(self.active, of.backwards) for of in self.directions] if self.active is not None else []
        wholes, states = ([t for of in self.directions for t in part(of)] for part in (lambda of: of.weights, lambda of: of.states))
        stack = Stack((len(self.directions), batch, self.hidden), dtype)
        stacks, last = CountedLoop(steps, rows, wholes, states, [stack]).emit(self.node, self._step)
        return stacks[0], [last[i * count : (i + 1) * count] for i in range(len(self.directions))]

    def _step(self, node: OnnxNode, inputs: StepInputs) -> list[StepResult]:
        results: list[StepResult] = []
        wholes, states = iter(inputs.wholes), iter(inputs.states)
        for number, of in enumerate(self.directions):
            step = of.step(node, [next(wholes) for _ in of.weights], self.hidden)
            old = [next(states) for _ in of.states]
            active = inputs.rows[len(self.directions) + number] if self.active is not None else None
            shown, new = self._advance(step, inputs.rows[number], old, active)
            row, first = StackRow(0, (number,), of.backwards), number * len(old)
            if shown is new[0]:
                results.append(StepResult(shown, first, row))
            else:
                results += [StepResult(shown, row=row), StepResult(new[0], first)]
            results += [StepResult(t, first + i) for i, t in enumerate(new) if i]
        return results

    def unrolled(self, steps: int) -> tuple[Tensor, list[list[Tensor]]]:
        """Y and the last states of each direction, every step written out."""
        every: list[Tensor] = []
        last: list[list[Tensor]] = []
        for of in self.directions:
            outputs, state = self._unrolled_direction(of, steps)
            every.append(_concat(self.node, outputs, 0) if outputs else _nothing(self.node, of.projected, self.hidden))
            last.append(state)
        return _concat(self.node, every, 1), last

    def _unrolled_direction(self, of: _Direction, steps: int) -> tuple[list[Tensor], list[Tensor]]:
        """The outputs `[1, 1, batch, hidden]` of all steps in order, and the last states."""
        node, state = self.node, list(of.states)
        step, outputs = of.step(node, of.weights, self.hidden), list[Tensor]()
        for t in reversed(range(steps)) if of.backwards else range(steps):
            active = _one(node, self.active, t) if self.active is not None else None
            shown, state = self._advance(step, _one(node, of.projected, t), state, active)
            outputs.append(reshape(node, shown, (1, 1, *shown.dims)))
        return outputs[::-1] if of.backwards else outputs, state

    def _advance(self, step: Step, projected: Tensor, state: list[Tensor], active: Tensor | None) -> tuple[Tensor, list[Tensor]]:
        """What a step shows and keeps: beyond its length a sequence shows zeros and keeps its state."""
        new = list(self.cell(step, _gates(step.node, projected, 1, self.hidden), state))
        if active is None:
            return new[0], new
        zeros = broadcast_to(known(np.zeros((), new[0].dtype)), new[0].dims)
        shown = _chosen(step.node, active, new[0], zeros)
        return shown, [_chosen(step.node, active, x, old) for x, old in zip(new, state, strict=True)]


def _chosen(node: OnnxNode, active: Tensor, x: Tensor, other: Tensor) -> Tensor:
    """`x` for sequences that are `active`, else `other`."""
    return mapped(node, [(active, [0]), (x, [0, 1]), (other, [0, 1])], x.dims, x.dtype, s.select)


def _nothing(node: OnnxNode, projected: Tensor, hidden: int) -> Tensor:
    """The outputs of no step at all."""
    dims = (0, 1, projected.dims[1], hidden)
    return result(node.program.empty(dims, projected.dtype, node.emit), dims, projected.dtype)


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
