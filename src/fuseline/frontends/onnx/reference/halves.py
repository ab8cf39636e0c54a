"""Reductions of halves, added up in float32 and rounded once: `onnx.reference` rounds, and overflows, on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from fuseline.frontends.onnx.reference.corrections import Amended


class _OfHalves(Amended):
    def _run(self, x: Any, *axes: Any, **_: Any) -> tuple[Any, ...]:
        if x.dtype != np.float16:
            return self.original(x, *axes)
        with np.errstate(over="ignore"):
            return (np.asarray(self.original(x.astype(np.float32), *axes)[0]).astype(x.dtype),)


class ReduceSum(_OfHalves):
    """Sums."""


class ReduceMean(_OfHalves):
    """Means."""


class ReduceProd(_OfHalves):
    """Products."""


class ReduceL1(_OfHalves):
    """Sums of magnitudes."""


class ReduceL2(_OfHalves):
    """Lengths."""


HALVES: tuple[type[OpRun], ...] = (ReduceSum, ReduceMean, ReduceProd, ReduceL1, ReduceL2)
"""What to give `ReferenceEvaluator` as `new_ops`."""
