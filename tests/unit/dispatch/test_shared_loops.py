"""What `verify-each` derives from a body, against what a dispatch says of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr

from fuseline.cli.run_passes import run_passes
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, FusedLoops, MemberLoops, OnlineReduction, Role
from fuseline.dispatch.loops_attribute import from_attribute, to_attribute
from fuseline.dispatch.verify_loops import verify_loops
from fuseline.dispatch.view import MEMBERS_ATTRIBUTE
from fuseline.errors import FuselineError
from fuseline.ir.build import dims_map
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.dim import symbol
from fuseline.ir.flow import DispatchRegionOp
from fuseline.ir.text import print_module, text_location
from fuseline.passes.dispatch.form_dispatch_regions import FormDispatchRegionsPass
from tests.unit.passes.fusion.programs import Program


def _formed(p: Program) -> tuple[ModuleOp, CompilerContext, DispatchRegionOp]:
    ctx = new_context()
    ctx.target = replace(ctx.target, streamed_points=64)
    FormDispatchRegionsPass().apply(ctx, p.module)
    (region,) = [op for op in p.module.walk() if isinstance(op, DispatchRegionOp)]
    return p.module, ctx, region


def _claims(p: Program, loops: FusedLoops) -> tuple[str, str]:
    """The code and the message about a program of one dispatch that says `loops`."""
    module, ctx, region = _formed(p)
    verify_loops(module, ctx)
    region.attributes[LOOPS_ATTRIBUTE] = to_attribute(loops)
    with pytest.raises(FuselineError) as caught:
        verify_loops(module, ctx)
    members = region.attributes[MEMBERS_ATTRIBUTE]
    assert isinstance(members, ArrayAttr) and StringAttr(caught.value.node or "") == members.data[-1]
    del region.attributes[MEMBERS_ATTRIBUTE]
    with pytest.raises(FuselineError) as nameless:
        verify_loops(module, ctx)
    assert nameless.value.node == text_location(region.location)
    return caught.value.code, caught.value.message


def _rows() -> Program:
    """exp, the sums of its rows, the quotient."""
    p = Program((6, 6))
    e = p.unary(p.x[0])
    return p.done(p.binary(e, p.reduce(e), dims_map(2, [0])))


def _crossed() -> Program:
    """exp, and what is read from it transposed."""
    p = Program((6, 6))
    return p.done(p.unary(p.unary(p.x[0]), permutation=(1, 0)))


ROW, COLUMN, BOTH = MemberLoops((0, None)), MemberLoops((None, 0)), MemberLoops((0, 1))
INLINED = MemberLoops((), Role.INLINED)
SHARED = "is no loop that all members share"


def test_a_sum_that_is_read_in_place_wants_no_more_than_its_row():
    module, ctx, region = _formed(_rows())
    region.attributes[LOOPS_ATTRIBUTE] = to_attribute(FusedLoops(((6,),), (ROW, INLINED, ROW)))
    verify_loops(module, ctx)


@pytest.mark.parametrize(
    ("members", "grid", "why"),
    [
        ((ROW, COLUMN, ROW), (6,), SHARED),  # two classes
        ((COLUMN, COLUMN, COLUMN), (6,), SHARED),  # the sums reduce along it
        ((ROW, ROW, MemberLoops((None, None))), (6,), "is a loop of 2 of 3 members"),
        ((COLUMN, INLINED, COLUMN), (6,), SHARED),  # the sum that the quotient evaluates wants all columns of exp
        ((ROW, ROW, ROW), (symbol("n"),), "runs to n"),
    ],
)
def test_what_rows_do_not_share(members: tuple[MemberLoops, ...], grid: tuple[int, ...], why: str):
    code, message = _claims(_rows(), FusedLoops((grid,), members))
    assert code == "E0901" and why in message


def test_a_transposed_reader_shares_the_other_loop():
    module, ctx, region = _formed(_crossed())
    region.attributes[LOOPS_ATTRIBUTE] = to_attribute(FusedLoops(((6, 6),), (BOTH, MemberLoops((1, 0)))))
    verify_loops(module, ctx)
    code, message = _claims(_crossed(), FusedLoops(((6, 6),), (BOTH, BOTH)))
    assert code == "E0901" and SHARED in message


def test_a_value_and_its_transposed_share_nothing():
    p = Program((6, 6))
    e = p.unary(p.x[0])
    code, message = _claims(p.done(p.binary(e, e, dims_map(2, [1, 0]))), FusedLoops(((6, 6),), (BOTH, BOTH)))
    assert code == "E0901" and SHARED in message


def test_members_that_are_not_those_of_the_body_are_no_ir():
    assert _claims(_rows(), FusedLoops(((6,),), (ROW, ROW)))[0] == "E0302"


def _attention() -> Program:
    p = Program(("q", 32), (32, "k"), ("k", 32))
    return p.done(p.matmul(p.softmax(p.matmul(p.x[0], p.x[1])), p.x[2]))


@pytest.mark.parametrize("change", ["one less", "maximum", "total", "product"])
def test_an_online_reduction_is_all_that_lies_along_its_loop(change: str):
    _, _, region = _formed(_attention())
    loops = from_attribute(region.attributes[LOOPS_ATTRIBUTE], {})
    (online,) = loops.online
    wrong = (
        OnlineReduction(online.loops[1:], online.roles, 64)
        if change == "one less"
        else replace(online, roles=replace(online.roles, **{change: 0}))
    )
    code, message = _claims(_attention(), replace(loops, online=(wrong,)))
    assert code == "E0901" and "online" in message


def _side_by_side() -> Program:
    """exp and the sums of rows, of one argument."""
    p = Program((80, 80))
    return p.done(p.unary(p.x[0]), p.reduce(p.x[0]))


def test_parts_that_no_value_joins_may_share_any_loops_that_run_equally_far():
    module, ctx, region = _formed(_side_by_side())
    said = from_attribute(region.attributes[LOOPS_ATTRIBUTE], {})
    assert said == FusedLoops(((80,),), (ROW, ROW), along=((0, 0),), classes=((0, 1),) * 2)
    for first in (ROW, COLUMN):
        region.attributes[LOOPS_ATTRIBUTE] = to_attribute(replace(said, members=(first, ROW), classes=()))
        verify_loops(module, ctx)


@pytest.mark.parametrize(
    ("members", "why"),
    [((ROW, COLUMN), SHARED), ((ROW, MemberLoops((None, None))), "is a loop of 1 of 2 members")],
)
def test_each_part_has_to_share_the_grid_itself(members: tuple[MemberLoops, ...], why: str):
    code, message = _claims(_side_by_side(), FusedLoops(((80,),), members, along=((0, 0),)))
    assert code == "E0901" and why in message


def test_opt_verifies_the_loops_of_text():
    module, ctx, _ = _formed(_rows())
    text = print_module(module, ctx)
    assert "array<i64: 0, -1>" in run_passes(text, "dead-code", verify_each=True)
    with pytest.raises(FuselineError, match="E0901"):
        run_passes(text.replace("array<i64: 0, -1>", "array<i64: -1, 0>"), "dead-code", verify_each=True)
