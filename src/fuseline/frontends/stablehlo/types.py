"""Tensor types of StableHLO as NumPy dtypes and sizes. Integers have a sign there (`ui32`), and tensors of the IR have
none: the dtype keeps it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import IndexType, IntegerType, NoneAttr, Signedness, TensorType
from xdsl.ir import Attribute

from fuseline.ir.element_types import numpy_dtype
from fuseline.ir.fast import attributes

DType = np.dtype[Any]
_WIDTHS = (8, 16, 32, 64)


class UnreadableTypeError(Exception):
    """A type that no tensor of the IR can have; the message says which."""


@lru_cache(maxsize=64)
def dtype_of(element: Attribute) -> DType:
    """The dtype of an element type. Raises UnreadableTypeError."""
    if isinstance(element, IntegerType) and element.width.data in _WIDTHS:
        sign = "u" if element.signedness.data is Signedness.UNSIGNED else ""
        return np.dtype(f"{sign}int{element.width.data}")
    if isinstance(element, IndexType) or (isinstance(element, IntegerType) and element.width.data != 1):
        raise UnreadableTypeError(f"elements of type {element}")
    try:
        return numpy_dtype(element)
    except KeyError:
        raise UnreadableTypeError(f"elements of type {element}") from None


def tensor_type_of(type_: Attribute) -> tuple[DType, tuple[int, ...]]:
    """The dtype and the sizes, -1 for those that only the run tells. Raises UnreadableTypeError for anything but a
    ranked tensor of such elements."""
    if not isinstance(type_, TensorType):
        raise UnreadableTypeError(f"values of type {type_}")
    ranked = cast("TensorType[Any]", type_)
    if not isinstance(ranked.encoding, NoneAttr):
        raise UnreadableTypeError(f"values of type {type_}, with an encoding")
    return dtype_of(ranked.element_type), attributes.shape(ranked)
