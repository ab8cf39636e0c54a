"""Code of host steps: what is read as it was written, and what is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fuseline.scalar_code import Computed, ScalarCode, ScalarOp, check_code, code_from_json

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
    check_code(code, [4, None, None], 2)
    for elements, sizes, words in (
        ([3, 9, 9], 2, "no element 3 of operand 0"),
        ([None, 9, 9], 2, "no element 3 of operand 0"),
        ([], 2, "0 is not in"),
        ([4, 9, 9], 1, "1 is not in 0..0"),
        ([4, 9], 2, "2 is not in 0..1"),
    ):
        with pytest.raises(ValueError, match=words):
            check_code(code, elements, sizes)
