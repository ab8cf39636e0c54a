"""Element types as NumPy dtypes and back, and numbers as attributes of them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from xdsl.dialects.builtin import (
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
)
from xdsl.ir import Attribute, SSAValue

from fuseline.ir.fast import attributes
from fuseline.ir.fast.identity import by_identity

_FLOATS = {"float16": f16, "bfloat16": bf16, "float32": f32, "float64": f64}


@lru_cache(maxsize=64)
def element_type(dtype: np.dtype[Any]) -> Attribute:
    """The (signless) MLIR element type of a NumPy dtype; raises KeyError for one that tensors cannot hold."""
    if dtype.kind == "b":
        return i1
    if dtype.kind in "iu":
        return IntegerType(dtype.itemsize * 8)
    return _FLOATS[dtype.name]


def element_bits(value: SSAValue) -> int:
    """Bits of an element of a tensor, or of a scalar: 1 of i1, 64 of index."""
    type_ = value.type.get_element_type() if isinstance(value.type, TensorType) else value.type
    return int(getattr(type_, "bitwidth", 64))


def element_bytes(value: SSAValue) -> int:
    """Bytes that an element of a tensor is stored in: one of i1, eight of index."""
    return max(1, element_bits(value) // 8)


@by_identity
def numpy_dtype(type_: Attribute) -> np.dtype[Any]:
    """The NumPy dtype that stores an element type (signed for integers, bool for i1, int64 for index).
    Raises KeyError for a type that has none."""
    if isinstance(type_, IndexType):
        return np.dtype(np.int64)
    if isinstance(type_, IntegerType):
        width = type_.width.data
        return np.dtype(bool) if width == 1 else np.dtype(f"int{max(width, 8)}")
    for name, float_type in _FLOATS.items():
        if type_ == float_type:
            if name == "bfloat16":
                import ml_dtypes

                return np.dtype(ml_dtypes.bfloat16)
            return np.dtype(name)
    raise KeyError(str(type_))


def scalar_attribute(value: float | int | bool, type_: Attribute) -> IntegerAttr[Any] | FloatAttr[Any]:
    """The attribute of a scalar constant; integers wrap to the width of the type."""
    if type(type_) is IntegerType or type(type_) is IndexType:
        return attributes.integer(_wrapped(int(value), type_), type_)
    return attributes.floating(float(value), type_)


def _wrapped(value: int, type_: IntegerType | IndexType) -> int:
    if isinstance(type_, IndexType):
        return value
    width = type_.width.data
    if width == 1:
        return value & 1
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value
