"""16-bit floats (f16, bf16): which types have them, the types that hold the same in f32, and the narrowings that are
storage only."""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, Float16Type, TensorType, f32
from xdsl.ir import Attribute

from fuseline.ir.fast import attributes

STORAGE_ATTRIBUTE = "fuseline.storage"
"""On an `arith.truncf`: no step of the model, only the type in which a value computed in f32 lies between two steps."""


def is_half(type_: Attribute) -> bool:
    """Whether `type_` is f16 or bf16, or a tensor of them."""
    element = type_.get_element_type() if isinstance(type_, TensorType) else type_
    return isinstance(element, Float16Type | BFloat16Type)


@lru_cache(maxsize=1 << 10)
def widened(type_: Attribute) -> Attribute:
    """`type_` with f32 in place of f16 and bf16; itself where it has neither."""
    if not is_half(type_):
        return type_
    return attributes.tensor_type(f32, attributes.shape(type_)) if isinstance(type_, TensorType) else f32


def mark_storage(op: arith.TruncFOp) -> arith.TruncFOp:
    """Say that `op` narrows for storage only."""
    op.attributes[STORAGE_ATTRIBUTE] = attributes.UNIT
    return op


def is_storage(op: arith.TruncFOp) -> bool:
    """Whether `op` narrows for storage only."""
    return STORAGE_ATTRIBUTE in op.attributes
