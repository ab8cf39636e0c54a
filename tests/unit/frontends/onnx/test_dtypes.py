"""ONNX element types, NumPy dtypes and element types of the IR."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
from xdsl.dialects.builtin import bf16, f32, i1, i64

from fuseline.frontends.onnx import dtypes
from fuseline.frontends.onnx.tensors import NoNativeLowering

BF16 = np.dtype(ml_dtypes.bfloat16)
HELD = [np.dtype(text) for text in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")] + [BF16]


@pytest.mark.parametrize("dtype", HELD, ids=str)
def test_what_tensors_hold_goes_there_and_back(dtype: np.dtype[Any]) -> None:
    assert dtypes.from_onnx(dtypes.to_onnx(dtype)) == dtype
    assert dtypes.holds(dtypes.to_onnx(dtype)) and dtypes.holds_dtype(dtype)


@pytest.mark.parametrize("kind", [ir.DataType.STRING, ir.DataType.COMPLEX64, ir.DataType.INT4, ir.DataType.FLOAT8E5M2])
def test_what_tensors_do_not_hold(kind: ir.DataType) -> None:
    assert not dtypes.holds(kind) and not dtypes.holds(None)


def test_integers_are_signless_and_what_cannot_be_held_has_a_reason() -> None:
    assert dtypes.mlir_element(np.dtype("u8")) == dtypes.mlir_element(np.dtype("i8")) == i64
    assert [dtypes.mlir_element(dtype) for dtype in (np.dtype("?"), np.dtype("f4"), BF16)] == [i1, f32, bf16]
    with pytest.raises(NoNativeLowering, match="complex64 elements"):
        dtypes.mlir_element(np.dtype("c8"))
    assert not dtypes.holds_dtype(np.dtype("c8"))


@pytest.mark.parametrize("dtype", HELD, ids=str)
def test_kinds(dtype: np.dtype[Any]) -> None:
    floats, integers = dtype == BF16 or dtype.kind == "f", dtype.kind in "iu"
    assert (dtypes.is_float(dtype), dtypes.is_integer(dtype)) == (floats, integers)
    assert dtypes.is_half(dtype) == (dtype in (BF16, np.float16))
    assert dtypes.is_unsigned(dtype) == (dtype.kind in "ub")
    assert dtypes.accumulator(dtype) == (np.float32 if dtypes.is_half(dtype) else dtype)


@pytest.mark.parametrize("dtype", HELD, ids=str)
def test_where_a_maximum_and_a_minimum_start(dtype: np.dtype[Any]) -> None:
    lowest, highest = (np.array(limit(dtype)).astype(dtype) for limit in (dtypes.lowest, dtypes.highest))
    numbers = np.array([0, 1, 100]).astype(dtype)
    assert (np.maximum(lowest, numbers) == numbers).all() and (np.minimum(highest, numbers) == numbers).all()
    assert lowest == dtypes.lowest(dtype) and highest == dtypes.highest(dtype)
