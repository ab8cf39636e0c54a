"""Smaller dimensions: one size becomes a smaller one wherever it stands, in inputs, weights and shapes that are
weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx

from fuseline.verify.reduce.candidate import Array, Candidate, forget_sizes, weight_of, weights_of

_SHAPES = 8
"""Weights of so many integers, or fewer, may be shapes."""


def smaller_sizes(candidate: Candidate) -> Iterator[Candidate]:
    """Every size as 1, 2, half of it, and one less, large ones first. What comes out may be no valid model."""
    arrays = [*candidate.feeds.values(), *weights_of(candidate).values()]
    for size in sorted({size for array in arrays for size in array.shape if size > 1}, reverse=True):
        for target in dict.fromkeys((1, 2, size // 2, size - 1)):
            if 0 < target < size:
                for shapes in (True, False) if _has_shapes(candidate, size) else (False,):
                    yield _resized(candidate, size, target, shapes)


def _has_shapes(candidate: Candidate, size: int) -> bool:
    """Whether a weight may be a shape with this size in it."""
    weights = weights_of(candidate).values()
    return any(array.dtype == np.int64 and array.size <= _SHAPES and size in array for array in weights)


def _resized(candidate: Candidate, size: int, target: int, shapes: bool) -> Candidate:
    model = onnx.ModelProto()
    model.CopyFrom(candidate.model)
    weights = {name: _cut(array, size, target, shapes) for name, array in weights_of(candidate).items()}
    feeds = {name: _cut(array, size, target, False) for name, array in candidate.feeds.items()}
    del model.graph.initializer[:]
    model.graph.initializer.extend(weight_of(array, name) for name, array in weights.items())
    for value in model.graph.input:
        for dim, extent in zip(value.type.tensor_type.shape.dim, feeds[value.name].shape, strict=True):
            dim.dim_value = extent
    forget_sizes(model)
    return Candidate(model, feeds)


def _cut(array: Array, size: int, target: int, shapes: bool) -> Array:
    cut = array[tuple(slice(target) if extent == size else slice(None) for extent in array.shape)]
    if shapes and cut.dtype == np.int64 and cut.size <= _SHAPES:
        cut = np.where(cut == size, target, cut)
    return np.ascontiguousarray(cut).reshape(cut.shape)
