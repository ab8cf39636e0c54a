"""ONNX element types as NumPy dtypes, and which of them tensors of the IR can hold."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx_ir as ir
from xdsl.ir import Attribute

from fuseline.frontends.onnx.tensors import NoNativeLowering
from fuseline.ir.element_types import element_type

_HELD = {
    ir.DataType.FLOAT,
    ir.DataType.DOUBLE,
    ir.DataType.FLOAT16,
    ir.DataType.BFLOAT16,
    ir.DataType.INT8,
    ir.DataType.INT16,
    ir.DataType.INT32,
    ir.DataType.INT64,
    ir.DataType.UINT8,
    ir.DataType.UINT16,
    ir.DataType.UINT32,
    ir.DataType.UINT64,
    ir.DataType.BOOL,
}


def holds(dtype: ir.DataType | None) -> bool:
    """Whether a tensor of the IR can hold elements of this type."""
    return dtype in _HELD


@cache
def holds_dtype(dtype: np.dtype[Any]) -> bool:
    """Whether a tensor of the IR can hold elements of a NumPy dtype."""
    try:
        element_type(dtype)
    except KeyError:
        return False
    return True


@cache
def from_onnx(dtype: ir.DataType) -> np.dtype[Any]:
    """The NumPy dtype of an ONNX element type (bfloat16 from ml_dtypes)."""
    return np.dtype(dtype.numpy())


@cache
def to_onnx(dtype: np.dtype[Any]) -> ir.DataType:
    """The ONNX element type of a NumPy dtype."""
    return ir.DataType.from_numpy(dtype)


@cache
def mlir_element(dtype: np.dtype[Any]) -> Attribute:
    """The element type in the IR: signless integers, i1 for bool; raises NoNativeLowering for one that tensors cannot
    hold."""
    try:
        return element_type(dtype)
    except KeyError:
        raise NoNativeLowering("element-type", f"{dtype.name} elements") from None


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether the elements are floating-point numbers (bfloat16 included)."""
    return dtype.kind == "f" or dtype.name == "bfloat16"


def is_half(dtype: np.dtype[Any]) -> bool:
    """Whether the elements are 16-bit floats, which accumulate in f32."""
    return is_float(dtype) and dtype.itemsize == 2


def is_unsigned(dtype: np.dtype[Any]) -> bool:
    """Whether integer ops must be the unsigned ones."""
    return dtype.kind in "ub"


def is_integer(dtype: np.dtype[Any]) -> bool:
    """Whether the elements are integers (bool excluded)."""
    return dtype.kind in "iu"


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which sums of `dtype` are kept: f32 for 16-bit floats, else itself."""
    return np.dtype(np.float32) if is_half(dtype) else dtype


def lowest(dtype: np.dtype[Any]) -> float | int:
    """What a maximum starts from."""
    if is_float(dtype):
        return float("-inf")
    return 0 if dtype.kind == "b" else int(np.iinfo(dtype).min)


def highest(dtype: np.dtype[Any]) -> float | int:
    """What a minimum starts from."""
    if is_float(dtype):
        return float("inf")
    return 1 if dtype.kind == "b" else int(np.iinfo(dtype).max)


INDEX_DTYPE = np.dtype(np.int64)
