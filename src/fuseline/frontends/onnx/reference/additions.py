"""Operators of the ONNX standard that `onnx.reference` lacks, or has for plain English only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from onnx.reference.op_run import OpRun

from fuseline.frontends.onnx.reference.corrections import Node


class GlobalLpPool(Node):
    """The p-norm over everything but batch and channel."""

    def _run(self, x: Any, p: Any = None, **_: Any) -> tuple[Any, ...]:
        power = 2 if p is None else p
        axes = tuple(range(2, x.ndim))
        return (((np.abs(x) ** power).sum(axis=axes, keepdims=True) ** (1 / power)).astype(x.dtype),)


class MaxRoiPool(Node):
    """The largest element of each bin of each region; 0 where a bin is empty. Regions are `(image, x1, y1, x2, y2)`,
    ends included."""

    def _run(self, x: Any, rois: Any, pooled_shape: Any = None, spatial_scale: Any = None, **_: Any) -> tuple[Any, ...]:
        scale = 1.0 if spatial_scale is None else float(spatial_scale)
        rows, columns = (int(size) for size in pooled_shape)
        out = np.zeros((len(rois), x.shape[1], rows, columns), x.dtype)
        for target, roi in zip(out, rois, strict=True):
            left, top, right, bottom = (int(np.floor(edge * scale + 0.5)) for edge in roi[1:])
            down, across = _bins(top, bottom, rows, x.shape[2]), _bins(left, right, columns, x.shape[3])
            for i, (first, last) in enumerate(down):
                for j, (start, stop) in enumerate(across):
                    if first < last and start < stop:
                        target[:, i, j] = x[int(roi[0]), :, first:last, start:stop].max((1, 2))
        return (out,)


def _bins(low: int, high: int, count: int, limit: int) -> list[tuple[int, int]]:
    """`count` overlapping ranges that cover `low..high`, cut to `0..limit`."""
    size = max(high - low + 1, 1) / count
    edges = [(int(np.floor(i * size)) + low, int(np.ceil((i + 1) * size)) + low) for i in range(count)]
    return [(min(max(first, 0), limit), min(max(last, 0), limit)) for first, last in edges]


class Multinomial(Node):
    """Classes drawn by their unnormalised log-probabilities, `sample_size` for each row."""

    def _run(self, x: Any, dtype: Any = None, sample_size: Any = None, seed: Any = None, **_: Any) -> tuple[Any, ...]:
        rng = np.random.default_rng(
            None if seed is None or np.isnan(seed) else abs(int(np.float32(seed).view(np.int32)))
        )
        weights = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        rows = [rng.choice(x.shape[1], sample_size or 1, p=row / row.sum()) for row in weights]
        return (np.stack(rows).astype(helper.tensor_dtype_to_np_dtype(dtype or TensorProto.INT32)),)


class StringNormalizer(Node):
    """Words without stop words, in one case; accents stay. onnx.reference drops them."""

    def _run(
        self, x: Any, case_change_action: Any = None, is_case_sensitive: Any = None, stopwords: Any = None, **_: Any
    ) -> tuple[Any, ...]:
        stop, change = (
            _given(stopwords),
            {"LOWER": str.lower, "UPPER": str.upper}.get(case_change_action or "NONE", str),
        )
        known = set(stop) if is_case_sensitive else {word.lower() for word in stop}
        words = [str(word) for word in x.reshape(-1).tolist()]
        kept = [change(word) for word in words if (word if is_case_sensitive else word.lower()) not in known] or [""]
        return (np.array(kept, object).reshape((1, -1) if x.ndim == 2 else (-1,)),)


class ZipMap(Node):
    """Each row as a map from labels to its elements."""

    op_domain = "ai.onnx.ml"

    def _run(
        self, x: Any, classlabels_int64s: Any = None, classlabels_strings: Any = None, **_: Any
    ) -> tuple[Any, ...]:
        labels = _given(classlabels_strings) or _given(classlabels_int64s)
        return ([dict(zip(labels, row.tolist(), strict=True)) for row in np.atleast_2d(x)],)


class CastMap(Node):
    """The values of a map in the order of its keys, or (sparse) each at the place that its key says, as one row."""

    op_domain = "ai.onnx.ml"

    def _run(self, x: Any, cast_to: Any = None, map_form: Any = None, max_map: Any = None, **_: Any) -> tuple[Any, ...]:
        kind = {"TO_STRING": object, "TO_INT64": np.int64}.get(cast_to or "TO_FLOAT", np.float32)
        of: Any = str if kind is object else kind
        if (map_form or "DENSE") == "DENSE":
            values: Sequence[Any] = [of(x[key]) for key in sorted(x)]
        else:
            values = [of(x[key]) if key in x else of() for key in range(int(max_map))]
        return (np.array([values], kind),)


class CategoryMapper(Node):
    """Strings as their numbers, or numbers as their strings."""

    op_domain = "ai.onnx.ml"

    def _run(
        self,
        x: Any,
        cats_int64s: Any = None,
        cats_strings: Any = None,
        default_int64: Any = None,
        default_string: Any = None,
    ) -> tuple[Any, ...]:
        pairs = list(zip(_given(cats_strings), _given(cats_int64s), strict=True))
        if x.dtype.kind in "iu":
            names = {number: text for text, number in pairs}
            default = "_Unused" if default_string is None else default_string
            return (_mapped(x, names, default, object),)
        return (_mapped(x, dict(pairs), -1 if default_int64 is None else default_int64, np.int64),)


def _mapped(x: Any, table: dict[Any, Any], default: Any, dtype: Any) -> Any:
    return np.array([table.get(item, default) for item in x.reshape(-1).tolist()], dtype).reshape(x.shape)


def _given(items: Any) -> list[Any]:
    return [] if items is None else [item.decode() if isinstance(item, bytes) else item for item in items]


ADDITIONS: tuple[type[OpRun], ...] = (
    GlobalLpPool,
    MaxRoiPool,
    Multinomial,
    StringNormalizer,
    ZipMap,
    CastMap,
    CategoryMapper,
)
"""What to give `ReferenceEvaluator` as `new_ops`."""
