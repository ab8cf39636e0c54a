"""Code of host steps: what is read as it was written, and what is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fuseline.scalar_code import Computed, ScalarCode, ScalarOp, check_code, code_from_json, types_of

OPS = [["element", 32, [0, 3]], ["constant", 32, [-9]], ["size", 64, [1]], ["minsi", 32, [0, 1]], ["extsi", 64, [3]]]
ROW = ["int64", [1, 2], [4, 2]]


def _read(ops: Any = OPS, operands: Any = (2, ROW), sizes: Any = (5, 6)) -> ScalarCode:
    return code_from_json([ops, operands, sizes], int)


def test_what_is_written_is_read() -> None:
    code = _read()
    assert code.ops[3] == ScalarOp("minsi", 32, (0, 1)) and code.operands == (2, Computed("int64", (1, 2), (4, 2)))
    assert code_from_json(json.loads(json.dumps(code)), int) == code


@pytest.mark.parametrize("op", [
    ["pow", 32, [0, 1]], ["addi", 32, [0]], ["addi", 32, [0, 1, 2]], ["addi", 31, [0, 1]], ["addi", True, [0, 1]],
    ["addi", 32, [0, 5]], ["addi", 32, [-1, 0]], ["addi", 32, [0, 1.0]], ["addi", 32, [0, True]], [3, 32, [0, 1]],
    ["constant", 64, [1 << 63]], ["constant", 64, ["1"]], ["element", 32, [0, -1]], ["element", 32, [0]],
    ["size", 64, [-1]], ["select", 32, [0, 1]], [[], 32, [0]],
])  # fmt: skip
def test_an_operation_that_is_none(op: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        _read([*OPS, op])


@pytest.mark.parametrize("op", [
    ["addi", 64, [0, 1]], ["addi", 32, [0, 2]], ["slt", 32, [0, 1]], ["slt", 1, [0, 2]], ["absi", 16, [0]],
    ["select", 32, [0, 0, 1]], ["select", 64, [5, 0, 1]], ["select", 32, [5, 0, 2]],
])  # fmt: skip
def test_an_operation_whose_bits_are_not_those_of_its_operands(op: Any) -> None:
    right = [["eq", 1, [0, 1]], ["select", 32, [5, 0, 1]], ["trunci", 8, [2]], ["extui", 64, [0]]]
    assert len(_read([*OPS, *right]).ops) == 9
    with pytest.raises(ValueError, match="does not fit its operands"):
        _read([*OPS, right[0], op])


FLOATS = [
    ["elementf", 32, [0, 3]], ["constantf", 64, [-1]], ["extf", 64, [0]], ["addf", 64, [1, 2]], ["fptosi", 8, [3]],
    ["oltf", 1, [1, 3]], ["select", 64, [5, 1, 3]], ["sitofp", 32, [4]], ["floor", 64, [6]],
]  # fmt: skip


@pytest.mark.parametrize("op", [
    ["addf", 32, [0, 1]], ["addf", 64, [1, 4]], ["addi", 32, [0, 0]], ["extf", 32, [0]], ["extf", 64, [1]],
    ["truncf", 64, [0]], ["truncf", 32, [0]], ["fptosi", 32, [4]], ["fptosi", 1, [0]], ["sitofp", 32, [0]],
    ["uitofp", 16, [4]], ["oltf", 1, [4, 4]], ["oltf", 1, [0, 1]], ["oltf", 8, [0, 0]], ["eq", 1, [0, 0]],
    ["select", 64, [5, 1, 0]], ["select", 8, [5, 4, 0]], ["bitcast", 32, [0]], ["extui", 64, [0]], ["sqrt", 16, [0]],
    ["elementf", 16, [0, 0]], ["constantf", 8, [0]], ["floor", 8, [4]],
])  # fmt: skip
def test_floats_and_integers_are_told_apart(op: Any) -> None:
    code = _read(FLOATS, [["int8", [], [4]]])
    assert types_of(code.ops) == ["f32", "f64", "f64", "f64", "i8", "i1", "f64", "f32", "f64"]
    assert code_from_json(json.loads(json.dumps(code)), int) == code
    with pytest.raises(ValueError, match="fit its operands|no floats have"):
        _read([*FLOATS, op])


@pytest.mark.parametrize("number", [0, 1, 7])
def test_operators_get_no_floats(number: int) -> None:
    for dtype in ("int32", "int64", "uint64", "float32"):
        with pytest.raises(ValueError, match="elements, or of other bits|no type of integers"):
            _read(FLOATS, [[dtype, [], [number]]])


@pytest.mark.parametrize(("type_", "fits"), [("f32", True), ("f64", False), ("i32", False)])
def test_floats_are_read_from_floats(type_: str, fits: bool) -> None:
    code = _read(FLOATS, [])
    if fits:
        check_code(code, [(type_, 4)], 0)
    else:
        with pytest.raises(ValueError, match=f"elementf of 32 bits reads {type_}"):
            check_code(code, [(type_, 4)], 0)


@pytest.mark.parametrize("operand", [
    -1, True, None, "x", ["float32", [], [4]], ["object", [], [4]], ["int64", [2], [4]], ["int64", [-1], []],
    ["int64", [], [5]], ["int64", [], [3]], ["bool", [], [4]], ["int64", [], [-1]], ["int64", [], ["4"]],
    [8, [], [4]], ["int64", []],
])  # fmt: skip
def test_an_operand_that_is_none(operand: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        _read(operands=[operand])


@pytest.mark.parametrize("data", [None, [], [OPS, []], [OPS, [], [], []], "abcd", 3, [3, [], []]])
def test_code_that_is_none(data: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        code_from_json(data, int)


def test_what_it_reads_must_be_there() -> None:
    code = _read()
    nine = ("f64", 9)
    check_code(code, [("i32", 4), None, None], 2)
    for elements, sizes, words in (
        ([("i32", 3), nine, nine], 2, "no element 3 of operand 0"),
        ([None, nine, nine], 2, "no element 3 of operand 0"),
        ([("f32", 4), nine, nine], 2, "element of 32 bits reads f32"),
        ([], 2, "0 is not in"),
        ([("i32", 4), nine, nine], 1, "1 is not in 0..0"),
        ([("i32", 4), nine], 2, "2 is not in 0..1"),
    ):
        with pytest.raises(ValueError, match=words):
            check_code(code, elements, sizes)
