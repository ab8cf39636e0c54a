"""Sizes as index values of a function: read off where they come from, once each."""

from __future__ import annotations

import pytest
from xdsl.dialects import tensor
from xdsl.dialects.func import FuncOp

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.errors import FuselineError
from fuseline.ir import dim as d
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.passes.dispatch.sizes import SizeBuilder

TEXT = """func.func @main(%x: tensor<?x4xf32> {fuseline.dims = ["n", "4"]}, %k: index, %y: tensor<3x5xf32>) {
  %e = tensor.empty(%k) : tensor<?x2xf32>
}"""


def _function() -> FuncOp:
    (function,) = parse_module(TEXT, new_context(), verify=False).ops
    assert isinstance(function, FuncOp)
    return function


def test_a_size_of_an_argument_is_read_once_at_the_start():
    function = _function()
    sizes = SizeBuilder(function, ShapeAnalysis())
    x, _, y = function.args
    (first,), (again,) = sizes.dynamic(x), sizes.dynamic(x)
    assert first is again and isinstance(first.owner, tensor.DimOp) and first.owner.source is x
    assert list(function.body.block.ops).index(first.owner) < 2
    assert sizes.dynamic(y) == []


def test_a_size_that_is_given_is_the_value_itself():
    function = _function()
    sizes = SizeBuilder(function, ShapeAnalysis())
    made = next(op for op in function.body.block.ops if isinstance(op, tensor.EmptyOp))
    assert sizes.dynamic(made.tensor) == [function.args[1]]
    assert sizes.dynamic(function.args[1]) == []


def test_a_size_of_nothing_is_refused():
    with pytest.raises(FuselineError, match=r"E0107.*nothing in the function has the size elsewhere"):
        SizeBuilder(_function(), ShapeAnalysis()).size(d.symbol("elsewhere", 0))
