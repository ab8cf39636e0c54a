"""LLVM's spelling of types and constants."""

from __future__ import annotations

import struct
from functools import cache

import numpy as np

from fuseline.targets.cpu.kernel_ir.types import FLOATS, Operand, Type, Value, type_of

_NAMES = {"f32": "float", "f64": "double", "f16": "half", "bf16": "i16", "ptr": "ptr", "void": "void"}
SUFFIXES = {"f32": "f32", "f64": "f64", "f16": "f16", "bf16": "i16"}


@cache
def llvm_type(type: Type) -> str:
    """For example `<8 x float>`. bf16 lives in i16 registers, since few ISAs compute on it."""
    name = _NAMES.get(type.dtype, type.dtype)
    return name if type.lanes == 1 else f"<{type.lanes} x {name}>"


@cache
def suffix(type: Type) -> str:
    """The type's part of an intrinsic's name, for example `v8f32`."""
    name = SUFFIXES.get(type.dtype, type.dtype)
    return name if type.lanes == 1 else f"v{type.lanes}{name}"


def scalar_text(x: float | int, dtype: str) -> str:
    """A constant of an element type: floats as exact bit patterns."""
    if dtype not in FLOATS:
        return ("true" if x else "false") if dtype == "i1" else str(int(x))
    if dtype == "f16":
        return f"0xH{np.float16(x).view(np.uint16):04X}"
    if dtype == "bf16":
        return str(bf16_bits(float(x)))
    value = float(x) if dtype == "f64" else _as_f32(float(x))
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def _as_f32(x: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(x))


def bf16_bits(x: float) -> int:
    """The bits of `x` rounded to bf16, ties to even."""
    bits = int(np.float32(x).view(np.uint32))
    return 0x7FC0 if x != x else (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16


def constant_text(value: Value) -> str:
    """A `const` value without its type."""
    dtype, lanes = value.type
    if isinstance(value.attr, tuple):
        element = llvm_type(Type(dtype))
        return "<" + ", ".join(f"{element} {scalar_text(x, dtype)}" for x in value.attr) + ">"
    text = scalar_text(value.attr, dtype)
    return text if lanes == 1 else f"splat ({llvm_type(Type(dtype))} {text})"


def reference(operand: Operand) -> str:
    """An operand without its type."""
    if not isinstance(operand, Value):
        return str(operand)
    return constant_text(operand) if operand.op == "const" else f"%v{operand.number}"


def typed(operand: Operand) -> str:
    """An operand with its type, as in argument lists."""
    return f"{llvm_type(type_of(operand))} {reference(operand)}"
