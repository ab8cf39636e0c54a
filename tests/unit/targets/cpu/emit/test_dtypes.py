"""Element types of tensors as the kernel IR names them."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import (
    Float80Type,
    IndexType,
    IntegerType,
    NoneType,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i64,
)
from xdsl.ir import Attribute

from fuseline.errors import FuselineError
from fuseline.targets.cpu.emit.dtypes import dtype_of


@pytest.mark.parametrize(
    ("type_", "name"),
    [
        (f32, "f32"),
        (f64, "f64"),
        (f16, "f16"),
        (bf16, "bf16"),
        (i1, "i1"),
        (i8, "i8"),
        (i64, "i64"),
        (IndexType(), "i64"),
    ],
)
def test_an_element_type_and_a_tensor_of_it(type_: Attribute, name: str) -> None:
    assert dtype_of(type_) == dtype_of(TensorType(type_, [2, 3])) == name


def test_an_index_is_as_wide_as_an_address() -> None:
    assert dtype_of(IndexType()) == "i64"


@pytest.mark.parametrize("type_", [IntegerType(4), IntegerType(128), Float80Type(), NoneType()])
def test_what_no_tensor_holds(type_: Attribute) -> None:
    with pytest.raises(FuselineError, match="no element type") as caught:
        dtype_of(type_)
    assert caught.value.code == "E0901"
