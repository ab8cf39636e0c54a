"""Arithmetic element by element on arrays that may hold symbolic sizes (object arrays of `Dim`s); what `folding` has in
its table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fuseline.frontends.onnx import dtypes
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim

Array: TypeAlias = NDArray[Any]


class Unfoldable(Exception):
    """Raised by a folder that cannot tell the content."""


def array_of_sizes(items: Sequence[Dim], shape: Sequence[int]) -> Array:
    """Sizes as an object array of a shape, in row-major order."""
    out = np.empty(len(items), dtype=object)
    out[:] = list(items)
    return out.reshape(list(shape))


def binary(symbolic: Callable[[Any, Any], Any], numeric: Callable[[Any, Any], Any]) -> Callable[..., Array]:
    """A folder of two operands: `numeric` on arrays of numbers (broadcasting), `symbolic` on their elements where one
    holds sizes."""
    lifted = np.frompyfunc(symbolic, 2, 1)

    def folder(node: OnnxNode, x: Array, y: Array) -> Array:
        del node
        if object not in (x.dtype, y.dtype):
            return np.asarray(numeric(x, y))
        return np.asarray(lifted(with_python_numbers(x), with_python_numbers(y)), dtype=object)

    return folder


def with_python_numbers(x: Array) -> Array:
    """An object array of ints in place of a numeric one, so that they calculate with sizes. Raises Unfoldable for
    numbers that are not whole."""
    if x.dtype == object:
        return x
    if x.dtype.kind == "f" and (x == np.rint(x)).all():
        x = x.astype(np.int64)
    if x.dtype.kind not in "iub":
        raise Unfoldable
    return array_of_sizes(x.reshape(-1).tolist(), x.shape)


def _truncated_div(x: Array, y: Array) -> Array:
    if x.dtype.kind not in "iuO":  # bfloat16 is of no kind that NumPy knows
        return np.true_divide(x, y)
    if np.any(y == 0):
        raise Unfoldable
    down = x // y  # rounded down; towards 0 is one more where there is a rest and the signs differ
    return down + ((down * y != x) & ((x < 0) ^ (y < 0)))


def _symbolic_div(x: Dim, y: Dim) -> Dim:
    """Rounded towards 0, by a size (by one that turns out to be 0: 0)."""
    low, least = d.lower_bound(x), d.lower_bound(y)
    if least is None or least < 0:
        raise Unfoldable
    return (
        d.floor_div(x, y)
        if low is not None and low >= 0
        else d.add(d.maximum(d.floor_div(x, y), 0), d.minimum(d.floor_div(d.add(x, d.sub(y, 1)), y), 0))
    )


def divide(node: OnnxNode, x: Array, y: Array) -> Array:
    """Of sizes in floats only what leaves no rest."""
    symbolic = _symbolic_div if dtypes.is_integer(node[0].dtype) else _exact_div
    return binary(symbolic, _truncated_div)(node, x, y)


def _exact_div(x: Dim, y: Dim) -> Dim:
    if y == 0 or d.mul(quotient := d.floor_div(x, y), y) != x:
        raise Unfoldable
    return quotient


def not_of_sizes(x: Dim, y: Dim) -> Dim:
    """For operators that mean nothing for sizes. Raises Unfoldable."""
    raise Unfoldable


def _symbolic_mod(x: Dim, y: Dim) -> Dim:
    if (d.lower_bound(x) or 0) < 0 or d.lower_bound(x) is None:
        raise Unfoldable
    return d.sub(x, d.mul(_symbolic_div(x, y), y))


def _ordered(holds: Callable[[int | None, int | None], bool | None]) -> Callable[[Any, Any], bool]:
    def compare(x: Any, y: Any) -> bool:
        difference = d.sub(x, y)
        answer = holds(d.lower_bound(difference), d.upper_bound(difference))
        if answer is None:
            raise Unfoldable
        return answer

    return compare


def less(low: int | None, high: int | None) -> bool | None:
    """Whether a difference in `low..high` (None: unbounded) is negative; None where that is unknown."""
    if high is not None and high < 0:
        return True
    return False if low is not None and low >= 0 else None


def less_equal(low: int | None, high: int | None) -> bool | None:
    """Whether a difference in `low..high` is at most 0; None where that is unknown."""
    if high is not None and high <= 0:
        return True
    return False if low is not None and low > 0 else None


def equal(low: int | None, high: int | None) -> bool | None:
    """Whether a difference in `low..high` is 0; None where that is unknown."""
    if low == 0 and high == 0:
        return True
    return False if (low is not None and low > 0) or (high is not None and high < 0) else None


def negated(holds: Callable[[int | None, int | None], bool | None]) -> Callable[[int | None, int | None], bool | None]:
    """The opposite answer, unknown where that is."""

    def other(low: int | None, high: int | None) -> bool | None:
        answer = holds(low, high)
        return None if answer is None else not answer

    return other


def unary(numeric: Callable[[Any], Any], symbolic: Callable[[Any], Any] | None = None) -> Callable[..., Array]:
    """A folder of one operand; without `symbolic`, sizes raise Unfoldable."""

    def folder(node: OnnxNode, x: Array) -> Array:
        del node
        if x.dtype != object:
            return np.asarray(numeric(x))
        if symbolic is None:
            raise Unfoldable
        return np.asarray(np.frompyfunc(symbolic, 1, 1)(x), dtype=object)

    return folder


def modulo(node: OnnxNode, x: Array, y: Array) -> Array:
    """With the sign of the divisor; with `fmod` that of the dividend. Symbolic sizes are not negative: there both
    agree."""
    return binary(_symbolic_mod, np.fmod if node.integer("fmod", 0) else np.mod)(node, x, y)


def comparison(
    holds: Callable[[int | None, int | None], bool | None], numeric: Callable[[Any, Any], Any]
) -> Callable[..., Array]:
    """A folder of two operands that answers booleans: `holds` is asked about the bounds of the difference of sizes."""
    folder = binary(_ordered(holds), numeric)

    def compared(node: OnnxNode, x: Array, y: Array) -> Array:
        return folder(node, x, y).astype(bool)

    return compared
