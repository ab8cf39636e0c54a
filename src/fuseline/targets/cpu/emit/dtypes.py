"""Element types of tensors as the kernel IR names them."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    TensorType,
)
from xdsl.ir import Attribute

from fuseline.errors import FuselineError

_FLOATS: dict[type[Attribute], str] = {Float32Type: "f32", Float64Type: "f64", Float16Type: "f16", BFloat16Type: "bf16"}


def dtype_of(type_: Attribute) -> str:
    """The kernel IR's name of an element type (or of a tensor's); raises E0901 for one that no tensor holds."""
    element = type_.get_element_type() if isinstance(type_, TensorType) else type_
    if isinstance(element, IndexType):
        return "i64"
    if isinstance(element, IntegerType) and element.width.data in (1, 8, 16, 32, 64):
        return f"i{element.width.data}"
    name = _FLOATS.get(type(element))
    if name is None:
        raise FuselineError("E0901", f"the CPU target has no element type {element}")
    return name
