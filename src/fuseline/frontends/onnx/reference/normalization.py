"""Normalisation as the ONNX standard defines it in each operator set.

BatchNormalization   with given statistics before operator set 14, whatever the number of outputs
LpNormalization      divides by a norm: of absolute values
LRN                  any number of channels
Softmax and kin      up to operator set 12 over all axes from `axis` on together
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from fuseline.frontends.onnx.reference.corrections import Node

TRAINING_SINCE = 14
"""Operator set in which BatchNormalization got `training_mode`; before it, training had a form of its own that no
runtime has kept."""

ONE_AXIS_SINCE = 13
"""Operator set in which Softmax, LogSoftmax and Hardmax came to look at one axis."""


class BatchNormalization(Node):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, channel by channel; in training of the batch's own
    statistics."""

    def _run(
        self,
        x: Any,
        scale: Any,
        bias: Any,
        mean: Any,
        var: Any,
        epsilon: Any = None,
        momentum: Any = None,
        **options: Any,
    ) -> tuple[Any, ...]:
        if not options.get("training_mode"):
            return (_normalized(x, scale, bias, mean, var, epsilon),)
        wide, axes = x.astype(_wide(x)), (0, *range(2, x.ndim))
        own_mean, own_var = wide.mean(axes), wide.var(axes)
        running = [
            (old * momentum + new * (1 - momentum)).astype(old.dtype) for old, new in ((mean, own_mean), (var, own_var))
        ]
        return (_normalized(x, scale, bias, own_mean, own_var, epsilon), *running)


def _wide(x: Any) -> Any:
    return np.float32 if x.dtype.itemsize < 4 else x.dtype


def _normalized(x: Any, scale: Any, bias: Any, mean: Any, var: Any, epsilon: float) -> Any:
    scale, bias, mean, var = (
        part.astype(_wide(x)).reshape(-1, *[1] * (x.ndim - 2)) for part in (scale, bias, mean, var)
    )
    return ((x.astype(_wide(x)) - mean) / np.sqrt(var + np.asarray(epsilon, _wide(x))) * scale + bias).astype(x.dtype)


class LpNormalization(Node):
    """Elements by the norm of their line; 0 where that is 0."""

    def _run(self, x: Any, axis: Any = None, p: Any = None, **_: Any) -> tuple[Any, ...]:
        wide = x.astype(_wide(x))
        norm = np.abs(wide).sum(axis, keepdims=True) if p == 1 else np.sqrt((wide * wide).sum(axis, keepdims=True))
        return (np.where(norm == 0, 0, wide / np.where(norm == 0, 1, norm)).astype(x.dtype),)


class LRN(Node):
    """Elements by a power of the squares of their neighbours among the channels."""

    def _run(
        self, x: Any, alpha: Any = None, beta: Any = None, bias: Any = None, size: Any = None, **_: Any
    ) -> tuple[Any, ...]:
        wide = x.astype(_wide(x))
        before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
        squares = np.pad(wide * wide, [(0, 0), (before, after), *[(0, 0)] * (x.ndim - 2)])
        total = sum(squares[:, shift : shift + x.shape[1]] for shift in range(size))
        return ((wide / (bias + alpha / size * total) ** beta).astype(x.dtype),)


class _AlongLines(Node):
    """What one axis is looked at for; older operator sets look at all from it on as one."""

    def line(self, x: Any) -> Any:
        """The answer along the last axis."""
        raise NotImplementedError

    def _run(self, x: Any, axis: Any = None, **_: Any) -> tuple[Any, ...]:
        if self.version >= ONE_AXIS_SINCE:
            return (np.moveaxis(self.line(np.moveaxis(x.astype(_wide(x)), axis, -1)), -1, axis).astype(x.dtype),)
        lead = int(np.prod(x.shape[: axis % max(x.ndim, 1)])) if axis != x.ndim else x.size
        return (self.line(x.astype(_wide(x)).reshape(lead, -1)).reshape(x.shape).astype(x.dtype),)


class Softmax(_AlongLines):
    """Exponentials by their sum."""

    def line(self, x: Any) -> Any:
        if x.size == 0:
            return x
        powers = np.exp(x - x.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)


class LogSoftmax(_AlongLines):
    """The logarithm of Softmax."""

    def line(self, x: Any) -> Any:
        if x.size == 0:
            return x
        low = x - x.max(-1, keepdims=True)
        return low - np.log(np.exp(low).sum(-1, keepdims=True))


class Hardmax(_AlongLines):
    """1 at the first of the largest elements, 0 elsewhere."""

    def line(self, x: Any) -> Any:
        if x.size == 0:
            return x
        return np.arange(x.shape[-1]) == x.argmax(-1)[..., None]


NORMALIZATION: tuple[type[OpRun], ...] = (BatchNormalization, LpNormalization, LRN, Softmax, LogSoftmax, Hardmax)
"""What to give `ReferenceEvaluator` as `new_ops`."""
