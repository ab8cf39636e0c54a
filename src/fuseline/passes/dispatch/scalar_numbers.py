"""Which values are numbers that code of a host step (`fuseline.scalar_code`) computes with, and their bits."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from math import prod
from typing import Any

from xdsl.dialects.builtin import Float32Type, Float64Type, FloatAttr, IndexType, IntegerAttr, IntegerType, TensorType
from xdsl.ir import Attribute, SSAValue

from fuseline.evaluation.constants import numbers_of
from fuseline.ir.build import element_of, shape_of
from fuseline.ir.fast import attributes
from fuseline.scalar_code import MOST_ELEMENTS, WIDTHS


def bits_of(type_: Attribute) -> int | None:
    """The bits of an integer or float that scalar code computes with; None for any other type."""
    if isinstance(type_, IndexType | Float64Type):
        return 64
    if isinstance(type_, Float32Type):
        return 32
    width = type_.width.data if isinstance(type_, IntegerType) else 0
    return width if width in WIDTHS else None


def leaf(name: str, type_: Attribute) -> str:
    """The leaf of this name that reads numbers of a type."""
    return f"{name}f" if is_float(type_) else name


def is_float(type_: Attribute) -> bool:
    """Whether numbers of a type are floats."""
    return isinstance(type_, Float32Type | Float64Type)


def is_few_numbers(value: SSAValue) -> bool:
    """Whether `value` is a tensor that is looked into."""
    if not isinstance(value.type, TensorType) or not attributes.is_static(value.type):
        return False
    return bits_of(element_of(value)) is not None and 0 < prod(shape_of(value)) <= MOST_ELEMENTS


def constant_bits(value: Attribute) -> int | None:
    """A constant number as the operand of its leaf: an integer, or the bits of a float; None for what is no number."""
    if isinstance(value, IntegerAttr):
        return value.value.data
    return _float_bits(value.value.data, bits_of(value.type)) if isinstance(value, FloatAttr) else None


def element_bits(value: Attribute, number: int, resources: Mapping[str, Any]) -> int | None:
    """Element `number`, row-major, of a constant tensor, like `constant_bits`; None where it is not at hand."""
    array = numbers_of(value, resources)
    if array is None:
        return None
    element = array.flat[number]
    return _float_bits(float(element), 8 * array.itemsize) if array.dtype.kind == "f" else int(element)


def _float_bits(number: float, bits: int | None) -> int | None:
    """The bits of a float, as an integer with a sign; None where code has no such floats."""
    formats = {32: ("<f", "<i"), 64: ("<d", "<q")}
    if bits not in formats:
        return None
    pack, unpack = formats[bits]
    return struct.unpack(unpack, struct.pack(pack, number))[0]
