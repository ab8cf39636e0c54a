"""16-bit floats: which types have them, and what holds the same in f32."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType, bf16, f16, f32, f64, i16
from xdsl.ir import Attribute, Block

from fuseline.ir.halves import is_half, is_storage, mark_storage, widened


@pytest.mark.parametrize("element", [f16, bf16])
def test_halves_and_tensors_of_them(element: Attribute) -> None:
    assert is_half(element) and is_half(TensorType(element, [2, -1]))
    assert widened(element) == f32
    assert widened(TensorType(element, [2, -1])) == TensorType(f32, [2, -1])


@pytest.mark.parametrize("type_", [f32, f64, i16, TensorType(f64, [3]), TensorType(i16, [])])
def test_what_is_none_stays(type_: Attribute) -> None:
    assert not is_half(type_) and widened(type_) == type_


def test_a_narrowing_for_storage_only_says_so() -> None:
    (value,) = Block(arg_types=[f32]).args
    step, storage = arith.TruncFOp(value, f16), arith.TruncFOp(value, f16)
    assert mark_storage(storage) is storage
    assert is_storage(storage) and is_storage(storage.clone()) and not is_storage(step)
