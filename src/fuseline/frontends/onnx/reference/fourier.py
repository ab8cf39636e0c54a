"""Transforms that `onnx.reference` refuses.

DFT   of nothing along the axis: nothing
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from fuseline.frontends.onnx.reference.corrections import Amended


class DFT(Amended):
    """The transform of no places at all is none; half of one has a place, which nothing gives. Since operator set 20
    the axis is an input."""

    def _run(self, x: Any, *given: Any, axis: Any = -2, onesided: Any = None, **_: Any) -> tuple[Any, ...]:
        length, at = (*given, None, None)[:2]
        if x.shape[int(axis if at is None else np.reshape(at, ()))] or length is not None or onesided:
            return self.original(x, *(given if at is not None else given[:1]))
        return (np.zeros((*x.shape[:-1], 2), x.dtype),)


FOURIER: tuple[type[OpRun], ...] = (DFT,)
"""What to give `ReferenceEvaluator` as `new_ops`."""
