"""Movement of elements as the ONNX standard defines it.

GatherElements      any number of indices, and shapes smaller than that of the data
NonZero             tensors without dimensions
OneHot              a depth with one dimension
Pad                 negative pads, in every mode and operator set
Scatter             the old name of ScatterElements
Shape               bounds far outside
Slice               bounds far outside, with negative steps
Squeeze, Unsqueeze  axes in any order, counted from either end, in every operator set
SplitToSequence     sizes that do not fit are refused
Unique              in the order of first appearance
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from fuseline.frontends.onnx.reference.corrections import Amended, Node
from fuseline.frontends.onnx.reference.vectorised import ScatterElements


class GatherElements(Node):
    """Elements at positions given along one axis."""

    def _run(self, data: Any, indices: Any, axis: Any = None, **_: Any) -> tuple[Any, ...]:
        positions: list[Any] = list(np.indices(indices.shape, sparse=True))
        positions[axis or 0] = indices
        return (data[tuple(positions)],)


class Scatter(ScatterElements):
    """ScatterElements as operator set 9 calls it."""


class SplitToSequence(Amended):
    """Parts of the sizes given."""

    def _run(self, x: Any, split: Any = None, axis: Any = None, **_: Any) -> tuple[Any, ...]:
        if split is None:
            return self.original(x)
        sizes, whole = np.asarray(split).reshape(-1), x.shape[axis or 0]
        if np.ndim(split) == 0 and sizes[0] <= 0:
            raise ValueError(f"parts of {sizes[0]} elements")
        if np.ndim(split) and (sizes.sum() != whole or (sizes < 0).any()):
            raise ValueError(f"parts of {sizes.tolist()} elements of {whole}")
        return self.original(x, split)


class NonZero(Node):
    """Where elements are not zero, axis by axis; a tensor without dimensions counts as one with a single element, as in
    onnxruntime."""

    def _run(self, x: Any, **_: Any) -> tuple[Any, ...]:
        line = np.atleast_1d(x)
        return (np.stack(np.nonzero(line != "" if line.dtype == object else line)).astype(np.int64),)


class OneHot(Node):
    """`on` where the position along the new axis is the index, else `off`; indices outside the depth are nowhere."""

    def _run(self, indices: Any, depth: Any, values: Any, axis: Any = None, **_: Any) -> tuple[Any, ...]:
        count, rank = int(np.asarray(depth).reshape(-1)[0]), indices.ndim + 1
        wanted = np.expand_dims(
            np.where(indices < 0, indices + count, indices) if indices.dtype.kind != "u" else indices, axis
        )
        positions = np.arange(count).reshape([-1 if i == axis % rank else 1 for i in range(rank)])
        return (np.where(wanted == positions, values[1], values[0]).astype(values.dtype),)


class Pad(Node):
    """Elements around the edges; negative pads cut off first."""

    def _run(
        self, x: Any, pads: Any = None, value: Any = None, axes: Any = None, mode: Any = None, **_: Any
    ) -> tuple[Any, ...]:
        kept = range(x.ndim) if axes is None else [int(axis) % x.ndim for axis in axes]
        given = np.asarray(pads).reshape(2, -1).astype(int)
        widths = [(0, 0)] * x.ndim
        for axis, begin, end in zip(kept, *given, strict=True):
            widths[axis] = (int(begin), int(end))
        cut = x[
            tuple(
                slice(max(-begin, 0), size - max(-end, 0)) for (begin, end), size in zip(widths, x.shape, strict=True)
            )
        ]
        grown = [(max(begin, 0), max(end, 0)) for begin, end in widths]
        if mode in (None, "constant"):
            fill = np.zeros((), x.dtype) if value is None else np.asarray(value, x.dtype).reshape(())
            return (np.pad(cut, grown, constant_values=fill.item() if x.dtype == object else fill),)
        return (np.pad(cut, grown, mode=mode),)


class Shape(Node):
    """The sizes from `start` to `end`, both cut to the rank."""

    def _run(self, x: Any, start: Any = None, end: Any = None, **_: Any) -> tuple[Any, ...]:
        return (np.array(np.shape(x)[slice(start or 0, end)], np.int64),)


class Slice(Node):
    """Every `step`-th element from `start` to `end`, both cut to where the step can go."""

    def _run(self, x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None, **_: Any) -> tuple[Any, ...]:
        count = len(starts)
        where = [slice(None)] * x.ndim
        for axis, start, end, step in zip(
            range(count) if axes is None else axes, starts, ends, [1] * count if steps is None else steps, strict=True
        ):
            where[int(axis)] = _bounds(int(start), int(end), int(step), x.shape[int(axis)])
        return (x[tuple(where)],)


def _bounds(start: int, end: int, step: int, size: int) -> slice:
    start, end = (bound + size if bound < 0 else bound for bound in (start, end))
    if step > 0:
        return slice(min(max(start, 0), size), min(max(end, 0), size), step)
    first, last = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
    return slice(first, None if last < 0 else last, step) if size else slice(0, 0)


class Squeeze(Node):
    """Without unit dimensions: those of `axes`, or all."""

    def _run(self, x: Any, axes: Any = None, **_: Any) -> tuple[Any, ...]:
        return (np.squeeze(x, None if axes is None else tuple(int(axis) for axis in axes)),)


class Unsqueeze(Node):
    """With unit dimensions at `axes` of the result."""

    def _run(self, x: Any, axes: Any, **_: Any) -> tuple[Any, ...]:
        return (np.expand_dims(x, tuple(int(axis) for axis in np.asarray(axes).reshape(-1))),)


class Unique(Node):
    """The distinct elements (or slices), where each is first met, which each one is, and how many there are."""

    def _run(self, x: Any, axis: Any = None, sorted: Any = None, **_: Any) -> tuple[Any, ...]:
        comparable = x.astype(str) if x.dtype == object else x
        values, first, inverse, counts = np.unique(comparable, True, True, True, axis=axis)
        values = values.astype(x.dtype)
        inverse = inverse.reshape(-1)
        if not sorted:
            order = np.argsort(first, kind="stable")
            rank = np.argsort(order, kind="stable")
            values, first, inverse, counts = values.take(order, axis or 0), first[order], rank[inverse], counts[order]
        return (values, *(found.astype(np.int64) for found in (first, inverse, counts)))[
            : max(len(self.onnx_node.output), 1)
        ]


MOVEMENT: tuple[type[OpRun], ...] = (
    GatherElements,
    Scatter,
    SplitToSequence,
    NonZero,
    OneHot,
    Pad,
    Shape,
    Slice,
    Squeeze,
    Unsqueeze,
    Unique,
)
"""What to give `ReferenceEvaluator` as `new_ops`."""
