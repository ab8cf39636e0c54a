"""Code of host steps as text of a declaration."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

from fuseline.ir.context import new_context
from fuseline.ir.operand_code import CODE_ATTRIBUTE, code_of, declare_code
from fuseline.ir.text import parse_module
from fuseline.scalar_code import Computed, ScalarCode, ScalarOp

FLOATS = ScalarCode(
    (
        ScalarOp("elementf", 64, (0, 1)),
        ScalarOp("constantf", 64, (-1 << 52,)),
        ScalarOp("ugtf", 1, (0, 1)),
        ScalarOp("select", 64, (2, 0, 1)),
        ScalarOp("fptosi", 32, (3,)),
    ),
    (Computed("int32", (), (4,)),),
)

CODE = ScalarCode(
    (
        ScalarOp("element", 32, (1, 2)),
        ScalarOp("constant", 32, (-9,)),
        ScalarOp("size", 64, (0,)),
        ScalarOp("eq", 1, (0, 1)),
    ),
    (Computed("int64", (), (2,)), 0, Computed("bool", (2, 1), (3, 3)), Computed("uint8", (0,), ())),
)


def _declared(attributes: str = "") -> FuncOp:
    text = f"func.func private @f(tensor<?xf32>, index, tensor<3xi32>) -> index attributes {{{attributes}}}"
    (function,) = parse_module(text, new_context()).ops
    assert isinstance(function, FuncOp)
    return function


def test_code_survives_printing() -> None:
    function = _declared()
    assert code_of(function) is None
    declare_code(function, CODE)
    (again,) = parse_module(str(function), new_context()).ops
    assert isinstance(again, FuncOp) and code_of(again) == CODE


def test_floats_survive_printing() -> None:
    text = "func.func private @f(tensor<2xf64>) -> index"
    (function,) = parse_module(text, new_context()).ops
    assert isinstance(function, FuncOp)
    declare_code(function, FLOATS)
    assert '"elementf f64 0 1"' in str(function) and '"select f64 2 0 1"' in str(function)
    (again,) = parse_module(str(function), new_context()).ops
    assert isinstance(again, FuncOp) and code_of(again) == FLOATS


@pytest.mark.parametrize(("text", "words"), [
    ('["element f32 1 0"]', "of other types"),
    ('["constantf i32 0"]', "of other types"),
    ('["elementf f32 1 0"]', "elementf of 32 bits reads i32"),
    ('["element i64 1 0"]', "element of 64 bits reads i32"),
    ("3 : i64", "no list of texts"),
    ("[3 : i64]", "no list of texts"),
    ('["element i32 1 3"]', "no element 3 of operand 1"),
    ('["element i32 0 0"]', "no element 0 of operand 0"),
    ('["size i64 1"]', "1 is not in 0..0"),
    ('["= 2"]', "2 is not in 0..1"),
    ('["addi"]', "not enough values"),
    ('["constant ix 3"]', "invalid literal"),
    ('["= int64 [1,] 0"]', "invalid literal"),
    ('["= int64 [] 0"]', "is not in"),
    ('["="]', "not enough values"),
    ('[""]', "not enough values"),
    ('["constant i32 x"]', "invalid literal"),
])  # fmt: skip
def test_text_that_is_no_code(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        code_of(_declared(f"{CODE_ATTRIBUTE} = {text}"))
