"""A recurrent layer around a cell: all directions, sequences of different lengths, first states; the steps as a loop of
the program.

The input's part of every gate is one contraction for all steps; what is left of a step is the cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import is_float, mlir_element
from fuseline.frontends.onnx.emission import BOOL, broadcast_to, contract, mapped, reshape, result
from fuseline.frontends.onnx.loops import CountedLoop, Rows, Stack, StackRow, StepInputs, StepResult
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.activations import sigmoid
from fuseline.frontends.onnx.ops.recurrent_sizes import check_sizes
from fuseline.frontends.onnx.ops.recurrent_slices import concat, entry, gates_of, section
from fuseline.frontends.onnx.ops.shape import transposed
from fuseline.frontends.onnx.ops.slices import slice_of
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known, static_size
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim

UNROLLED_STEPS = 1
"""Up to this many steps are written out: a single one needs no loop. More are a loop: an iteration costs no more than a
step written out."""

Activation = Callable[[Body, SSAValue], SSAValue]
Cell = Callable[["Step", Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]]
Biases = Callable[[OnnxNode, Tensor], tuple[Tensor, Tensor | None]]
_LSTM = ("Sigmoid", "Tanh", "Tanh")
_DEFAULTS = {"LSTM": _LSTM, "DynamicQuantizeLSTM": _LSTM, "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}


@dataclass(frozen=True)
class Step:
    """One direction's weights for one time step. `r` has one `[hidden, hidden]` for each gate; `recurrent_bias` what is
    added to the last one's product alone; `peepholes` three `[hidden]` vectors, or none; `activations` those of this
    direction."""

    node: OnnxNode
    r: tuple[Tensor, ...]
    recurrent_bias: Tensor | None
    hidden: int
    activations: tuple[Activation, ...]
    peepholes: tuple[Tensor, ...] = ()


def _directions(node: OnnxNode) -> list[bool]:
    """For each direction whether it runs backwards."""
    found = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}.get(
        node.text("direction", "forward")
    )
    if found is None:
        raise FuselineError(
            "E0107", f"direction {node.text('direction')!r} is unknown", hint="forward, reverse or bidirectional"
        )
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


def _project(node: OnnxNode, x: Tensor, w: Tensor, bias: Tensor | None) -> Tensor:
    """`x[t, b, :] @ w' + bias` for all steps at once: `[steps, batch, gates * hidden]`."""
    steps, batch, features = x.dims
    product = contract(node, (x, [0, 1, 3]), (w, [2, 3]), [steps, batch, w.dims[0], features], [0, 1, 2], x.dtype)
    if bias is None:
        return product
    return mapped(
        node, [(product, [0, 1, 2]), (bias, [2])], product.dims, x.dtype, lambda b, e, c: b.op(arith.AddfOp, e, c)
    )


@dataclass(frozen=True)
class _Direction:
    """One direction of a layer: what is the same in every step, the input's part of the gates `[steps, batch, gates *
    hidden]`, the first states.

    `weights` are the recurrent weights of each gate, then what else a step reads: a bias where `has_bias`, and the
    peepholes.
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


def run_layer(node: OnnxNode, states: int, cell: Cell, biases: Biases) -> list[Tensor]:
    """All directions; answers Y `[steps, directions, batch, hidden]` and the last states `[directions, batch, hidden]`.

    With layout 1 the batch comes first in the input, the initial states and all answers. Raises FuselineError: E0107
    for an unknown direction."""
    batch_first = bool(node.integer("layout"))
    x = transposed(node, node[0], [1, 0, 2]) if batch_first else node[0]
    if not is_float(x.dtype):
        raise NoNativeLowering("element-type", f"{x.dtype}")
    check_sizes(node, x, len(_directions(node)))
    directions = [
        _direction(node, x, number, backwards, states, biases) for number, backwards in enumerate(_directions(node))
    ]
    layer = _Layer(node, cell, directions, _active(node, x.dims[0], x.dims[1]), static_size(node[2].dims[2]))
    steps = x.dims[0]
    every, last = layer.unrolled(steps) if isinstance(steps, int) and steps <= UNROLLED_STEPS else layer.loop(steps)
    out = [every, *(concat(node, [reshape(node, of[i], (1, *of[i].dims)) for of in last], 0) for i in range(states))]
    if not batch_first:
        return out
    return [transposed(node, out[0], [2, 0, 1, 3]), *(transposed(node, t, [1, 0, 2]) for t in out[1:])]


def _direction(node: OnnxNode, x: Tensor, number: int, backwards: bool, states: int, biases: Biases) -> _Direction:
    batch, hidden = x.dims[1], static_size(node[2].dims[2])
    given, peepholes = node.get(3), node.get(7)
    first, second = biases(node, entry(node, given, number)) if given is not None else (None, None)
    own = entry(node, peepholes, number) if peepholes is not None else None
    peepholes = [section(node, own, 0, k * hidden, hidden) for k in range(3)] if own is not None else []
    gates = gates_of(node, entry(node, node[2], number), 0, hidden)
    weights = (*gates, *([second] if second is not None else []), *peepholes)
    projected = _project(node, x, entry(node, node[1], number), first)
    initial = tuple(_initial(node, node.get(5 + i), number, batch, hidden, x.dtype) for i in range(states))
    return _Direction(
        backwards, weights, len(gates), second is not None, _activations(node, number), projected, initial
    )


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
        wholes, states = (
            [t for of in self.directions for t in kept(of)] for kept in (lambda of: of.weights, lambda of: of.states)
        )
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
            every.append(concat(self.node, outputs, 0) if outputs else _nothing(self.node, of.projected, self.hidden))
            last.append(state)
        return concat(self.node, every, 1), last

    def _unrolled_direction(self, of: _Direction, steps: int) -> tuple[list[Tensor], list[Tensor]]:
        """The outputs `[1, 1, batch, hidden]` of all steps in order, and the last states."""
        node, state = self.node, list(of.states)
        step, outputs = of.step(node, of.weights, self.hidden), list[Tensor]()
        for t in reversed(range(steps)) if of.backwards else range(steps):
            active = entry(node, self.active, t) if self.active is not None else None
            shown, state = self._advance(step, entry(node, of.projected, t), state, active)
            outputs.append(reshape(node, shown, (1, 1, *shown.dims)))
        return outputs[::-1] if of.backwards else outputs, state

    def _advance(
        self, step: Step, projected: Tensor, state: list[Tensor], active: Tensor | None
    ) -> tuple[Tensor, list[Tensor]]:
        """What a step shows and keeps: beyond its length a sequence shows zeros and keeps its state."""
        new = list(self.cell(step, gates_of(step.node, projected, 1, self.hidden), state))
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


def _initial(
    node: OnnxNode, given: Tensor | None, direction: int, batch: Dim, hidden: int, dtype: np.dtype[Any]
) -> Tensor:
    if given is None:
        return broadcast_to(known(np.zeros((), dtype)), (batch, hidden))
    if not node.integer("layout"):
        return _of_batch(node, entry(node, given, direction), batch)
    return _of_batch(node, reshape(node, section(node, given, 1, direction, 1), (given.dims[0], hidden)), batch)


def _of_batch(node: OnnxNode, t: Tensor, batch: Dim) -> Tensor:
    """`t`, `[batch, hidden]`, whose first size must be `batch` though it may have another name. Raises FuselineError
    (E0107) where it never is."""
    if t.dims[0] == batch:
        return t
    node.program.require_equal(t.dims[0], batch, node.label)
    if isinstance(batch, int) or isinstance(t.dims[0], int):
        return slice_of(node, t, (0, 0), (batch, t.dims[1]), (1, 1))
    return result(node.ssa(t), (batch, t.dims[1]), t.dtype)
