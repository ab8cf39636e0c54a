"""RNN, GRU and LSTM with everything the standard has: onnx.reference leaves out clip, lengths, coupled gates and most
activations.

A layer runs step by step, each direction by itself. Beyond its length a sequence shows zeros and keeps its state, so
that the backward direction starts at its last element.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx.reference.op_run import OpRun

from fuseline.frontends.onnx.reference.corrections import Node

Function = Callable[[Any], Any]


class _Shape(NamedTuple):
    """A parametrised activation: its function of x, alpha and beta, and the defaults of those it has."""

    function: Callable[[Any, float, float], Any]
    alpha: float | None = None
    beta: float | None = None


_ACTIVATIONS: dict[str, _Shape] = {
    "sigmoid": _Shape(lambda x, a, b: 1 / (1 + np.exp(-x))),
    "tanh": _Shape(lambda x, a, b: np.tanh(x)),
    "relu": _Shape(lambda x, a, b: np.maximum(x, 0)),
    "affine": _Shape(lambda x, a, b: a * x + b, 1.0, 0.0),
    "leakyrelu": _Shape(lambda x, a, b: np.where(x < 0, a * x, x), 0.01),
    "thresholdedrelu": _Shape(lambda x, a, b: np.where(x > a, x, 0), 1.0),
    "scaledtanh": _Shape(lambda x, a, b: a * np.tanh(b * x), 1.0, 1.0),
    "hardsigmoid": _Shape(lambda x, a, b: np.clip(a * x + b, 0, 1), 0.2, 0.5),
    "elu": _Shape(lambda x, a, b: np.where(x < 0, a * np.expm1(x), x), 1.0),
    "softsign": _Shape(lambda x, a, b: x / (1 + np.abs(x))),
    "softplus": _Shape(lambda x, a, b: np.logaddexp(x, 0)),
}


class _Weights(NamedTuple):
    """One direction: `w` [gates, hidden, input], `r` [gates, hidden, hidden], biases [gates, hidden], peepholes [3,
    hidden]."""

    w: Any
    r: Any
    input_bias: Any
    state_bias: Any
    peepholes: Any
    activations: Sequence[Function]
    options: dict[str, Any]


class _Layer(Node):
    """What the three layers share. `gates` and `states` count; `defaults` are the activations of one direction."""

    gates = 1
    states = 1
    defaults: tuple[str, ...] = ("Tanh",)

    @abstractmethod
    def step(self, p: _Weights, x: Any, state: Sequence[Any]) -> tuple[Any, ...]:
        """The new states (the first is what the layer shows) for one step's input [batch, input]."""

    def _run(
        self, x: Any, w: Any, r: Any, b: Any = None, lengths: Any = None, *rest: Any, **options: Any
    ) -> tuple[Any, ...]:
        first = bool(options.get("layout"))
        sequence = np.swapaxes(x, 0, 1) if first else x
        initial = [*rest[: self.states], *[None] * (self.states - len(rest))]
        peepholes = rest[self.states] if len(rest) > self.states else None
        functions = _activations(options, self.defaults, len(w))
        every: list[Any] = []
        last: list[list[Any]] = [[] for _ in range(self.states)]
        for k, backwards in enumerate(_directions(options)):
            weights = self._weights(
                w[k],
                r[k],
                None if b is None else b[k],
                None if peepholes is None else peepholes[k],
                functions[k],
                options,
            )
            start = [_initial(given, k, first, sequence.shape[1], r.shape[2]) for given in initial]
            shown, state = self._run_steps(weights, sequence, lengths, start, backwards)
            every.append(shown)
            for column, item in zip(last, state, strict=True):
                column.append(item)
        out = [np.stack(every, 1), *(np.stack(column) for column in last)]
        moved = [np.moveaxis(out[0], 2, 0), *(np.swapaxes(item, 0, 1) for item in out[1:])] if first else out
        return tuple(np.ascontiguousarray(item).astype(x.dtype) for item in moved)

    def _weights(
        self, w: Any, r: Any, b: Any, peepholes: Any, functions: Sequence[Function], options: dict[str, Any]
    ) -> _Weights:
        hidden = r.shape[-1]
        biases = np.zeros((2, self.gates, hidden)) if b is None else _wide(b).reshape(2, self.gates, hidden)
        sights = np.zeros((3, hidden)) if peepholes is None else _wide(peepholes).reshape(3, hidden)
        matrices = (_wide(w).reshape(self.gates, hidden, -1), _wide(r).reshape(self.gates, hidden, hidden))
        return _Weights(*matrices, biases[0], biases[1], sights, functions, options)

    def _run_steps(
        self, p: _Weights, x: Any, lengths: Any, state: Sequence[Any], backwards: bool
    ) -> tuple[Any, list[Any]]:
        """What every step shows [steps, batch, hidden], and the last states."""
        steps, batch = x.shape[:2]
        shown = np.zeros((steps, batch, p.r.shape[-1]))
        kept = list(state)
        for t in reversed(range(steps)) if backwards else range(steps):
            inside = np.ones((batch, 1), bool) if lengths is None else (np.asarray(lengths) > t)[:, None]
            new = self.step(p, _wide(x[t]), kept)
            shown[t] = np.where(inside, new[0], 0)
            kept = [np.where(inside, item, old) for item, old in zip(new, kept, strict=True)]
        return shown, kept


def _wide(x: Any) -> Any:
    return np.asarray(x, np.float64)


def _directions(options: dict[str, Any]) -> list[bool]:
    return {"reverse": [True], "bidirectional": [False, True]}.get(options.get("direction") or "forward", [False])


def _initial(given: Any, direction: int, first: bool, batch: int, hidden: int) -> Any:
    if given is None:
        return np.zeros((batch, hidden))
    return _wide(given[:, direction] if first else given[direction])


def _activations(options: dict[str, Any], defaults: Sequence[str], directions: int) -> list[list[Function]]:
    """The functions of each direction; alphas and betas go to the activations that have them, in order."""
    names = [name.lower() for name in options.get("activations") or ()] or [
        name.lower() for name in defaults
    ] * directions
    alphas, betas = iter(options.get("activation_alpha") or ()), iter(options.get("activation_beta") or ())
    functions = [_activation(_ACTIVATIONS[name], alphas, betas, options.get("clip")) for name in names]
    return [functions[k * len(defaults) : (k + 1) * len(defaults)] for k in range(directions)]


def _activation(shape: _Shape, alphas: Iterator[float], betas: Iterator[float], clip: float | None) -> Function:
    alpha = 0.0 if shape.alpha is None else next(alphas, shape.alpha)
    beta = 0.0 if shape.beta is None else next(betas, shape.beta)

    def function(x: Any) -> Any:
        return shape.function(np.clip(x, -clip, clip) if clip else x, alpha, beta)

    return function


class RNN(_Layer):
    """h' = f(W x + R h + b)."""

    def step(self, p: _Weights, x: Any, state: Sequence[Any]) -> tuple[Any, ...]:
        """`x` [batch, input], one state h [batch, hidden]."""
        (h,) = state
        return (p.activations[0](x @ p.w[0].T + h @ p.r[0].T + p.input_bias[0] + p.state_bias[0]),)


class GRU(_Layer):
    """Gates z, r, h: h' = (1 - z) * g(..) + z * h."""

    gates = 3
    defaults = ("Sigmoid", "Tanh")

    def step(self, p: _Weights, x: Any, state: Sequence[Any]) -> tuple[Any, ...]:
        """`x` [batch, input], one state h [batch, hidden]; `linear_before_reset` resets what h was multiplied to, not
        h."""
        (h,) = state
        sigma, squash = p.activations
        z, reset = (sigma(x @ p.w[k].T + h @ p.r[k].T + p.input_bias[k] + p.state_bias[k]) for k in range(2))
        if p.options.get("linear_before_reset"):
            inner = reset * (h @ p.r[2].T + p.state_bias[2])
        else:
            inner = (reset * h) @ p.r[2].T + p.state_bias[2]
        return ((1 - z) * squash(x @ p.w[2].T + inner + p.input_bias[2]) + z * h,)


class LSTM(_Layer):
    """Gates i, o, f, c: c' = f * c + i * g; h' = o * tanh(c'); with `input_forget` f is 1 - i."""

    gates = 4
    states = 2
    defaults = ("Sigmoid", "Tanh", "Tanh")

    def step(self, p: _Weights, x: Any, state: Sequence[Any]) -> tuple[Any, ...]:
        """`x` [batch, input], states h and c [batch, hidden]; peepholes [3, hidden] for i, o, f."""
        h, c = state
        sigma, squash, show = p.activations
        i, o, f, g = (x @ p.w[k].T + h @ p.r[k].T + p.input_bias[k] + p.state_bias[k] for k in range(4))
        taken = sigma(i + p.peepholes[0] * c)
        kept = 1 - taken if p.options.get("input_forget") else sigma(f + p.peepholes[2] * c)
        cell = kept * c + taken * squash(g)
        return sigma(o + p.peepholes[1] * cell) * show(cell), cell


RECURRENT: tuple[type[OpRun], ...] = (RNN, GRU, LSTM)
"""What to give `ReferenceEvaluator` as `new_ops`."""
