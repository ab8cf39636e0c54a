"""Pooling as the ONNX standard defines it.

MaxPool  `Indices` count through the whole tensor, batch and channel included, in every rank and with every stride
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from fuseline.frontends.onnx.reference.corrections import Node
from fuseline.frontends.onnx.reference.windows import gathered, sliding


class MaxPool(Node):
    """The largest element of each window, and where it stands."""

    def _run(self, x: Any, kernel_shape: Any = None, storage_order: Any = None, **options: Any) -> tuple[Any, ...]:
        axes = sliding(x.shape[2:], options, [int(size) for size in kernel_shape])
        lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        windows = gathered(x, axes, lowest)
        first = windows.argmax(-1)
        largest = np.take_along_axis(windows, first[..., None], -1)[..., 0]
        if len(self.onnx_node.output) < 2:
            return (largest,)
        places = gathered(_numbered(x.shape, bool(storage_order)), axes, -1)
        return largest, np.take_along_axis(places, first[..., None], -1)[..., 0]


def _numbered(shape: tuple[int, ...], columns_first: bool) -> Any:
    """The number of each element of a tensor; with `columns_first` the spatial axes are counted the other way round."""
    image = np.arange(int(np.prod(shape[2:]))).reshape(shape[:1:-1]).T if columns_first else np.arange(int(np.prod(shape[2:]))).reshape(shape[2:])
    planes = np.arange(shape[0] * shape[1]).reshape(*shape[:2], *[1] * image.ndim)
    return planes * image.size + image


POOLING: tuple[type[OpRun], ...] = (MaxPool,)
"""What to give `ReferenceEvaluator` as `new_ops`."""
