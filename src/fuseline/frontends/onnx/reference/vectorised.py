"""Operators that `onnx.reference` computes element by element in Python, with NumPy's own loops."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from fuseline.frontends.onnx.reference.corrections import Node

_REDUCTIONS: dict[str, Any] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _scattered(data: Any, positions: tuple[Any, ...], updates: Any, reduction: str | None) -> Any:
    """`data` with `updates` put, or combined, at `positions`; of several updates of one element the last one stays."""
    out = data.copy()
    if reduction in (None, "none"):
        out[positions] = updates
    else:
        _REDUCTIONS[reduction].at(out, positions, updates)
    return out


class ScatterElements(Node):
    """Updates at positions given along one axis."""

    def _run(
        self, data: Any, indices: Any, updates: Any, axis: Any = None, reduction: Any = None, **_: Any
    ) -> tuple[Any, ...]:
        positions = list(np.indices(indices.shape, sparse=True))
        positions[axis or 0] = indices
        return (_scattered(data, tuple(positions), updates, reduction),)


class ScatterND(Node):
    """Updates of slices at positions given for the leading axes."""

    def _run(self, data: Any, indices: Any, updates: Any, reduction: Any = None, **_: Any) -> tuple[Any, ...]:
        return (_scattered(data, tuple(np.moveaxis(indices, -1, 0)), updates, reduction),)


class Col2Im(Node):
    """Columns summed up where their windows stand in the image; one step for each place in the window."""

    def _run(
        self,
        columns: Any,
        image_shape: Any,
        block_shape: Any,
        dilations: Any = None,
        pads: Any = None,
        strides: Any = None,
        **_: Any,
    ) -> tuple[Any, ...]:
        image, block = [int(size) for size in image_shape], [int(size) for size in block_shape]
        rank = len(image)
        dilations, strides, pads = (
            _numbers(dilations, [1] * rank),
            _numbers(strides, [1] * rank),
            _numbers(pads, [0] * 2 * rank),
        )
        padded = [size + pads[i] + pads[rank + i] for i, size in enumerate(image)]
        counts = [(padded[i] - (block[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(rank)]
        blocks = columns.reshape(columns.shape[0], -1, *block, *counts)
        out = np.zeros((*blocks.shape[:2], *padded), columns.dtype)
        for position in product(*map(range, block)):
            starts = [at * step for at, step in zip(position, dilations, strict=True)]
            where = tuple(
                slice(start, start + (n - 1) * step + 1, step)
                for start, n, step in zip(starts, counts, strides, strict=True)
            )
            out[(slice(None), slice(None), *where)] += blocks[(slice(None), slice(None), *position)]
        inside = tuple(slice(pads[i], pads[i] + size) for i, size in enumerate(image))
        return (out[(slice(None), slice(None), *inside)],)


def _numbers(given: Sequence[int] | None, default: list[int]) -> list[int]:
    return [int(value) for value in given] if given is not None else default


VECTORISED: tuple[type[OpRun], ...] = (Col2Im, ScatterElements, ScatterND)
"""What to give `ReferenceEvaluator` as `new_ops`."""
