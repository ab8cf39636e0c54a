"""LabelEncoder as ai.onnx.ml has it: its first version; keys that are not numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from fuseline.frontends.onnx.reference.corrections import Node

F32 = np.float32
NAN = float("nan")
"""The one that keys are compared with, by identity."""

NAN_IS_A_KEY_SINCE = 4
"""Operator set of ai.onnx.ml; before it onnxruntime finds no NaN."""


class LabelEncoder(Node):
    """Values by their keys; of equal keys the first."""

    op_domain = "ai.onnx.ml"

    def _run(self, x: Any, **given: Any) -> tuple[Any, ...]:
        if given.get("classes_strings") is not None:
            return (_first_version(x, given),)
        keys, values = (
            next(given[name] for name in names if given.get(name) is not None)
            for names in (_kinds("keys"), _kinds("values"))
        )
        dtype = np.asarray(values).dtype if given.get("values_tensor") is not None else _dtype_of(given)
        default = _default(given, dtype)
        pairs = list(zip(map(_key, _items(keys)), _items(values), strict=True))
        if self.version < NAN_IS_A_KEY_SINCE:
            pairs = [pair for pair in pairs if pair[0] is not NAN]
        return (_looked_up(x, dict(reversed(pairs)), default, dtype),)


def _kinds(side: str) -> list[str]:
    return [f"{side}_{kind}" for kind in ("tensor", "strings", "int64s", "floats")]


def _items(given: Any) -> list[Any]:
    """Texts, and numbers as Python has them: the evaluator gives lists of floats as lists of `np.float32`."""
    items: list[Any] = np.asarray(given).reshape(-1).tolist() if isinstance(given, np.ndarray) else list(given)
    items = [item.item() if isinstance(item, np.generic) else item for item in items]
    return [item.decode() if isinstance(item, bytes) else item for item in items]


def _key(item: Any) -> Any:
    """Every not-a-number is the same key."""
    return NAN if isinstance(item, float) and item != item else item


def _dtype_of(given: dict[str, Any]) -> Any:
    return (
        np.dtype(object)
        if given.get("values_strings") is not None
        else np.dtype(np.int64 if given.get("values_int64s") is not None else F32)
    )


def _default(given: dict[str, Any], dtype: Any) -> Any:
    tensor = given.get("default_tensor")
    if given.get("values_tensor") is not None:
        return (
            "_Unused"
            if tensor is None and dtype.kind in "OUST"
            else (-1 if dtype.kind == "i" else -0.0)
            if tensor is None
            else _items(tensor)[0]
        )
    name, otherwise = {"O": ("default_string", "_Unused"), "i": ("default_int64", -1)}.get(
        dtype.kind, ("default_float", -0.0)
    )
    found = given.get(name)
    return otherwise if found is None else _items([found])[0]


def _first_version(x: Any, given: dict[str, Any]) -> Any:
    classes = _items(given["classes_strings"])
    if x.dtype.kind in "iu":
        return _looked_up(
            x,
            dict(enumerate(classes)),
            _default({**given, "values_strings": classes}, np.dtype(object)),
            np.dtype(object),
        )
    return _looked_up(
        x,
        {name: i for i, name in enumerate(classes)},
        _default({**given, "values_int64s": []}, np.dtype(np.int64)),
        np.dtype(np.int64),
    )


def _looked_up(x: Any, table: dict[Any, Any], default: Any, dtype: Any) -> Any:
    out = np.empty(x.size, object)
    out[:] = [table.get(_key(item), default) for item in x.reshape(-1).tolist()]
    return out.reshape(x.shape) if dtype.kind in "OUST" else out.astype(dtype).reshape(x.shape)


LABELS: tuple[type[OpRun], ...] = (LabelEncoder,)
"""What to give `ReferenceEvaluator` as `new_ops`."""
