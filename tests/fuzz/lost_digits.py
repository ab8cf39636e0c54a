"""Values that no two floating-point types can agree on, since what they are of is rounded away."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tests.fuzz.exclusions import exclude
from tests.fuzz.tensors import Array, is_float

PERIODIC = ("Sin", "Cos", "Tan")
LEAST_STEPS = 64
"""How many numbers of a type lie between one and the next whole number, at the least, where a period has digits."""

ONE = np.ones(())

EXACT: Mapping[str, Callable[..., Any]] = {
    "Mul": np.multiply,
    "Div": np.divide,
    "Pow": np.power,
    "Exp": np.exp,
    "Reciprocal": np.reciprocal,
    "Sigmoid": lambda x: np.exp(-np.logaddexp(0, -x)),
    "Softplus": lambda x: np.logaddexp(0, x),
    "Sin": np.sin,
    "Tan": np.tan,
    "Asin": np.arcsin,
    "Atan": np.arctan,
    "Sinh": np.sinh,
    "Tanh": np.tanh,
    "Asinh": np.arcsinh,
    "Atanh": np.arctanh,
    "Erf": lambda x: x * 1.1283791670955126,
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "Softmax": lambda x: np.exp(x - np.max(x, initial=-np.inf)),
}
"""Operators whose result may be smaller than the normal numbers, in float64 (near them)."""


def require_digits(op_type: str, operands: Sequence[Any]) -> None:
    """Raises Rejected for a node whose result, on these arrays, depends on digits that their type does not have."""
    floats: list[Array] = [array for array in operands if isinstance(array, np.ndarray) and is_float(array.dtype)]
    if not floats:
        return
    exclude("period-beyond-the-digits", op_type in PERIODIC and _beyond(floats[0]))
    exclude("period-beyond-the-digits", op_type == "Mod" and len(floats) == 2 and _beyond(*floats))
    exclude("smaller-than-normal", op_type == "ReduceProd" and _small_product(floats[0]))
    exclude("smaller-than-normal", op_type in EXACT and len(floats) == len(operands) and _small(op_type, floats))


def _small_product(array: Array) -> bool:
    """Whether some of the elements have a product that is not 0 and yet below the normal numbers of their type."""
    small = np.abs(array.astype(np.float64))
    logs = np.log2(small[(small > 0) & (small < 1)])
    return bool(logs.sum() < np.log2(float(ml_dtypes.finfo(array.dtype).smallest_normal)))


def _beyond(array: Array, period: Array = ONE) -> bool:
    """Whether a finite element is so large that neighbours of its type are a good part of a period apart."""
    wide, steps = np.abs(array.astype(np.float64)), np.abs(period.astype(np.float64)) / LEAST_STEPS
    return bool((np.isfinite(wide) & (wide * float(ml_dtypes.finfo(array.dtype).eps) > steps)).any())


def _small(op_type: str, operands: Sequence[Array]) -> bool:
    """Whether an element of the result is not 0 and yet below the normal numbers of its type."""
    with np.errstate(all="ignore"):
        exact = np.abs(EXACT[op_type](*(array.astype(np.float64) for array in operands)))
    return bool(((exact > 0) & (exact < float(ml_dtypes.finfo(operands[0].dtype).smallest_normal))).any())
