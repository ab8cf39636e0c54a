"""BatchNormalization in each operator set: with given statistics before operator set 14, whatever the number of
outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from fuseline.frontends.onnx.reference.corrections import Node


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
        vector.astype(_wide(x)).reshape(-1, *[1] * (x.ndim - 2)) for vector in (scale, bias, mean, var)
    )
    return ((x.astype(_wide(x)) - mean) / np.sqrt(var + np.asarray(epsilon, _wide(x))) * scale + bias).astype(x.dtype)


NORMALIZATION: tuple[type[OpRun], ...] = (BatchNormalization,)
"""What to give `ReferenceEvaluator` as `new_ops`."""
