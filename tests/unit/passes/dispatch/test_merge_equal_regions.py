"""Regions of one op that compute the same from the same are one."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

from fuseline.ir.context import new_context
from fuseline.ir.flow import DispatchRegionOp
from fuseline.ir.provenance import provenance
from fuseline.ir.text import parse_module
from fuseline.passes.dispatch.merge_equal_regions import MergeEqualRegionsPass

SLICE = "tensor.extract_slice %SOURCE[0, FIRST] [4, 2] [1, 1] : tensor<4x6xf32> to tensor<4x2xf32>"


def _region(name: str, source: str = "x", first: int = 0, more: str = "") -> str:
    body = SLICE.replace("SOURCE", source).replace("FIRST", str(first))
    return f"""  %{name} = flow.dispatch.region -> (tensor<4x2xf32>) {{
    %s = {body} loc("{name}")
    {more or "flow.return %s : tensor<4x2xf32>"}
  }} loc("{name}")
"""


def _merged(*regions: str) -> tuple[list[DispatchRegionOp], list[int]]:
    """The regions afterwards, and which of them each of the results `%a` and `%b` now is."""
    text = f"""func.func @main(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {{
{"".join(regions)}  return %a, %b : tensor<4x2xf32>, tensor<4x2xf32>
}}"""
    module = parse_module(text, new_context())
    MergeEqualRegionsPass().apply(new_context(), module)
    module.verify()
    (function,) = [op for op in module.ops if isinstance(op, FuncOp)]
    left = [op for op in module.walk() if isinstance(op, DispatchRegionOp)]
    end = function.body.block.last_op
    assert end is not None
    return left, [left.index(value.owner) for value in end.operands]  # pyright: ignore[reportArgumentType]


def test_the_first_takes_over_all_readers_and_where_both_come_from() -> None:
    left, results = _merged(_region("a"), _region("b"))
    assert results == [0, 0] and len(left) == 1
    assert set(provenance(left[0])) == {"a", "b"}


@pytest.mark.parametrize("other", [_region("b", first=1), _region("b", source="y")])
def test_what_computes_something_else_stays(other: str) -> None:
    assert _merged(_region("a"), other)[1] == [0, 1]


def test_regions_of_several_ops_stay() -> None:
    more = """%n = math.absf %s : tensor<4x2xf32>
    flow.return %n : tensor<4x2xf32>"""
    assert _merged(_region("a", more=more), _region("b", more=more))[1] == [0, 1]
