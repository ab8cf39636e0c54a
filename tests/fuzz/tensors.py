"""Values of generated graphs, and random contents for them.

A model with symbolic sizes is made for a few *settings* of its symbols at once: a value has one array per setting, so
what is legal in all of them is known without any shape inference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper

Array: TypeAlias = NDArray[Any]
Shape: TypeAlias = tuple[int, ...]

F16, F32, F64, BF16 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64), np.dtype(ml_dtypes.bfloat16)
I8, I16, I32, I64 = (np.dtype(t) for t in (np.int8, np.int16, np.int32, np.int64))
U8, U16, U32, U64 = (np.dtype(t) for t in (np.uint8, np.uint16, np.uint32, np.uint64))
INT4, UINT4 = np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.uint4)
BOOL, STRING = np.dtype(np.bool_), np.dtype(object)

FLOATS = (F32, F64, F16, BF16)
INTEGERS = (I8, I16, I32, I64, U8, U16, U32, U64)
NUMBERS = (*FLOATS, *INTEGERS)

ODD = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e38, 65504.0, 0.5, 2.5)
"""Contents of wild models: what is not finite, not normal, large, or half way between integers."""

WORDS = ("", "a", "Zebra", "the", "über", "fuse line", "3.5", "x" * 40)


@dataclass(eq=False)
class Value:
    """A value of a graph: `arrays` has one array per setting (a list of arrays for a sequence, None for an empty
    optional).

    `known`: whether it is an initializer or made of such. `kind`: `tensor`, `seq` or `optional`.
    """

    name: str
    dtype: np.dtype[Any]
    arrays: tuple[Any, ...]
    known: bool = False
    kind: str = "tensor"

    @property
    def shape(self) -> Shape:
        """The shape in the first setting."""
        return self.arrays[0].shape

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """One shape per setting."""
        return tuple(array.shape for array in self.arrays)

    def fixed(self, axis: int) -> bool:
        """Whether the size of a dimension is the same in all settings."""
        return len({shape[axis] for shape in self.shapes}) == 1

    @property
    def static(self) -> bool:
        """Whether the shape is the same in all settings."""
        return len(set(self.shapes)) == 1

    def every(self, test: Any) -> bool:
        """Whether `test(array)` holds in all settings."""
        return all(bool(test(array)) for array in self.arrays)


def onnx_type(dtype: np.dtype[Any]) -> int:
    """The ONNX element type of a NumPy dtype."""
    return TensorProto.STRING if dtype == STRING else helper.np_dtype_to_tensor_dtype(dtype)


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether the elements are floating-point numbers."""
    return dtype in FLOATS


def random_array(rng: np.random.Generator, dtype: np.dtype[Any], shape: Shape, wild: bool = False) -> Array:
    """Contents for an input or weight: small numbers of both signs, every integer type over a small range (at times
    over its whole range)."""
    if dtype == STRING:
        return np.array([WORDS[i] for i in rng.integers(0, len(WORDS), int(np.prod(shape)))], object).reshape(shape)
    if dtype == BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    return _floats(rng, dtype, shape, wild) if is_float(dtype) else _integers(rng, dtype, shape, wild)


def _integers(rng: np.random.Generator, dtype: np.dtype[Any], shape: Shape, wild: bool) -> Array:
    if dtype in (INT4, UINT4):
        low, high = (-8, 8) if dtype == INT4 else (0, 16)
        return rng.integers(low, high, shape).astype(np.int8).astype(dtype)
    limits = np.iinfo(dtype)
    whole = wild or (dtype.itemsize == 1 and rng.random() < 0.5)
    low, high = (limits.min, limits.max) if whole else (max(limits.min, -9), 9)
    return rng.integers(low, high, shape, dtype, endpoint=True)


def _floats(rng: np.random.Generator, dtype: np.dtype[Any], shape: Shape, wild: bool) -> Array:
    values = rng.standard_normal(shape)
    if rng.random() < 0.2:
        values = np.round(values * 4) / 2  # ties, zeros, halves
    if wild:
        odd = np.array(ODD)[rng.integers(0, len(ODD), shape)]
        values = np.where(rng.random(shape) < 0.15, odd, values)
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(dtype)
