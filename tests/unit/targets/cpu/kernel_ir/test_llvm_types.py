"""LLVM's spelling of types and constants."""

from __future__ import annotations

import struct

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseline.targets.cpu.kernel_ir import llvm_types
from fuseline.targets.cpu.kernel_ir.types import Type, Value


@pytest.mark.parametrize(
    ("type_", "text", "suffix"),
    [
        (Type("f32"), "float", "f32"),
        (Type("f32", 8), "<8 x float>", "v8f32"),
        (Type("f64", 2), "<2 x double>", "v2f64"),
        (Type("f16", 4), "<4 x half>", "v4f16"),
        (Type("bf16", 4), "<4 x i16>", "v4i16"),
        (Type("i1"), "i1", "i1"),
        (Type("i64", 4), "<4 x i64>", "v4i64"),
    ],
)
def test_types_and_parts_of_names(type_: Type, text: str, suffix: str) -> None:
    assert (llvm_types.llvm_type(type_), llvm_types.suffix(type_)) == (text, suffix)


@given(st.floats(width=32))
def test_a_float_is_the_double_of_its_value(x: float) -> None:
    """LLVM writes f32 with the bits of the f64 of the same value."""
    bits = int(llvm_types.scalar_text(x, "f32"), 16)
    (back,) = struct.unpack("<d", struct.pack("<Q", bits))
    np.testing.assert_array_equal(np.float32(back), np.float32(x))


@given(st.floats())
def test_a_double_is_its_bits(x: float) -> None:
    bits = int(llvm_types.scalar_text(x, "f64"), 16)
    assert struct.pack("<Q", bits) == struct.pack("<d", x)


@given(st.floats(width=32))
def test_bf16_rounds_as_ml_dtypes_does(x: float) -> None:
    got = np.array(llvm_types.bf16_bits(x), np.uint16).view(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(got.astype(np.float32), np.asarray(x, ml_dtypes.bfloat16).astype(np.float32))


def test_numbers_that_round_to_the_type_first() -> None:
    assert llvm_types.scalar_text(0.1, "f32") == llvm_types.scalar_text(float(np.float32(0.1)), "f32")
    assert llvm_types.scalar_text(1e300, "f32") == llvm_types.scalar_text(float("inf"), "f32")
    assert llvm_types.scalar_text(1.0, "f16") == "0xH3C00"
    assert [llvm_types.scalar_text(x, "i1") for x in (0, 1, -1)] == ["false", "true", "true"]
    assert llvm_types.scalar_text(-7, "i32") == "-7"


def _constant(type_: Type, attr: object) -> Value:
    return Value("const", type_, (), attr, 3, 0)


def test_constants_with_and_without_lanes() -> None:
    assert llvm_types.typed(_constant(Type("i32"), 5)) == "i32 5"
    assert llvm_types.typed(_constant(Type("i32", 4), 5)) == "<4 x i32> splat (i32 5)"
    assert llvm_types.typed(_constant(Type("i32", 2), (5, -6))) == "<2 x i32> <i32 5, i32 -6>"
    assert llvm_types.typed(Value("add", Type("i64"), (), None, 12, 0)) == "i64 %v12"
