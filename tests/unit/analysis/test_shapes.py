"""Sizes of index values: arithmetic as polynomials, unknown ones by name, each asked for once."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp, ReturnOp

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir import dim as d
from fuseline.ir.context import new_context
from fuseline.ir.dim import Dim
from fuseline.ir.dim_json import to_name
from fuseline.ir.text import parse_module

MAIN = """func.func @main(%n: index {{fuseline.name = "n"}}, %m: index {{fuseline.name = "m"}},
    %t: tensor<?x4xf32> {{fuseline.dims = ["p", "4"]}},
    %i: tensor<2xindex>) -> (index, index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  {}
  return %r, %r : index, index
}}"""
N, M, P = d.symbol("n"), d.symbol("m"), d.symbol("p")


def _index(body: str) -> tuple[ShapeAnalysis, list[Dim]]:
    shapes = ShapeAnalysis({"n": N, "m": M, "p": P})
    (function,) = parse_module(MAIN.format(body), new_context()).ops
    assert isinstance(function, FuncOp)
    end = function.body.block.last_op
    assert isinstance(end, ReturnOp)
    return shapes, [shapes.index(value) for value in end.operands]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("%r = arith.remsi %n, %c3 : index", d.sub(N, d.mul(3, d.floor_div(N, 3)))),
        ("%r = arith.remui %n, %c3 : index", d.sub(N, d.mul(3, d.floor_div(N, 3)))),
        ("%r = arith.remsi %c3, %n : index", d.sub(3, d.mul(N, d.floor_div(3, N)))),
        ("%r = arith.ceildivsi %n, %c3 : index", d.ceil_div(N, 3)),
        ("%r = arith.ceildivui %n, %c3 : index", d.ceil_div(N, 3)),
        ("%r = arith.divui %n, %c3 : index", d.floor_div(N, 3)),
        ("%r = arith.subi %n, %m : index", d.sub(N, M)),
        ("%r = arith.muli %n, %m : index", d.mul(N, M)),
        ("%r = arith.minsi %n, %c3 : index", d.minimum(N, 3)),
        ("%r = arith.maxsi %n, %c3 : index", d.maximum(N, 3)),
        ("%r = tensor.dim %t, %c0 : tensor<?x4xf32>", P),
        ("%r = tensor.dim %t, %c1 : tensor<?x4xf32>", 4),
        ("%a = arith.index_cast %m : index to i64\n %r = arith.index_cast %a : i64 to index", M),
        ("%r = arith.constant 7 : index", 7),
    ],
)
def test_arithmetic_on_sizes(body: str, expected: Dim) -> None:
    assert _index(body)[1] == [expected, expected]


@pytest.mark.parametrize(
    "body", ["%r = tensor.extract %i[%c0] : tensor<2xindex>", "%r = tensor.dim %t, %n : tensor<?x4xf32>"]
)
def test_what_nobody_knows_is_one_size_with_its_origin(body: str) -> None:
    shapes, (first, second) = _index(body)
    assert first == second
    assert not isinstance(first, int)
    assert to_name(first) in shapes.origins
