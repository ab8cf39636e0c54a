"""Regions that are opened: their ops stand in their place, and what they shared is kept; malformed ones are refused."""

from __future__ import annotations

import re

import pytest
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, FusedLoops, MemberLoops
from fuseline.dispatch.view import ROOT_ATTRIBUTE
from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.ir.flow import DispatchRegionOp
from fuseline.ir.text import parse_module
from fuseline.passes.dispatch.open_regions import OpenedRegion, dissolve, open_regions

T = "tensor<9x7xf32>"
SAID = 'fuseline.loops = {grids = [["9", "7"]], members = [array<i64: 0, 1>, array<i64: 0, 1>]}'


def _pointwise(name: str, source: str, op: str = "math.exp") -> str:
    plain = "affine_map<(i, j) -> (i, j)>"
    return f"""%{name} = linalg.generic {{
        indexing_maps = [{plain}, {plain}], iterator_types = ["parallel", "parallel"]}}
        ins(%{source} : {T}) outs(%e : {T}) {{
      ^bb0(%in: f32, %out: f32):
        %v = {op} %in : f32
        linalg.yield %v : f32
      }} -> {T}
"""


LINE = re.compile(r":(\d+):\d+$")
BODY = _pointwise("a", "x") + _pointwise("b", "a", "math.absf")


def _region(name: str, body: str, returned: str = "%b", attributes: str = "", results: int = 1) -> str:
    said = f" attributes {{{attributes}}}" if attributes else ""
    types = ", ".join([T] * results)
    end = f"flow.return {returned} : {', '.join([T] * (returned.count('%')))}" if returned else "flow.return"
    many = f":{results}" if results > 1 else ""
    return f"%{name}{many} = flow.dispatch.region -> ({types}){said} {{\n{body}\n{end}\n}}\n"


def _block(text: str, returned: str) -> Block:
    ctx = new_context()
    ctx.allow_unregistered = True
    types = ", ".join([T] * returned.count("%"))
    module: ModuleOp = parse_module(
        f"func.func @main(%x: {T}) -> ({types}) {{\n%e = tensor.empty() : {T}\n{text}\nreturn {returned} : {types}\n}}",
        ctx,
        verify=False,
    )
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    return function.body.block


def _opened(block: Block) -> list[OpenedRegion]:
    found = open_regions(block, ShapeAnalysis({}))
    block.verify()
    return found


def _names(block: Block) -> list[str]:
    return [op.name for op in block.ops]


def test_ops_stand_where_the_region_stood_in_order():
    block = _block(_region("r", BODY) + _pointwise("c", "r"), "%c")
    (region,) = _opened(block)
    generics = [op for op in block.ops if op.name == "linalg.generic"]
    assert _names(block) == ["tensor.empty", *["linalg.generic"] * 3, "func.return"]
    assert list(region.members) == generics[:2] and generics[2].operands[0] is generics[1].results[0]


def test_results_are_what_was_returned_whatever_the_order():
    block = _block(_region("r", BODY, "%b, %a, %b", results=3), "%r#0, %r#1, %r#2")
    (region,) = _opened(block)
    first, second = (op.results[0] for op in region.members)
    end = block.last_op
    assert isinstance(end, ReturnOp) and list(end.operands) == [second, first, second]


def test_loops_are_those_that_were_said_or_derived():
    said, derived = _opened(_block(_region("r", BODY, attributes=SAID) + _region("s", _pointwise("b", "r")), "%r, %s"))
    assert (said.loops, said.derived) == (FusedLoops(((9, 7),), (MemberLoops((0, 1)),) * 2), False)
    assert derived.derived and derived.loops.grids == ((9, 7),) and len(derived.loops.members) == 1


def test_members_are_no_roots_any_more():
    block = _block(_region("r", BODY), "%r")
    (region,) = [op for op in block.ops if isinstance(op, DispatchRegionOp)]
    for op in region.body.block.ops:
        op.attributes[ROOT_ATTRIBUTE] = UnitAttr()
    (opened,) = _opened(block)
    assert all(ROOT_ATTRIBUTE not in op.attributes for op in opened.members)


@pytest.mark.parametrize(
    "body",
    ['%b = "test.opaque"(%x) : (tensor<9x7xf32>) -> tensor<9x7xf32>', f"%b = tensor.empty() : {T}"],
    ids=["unknown", "no members"],
)
def test_regions_that_fusion_does_not_know_stay(body: str):
    block = _block(_region("r", body) + _region("s", _pointwise("b", "r")), "%s")
    (opened,) = _opened(block)
    assert len(opened.members) == 1 and _names(block).count("flow.dispatch.region") == 1


def test_a_program_without_regions_is_left_alone():
    block = _block(BODY, "%b")
    before = list(block.ops)
    assert _opened(block) == [] and list(block.ops) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_region("r", BODY, ""), "does not end with flow.return of its results"),
        (_region("r", BODY, "%a, %b"), "does not end with flow.return of its results"),
        (_region("r", _region("b", BODY)), "another dispatch region inside"),
        (_region("r", BODY, attributes=SAID.replace(", array<i64: 0, 1>]", "]")), "has 1 members, the body has 2"),
        (_region("r", "^bb0(%z: tensor<9x7xf32>):\n" + BODY), "takes arguments"),
        (_region("r", BODY, attributes='fuseline.members = ["one", "two"], fuseline.loops = {}'), "read"),
    ],
    ids=["nothing returned", "too much returned", "nested", "members", "arguments", "loops"],
)
def test_malformed_regions_are_refused_and_nothing_is_opened(text: str, message: str):
    block = _block(_region("first", BODY) + text, "%r")
    before = _names(block)
    with pytest.raises(FuselineError) as caught:
        open_regions(block, ShapeAnalysis({}))
    error = caught.value
    assert error.code == "E0302" and message in error.message
    place = error.node or ""
    assert place == "two" if "two" in text else LINE.search(place), place
    assert _names(block) == before


def test_one_region_is_dissolved_by_itself():
    block = _block(_region("r", BODY, attributes=SAID) + _region("s", _pointwise("b", "r")), "%s")
    region = next(op for op in block.ops if isinstance(op, DispatchRegionOp))
    dissolve(region)
    assert _names(block) == ["tensor.empty", *["linalg.generic"] * 2, "flow.dispatch.region", "func.return"]
    assert not any(LOOPS_ATTRIBUTE in op.attributes for op in block.ops)
    block.verify()
