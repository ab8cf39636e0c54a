"""Arithmetic on sizes, done while reading: what `get_dimension_size` and the ops behind it compute becomes symbolic
sizes, of which shapes are made (`dynamic_broadcast_in_dim`, `dynamic_reshape`).

Content is an object array of `Dim`s, of integer type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fuseline.frontends.onnx.tensors import Tensor, known
from fuseline.ir.dim import Dim, add, floor_div, lower_bound, maximum, minimum, mul, sub, upper_bound

if TYPE_CHECKING:
    from fuseline.frontends.stablehlo.hlo import Hlo

Array = NDArray[Any]
MOST = 4096
"""Elements; more are data."""


def folded(hlo: Hlo) -> Tensor | None:
    """The op's only result where it is arithmetic on symbolic sizes; None where it is not, or no answer is known."""
    arrays = [t.array for t in hlo.inputs]
    if not any(array is not None and array.dtype == object for array in arrays) or len(hlo.op.results) != 1:
        return None
    contents = [array for array in arrays if array is not None and array.size <= MOST]
    if len(contents) < len(arrays):
        return None
    fold = _FOLDERS.get(hlo.op.name.partition(".")[2])
    found = None if fold is None else fold(hlo, *contents)
    if found is None:
        return None
    dtype = hlo.dtype()
    return known(found, dtype) if dtype.kind in "iub" else None


def _each(function: Callable[..., Any]) -> Callable[..., Array | None]:
    """A function of sizes at every position; no answer where it has none at one of them."""

    def fold(hlo: Hlo, *arrays: Array) -> Array | None:
        del hlo
        rows = np.broadcast_arrays(*(_as_objects(array) for array in arrays))
        out = np.empty(rows[0].shape, object)
        for position in np.ndindex(out.shape):
            item = function(*(row[position] for row in rows))
            if item is None:
                return None
            out[position] = item
        return out

    return fold


def _as_objects(array: Array) -> Array:
    out = np.empty(array.shape, object)
    for position in np.ndindex(array.shape):
        item = array[position]
        out[position] = item if array.dtype == object else item.item()
    return out


def _quotient(x: Dim, y: Dim) -> Dim | None:
    """Rounded towards zero: below it nothing is known of sizes."""
    low, least = lower_bound(x), lower_bound(y)
    return floor_div(x, y) if low is not None and low >= 0 and least is not None and least > 0 else None


def _remainder(x: Dim, y: Dim) -> Dim | None:
    quotient = _quotient(x, y)
    return None if quotient is None else sub(x, mul(quotient, y))


def _sign(x: Dim) -> int | None:
    low, high = lower_bound(x), upper_bound(x)
    if low is not None and low > 0:
        return 1
    if high is not None and high < 0:
        return -1
    return 0 if x == 0 else None


def _compared(hlo: Hlo, x: Array, y: Array) -> Array | None:
    """Truth values where bounds tell them."""
    answer = _each(lambda a, b: _holds(hlo.text("comparison_direction"), sub(a, b)))(hlo, x, y)
    return None if answer is None else answer.astype(bool)


def _holds(direction: str, difference: Dim) -> bool | None:
    low, high = lower_bound(difference), upper_bound(difference)
    always = {
        "EQ": difference == 0,
        "NE": (low is not None and low > 0) or (high is not None and high < 0),
        "LT": high is not None and high < 0,
        "LE": high is not None and high <= 0,
        "GT": low is not None and low > 0,
        "GE": low is not None and low >= 0,
    }
    opposite = {"EQ": "NE", "NE": "EQ", "LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT"}
    if always[direction]:
        return True
    return False if always[opposite[direction]] else None


def _selected(hlo: Hlo, condition: Array, x: Array, y: Array) -> Array | None:
    del hlo
    return None if condition.dtype == object else np.where(condition, _as_objects(x), _as_objects(y))


def _same(hlo: Hlo, x: Array) -> Array:
    del hlo
    return x


def _reshaped(hlo: Hlo, x: Array, *_: Array) -> Array:
    return x.reshape(hlo.shape())


def _concatenated(hlo: Hlo, *parts: Array) -> Array:
    return np.concatenate([_as_objects(part) for part in parts], axis=hlo.integer("dimension"))


def _sliced(hlo: Hlo, x: Array) -> Array:
    bounds = zip(*(hlo.integers(key) for key in ("start_indices", "limit_indices", "strides")), strict=True)
    return x[tuple(slice(*bound) for bound in bounds)]


def _broadcast(hlo: Hlo, x: Array, *_: Array) -> Array | None:
    shape, axes = hlo.shape(), hlo.integers("broadcast_dimensions")
    if min(shape, default=0) < 0 or int(np.prod(shape)) > MOST:
        return None
    sizes = [1] * len(shape)
    for axis, size in zip(axes, x.shape, strict=True):
        sizes[axis] = size
    return np.broadcast_to(x.reshape(sizes), shape)


_FOLDERS: dict[str, Callable[..., Array | None]] = {
    "add": _each(add),
    "subtract": _each(sub),
    "multiply": _each(mul),
    "divide": _each(_quotient),
    "remainder": _each(_remainder),
    "maximum": _each(maximum),
    "minimum": _each(minimum),
    "clamp": _each(lambda low, x, high: minimum(maximum(x, low), high)),
    "negate": _each(lambda x: mul(x, -1)),
    "sign": _each(_sign),
    "compare": _compared,
    "select": _selected,
    "convert": _same,
    "reshape": _reshaped,
    "dynamic_reshape": _reshaped,
    "concatenate": _concatenated,
    "slice": _sliced,
    "broadcast_in_dim": _broadcast,
}
