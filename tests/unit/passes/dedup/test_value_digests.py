"""Digests tell how a value is made, not with which constants, extents or order of commutative operands."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith, linalg
from xdsl.dialects.func import FuncOp

from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.passes.dedup.value_digests import ValueDigests

CODE = {
    "ROWS": "3",
    "COLUMNS": "5",
    "TYPE": "f32",
    "FACTOR": "2.0",
    "MAP": "affine_map<(i, j) -> (i, j)>",
    "LAST": '"parallel"',
    "COMPARE": "ogt, %a, %b",
    "MADE": "arith.mulf %s, %c",
}
PROGRAM = """func.func @main(%x: tensor<ROWSxCOLUMNSxTYPE>, %y: tensor<COLUMNSxTYPE>) -> tensor<ROWSxCOLUMNSxTYPE> {
  %e = tensor.empty() : tensor<ROWSxCOLUMNSxTYPE>
  %r = linalg.generic {indexing_maps = [MAP, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", LAST]}
      ins(%x, %y : tensor<ROWSxCOLUMNSxTYPE>, tensor<COLUMNSxTYPE>) outs(%e : tensor<ROWSxCOLUMNSxTYPE>) {
  ^bb0(%a: TYPE, %b: TYPE, %o: TYPE):
    %c = arith.constant FACTOR : TYPE
    %t = arith.cmpf COMPARE : TYPE
    %s = arith.select %t, %a, %b : TYPE
    %v = MADE : TYPE
    linalg.yield %v : TYPE
  } -> tensor<ROWSxCOLUMNSxTYPE>
  return %r : tensor<ROWSxCOLUMNSxTYPE>
}"""


def _entry(**changed: str) -> FuncOp:
    text = PROGRAM
    for name, value in {**CODE, **changed}.items():
        text = text.replace(name, value)
    (entry,) = parse_module(text, new_context()).ops
    assert isinstance(entry, FuncOp)
    return entry


def _result(**changed: str) -> tuple[bool, int]:
    """The key of what the generic makes."""
    entry = _entry(**changed)
    (made,) = (op for op in entry.walk() if isinstance(op, linalg.ops.GenericOp))
    return ValueDigests(entry).of(made.results[0])


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"FACTOR": "3.0"},
        {"ROWS": "7", "COLUMNS": "9"},
        {"MADE": "arith.mulf %c, %s"},
    ],
)
def test_constants_extents_and_commutative_order_do_not_count(changed: dict[str, str]):
    assert _result(**changed) == _result()


@pytest.mark.parametrize(
    "changed",
    [
        {"TYPE": "f64"},
        {"MAP": "affine_map<(i, j) -> (j, i)>", "ROWS": "5"},
        {"LAST": '"reduction"'},
        {"COMPARE": "olt, %a, %b"},
        {"COMPARE": "ogt, %b, %a"},
        {"MADE": "arith.addf %s, %c"},
        {"MADE": "arith.mulf %a, %c"},
    ],
)
def test_what_is_computed_of_what_counts(changed: dict[str, str]):
    assert _result(**changed) != _result()


def test_the_order_counts_where_an_op_does_not_commute():
    assert _result(MADE="arith.subf %s, %c") != _result(MADE="arith.subf %c, %s")


def test_constants_come_last():
    entry = _entry()
    digests = ValueDigests(entry)
    (constant,) = (op for op in entry.walk() if isinstance(op, arith.ConstantOp))
    (chosen,) = (op for op in entry.walk() if isinstance(op, arith.SelectOp))
    values = [constant.result, chosen.result, *chosen.operands]
    assert max(values, key=digests.of) is constant.result
    assert [digests.of(value)[0] for value in values] == [True, False, False, False, False]


def test_arguments_are_told_apart_by_rank():
    entry = _entry()
    digests = ValueDigests(entry)
    assert len({digests.of(argument) for argument in entry.body.block.args}) == 2
