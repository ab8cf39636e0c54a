"""The loops that a view answers: as its entry says, checked against the body, or derived where it says nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from xdsl.dialects.func import FuncOp

from fuseline.analysis.softmax_roles import SoftmaxRoles
from fuseline.dispatch.arm_entries import split_arms
from fuseline.dispatch.executable_entry import entry_of
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, FusedLoops, MemberLoops, OnlineReduction, Role
from fuseline.dispatch.loops_attribute import from_attribute, to_attribute
from fuseline.dispatch.view import DispatchView
from fuseline.errors import FuselineError
from fuseline.ir.build import dims_map
from fuseline.ir.context import new_context
from fuseline.ir.dim import symbol
from fuseline.ir.flow import ExecutableOp
from fuseline.passes.dispatch.clone_cheap_producers import CloneCheapProducersPass
from fuseline.passes.dispatch.form_dispatch_regions import FormDispatchRegionsPass
from fuseline.passes.dispatch.outline_executables import OutlineExecutablesPass
from fuseline.targets.cpu.target import CpuTarget
from tests.unit.passes.fusion.programs import Program


def _entry(p: Program) -> FuncOp:
    for each in (FormDispatchRegionsPass(), CloneCheapProducersPass(), OutlineExecutablesPass()):
        each.apply(new_context(), p.module)
    (executable,) = [op for op in p.module.ops if isinstance(op, ExecutableOp)]
    return entry_of(executable)


def _derived(p: Program) -> FusedLoops:
    entry = _entry(p)
    del entry.attributes[LOOPS_ATTRIBUTE]
    return DispatchView(entry).loops


def _crossed() -> Program:
    """A matrix, and what is read from it transposed."""
    p = Program((6, 6))
    return p.done(p.unary(p.unary(p.x[0]), permutation=(1, 0)))


def test_what_an_entry_says_is_answered():
    entry = _entry(_crossed())
    assert DispatchView(entry).loops == from_attribute(entry.attributes[LOOPS_ATTRIBUTE], {})


@pytest.mark.parametrize("loops", [FusedLoops(((6, 6),), (MemberLoops((0, 1)),) * 2), FusedLoops(((6,),), ())])
def test_other_loops_than_the_bodys_are_no_code(loops: FusedLoops):
    entry = _entry(_crossed())
    entry.attributes[LOOPS_ATTRIBUTE] = to_attribute(loops)
    with pytest.raises(FuselineError) as caught:
        CpuTarget("avx2", 1).build(entry)
    assert (caught.value.code, caught.value.node) == ("E0302", "main_dispatch_0_elementwise")


def test_rows_are_derived_and_what_is_not_kept_is_evaluated_in_place():
    p = Program((6, 5))
    e = p.unary(p.x[0])
    p.done(p.binary(e, p.reduce(e), dims_map(2, [0])))
    row = MemberLoops((0, None))
    assert _derived(p) == FusedLoops(((6,),), (MemberLoops((), Role.INLINED), row, row), classes=((0, 1),) * 3)


def test_a_product_is_derived_to_run_over_what_it_does_not_sum():
    p = Program((6, 8), (8, 5))
    p.done(p.unary(p.matmul(p.x[0], p.x[1])))
    assert _derived(p) == FusedLoops(
        ((6, 5),), (MemberLoops((0, 1, None)), MemberLoops((0, 1))), classes=((0, 1, 2), (0, 1))
    )


def test_what_is_read_at_other_places_is_in_no_derived_grid():
    p = Program((6, 6))
    total = p.reduce(p.x[0])
    p.done(p.binary(p.binary(p.x[0], total, dims_map(2, [0])), total, dims_map(2, [1])))
    assert _derived(p).grids == ((),)


def test_what_reads_one_argument_side_by_side_is_derived_to_go_along_it():
    p = Program((70, 5))
    p.done(p.unary(p.x[0]), p.reduce(p.x[0]))
    row = MemberLoops((0, None))
    assert _derived(p) == FusedLoops(((70,),), (row, row), along=((0, 0),), classes=((0, 1),) * 2)
    p = Program((70, 5))
    e = p.unary(p.x[0])
    p.done(p.binary(e, p.x[0]), p.reduce(e))
    assert _derived(p).along == ()


def test_what_reads_one_inlined_value_is_derived_to_share_its_loops():
    p = Program((70, 5))
    e = p.unary(p.x[0])
    p.done(p.unary(e), p.reduce(e))
    row = MemberLoops((0, None))
    assert _derived(p) == FusedLoops(((70,),), (MemberLoops((), Role.INLINED), row, row), classes=((0, 1),) * 3)


def test_a_product_of_no_softmax_is_not_met_block_by_block():
    p = Program((6, 8), (8, 5))
    e = p.unary(p.x[0])
    p.done(p.matmul(p.binary(e, p.reduce(e), dims_map(2, [0])), p.x[1]))
    entry = _entry(p)
    online = OnlineReduction(((0, 1), (1, 1), (2, 1), (3, 2)), SoftmaxRoles(1, (0,), 1, 3), 64)
    said = from_attribute(entry.attributes[LOOPS_ATTRIBUTE], {})
    entry.attributes[LOOPS_ATTRIBUTE] = to_attribute(replace(said, online=(online,)))
    with pytest.raises(FuselineError, match="member 1 is the maximum of no softmax") as caught:
        CpuTarget("avx2", 1).build(entry)
    assert (caught.value.code, caught.value.node) == ("E0302", "main_dispatch_0_contraction")


def _attention() -> Program:
    """Formed to stream: the scores, their maximum, the exponentials, their sum, the quotients, the product."""
    p = Program(("q", 32), (32, "k"), ("k", 32))
    p.done(p.matmul(p.softmax(p.matmul(p.x[0], p.x[1])), p.x[2]))
    ctx = new_context()
    ctx.target = replace(ctx.target, streamed_points=64)
    FormDispatchRegionsPass().apply(ctx, p.module)
    return p


@pytest.mark.parametrize("change", [{"exponentials": (4,)}, {"exponentials": ()}, {"total": 1}, {"product": 3}])
def test_a_softmax_of_other_members_is_not_met_block_by_block(change: dict[str, Any]):
    entry = _entry(_attention())
    said = DispatchView(entry).loops
    (online,) = said.online
    wrong = replace(online, roles=replace(online.roles, **change))
    entry.attributes[LOOPS_ATTRIBUTE] = to_attribute(replace(said, online=(wrong,)))
    with pytest.raises(FuselineError, match="the softmax of member 1 is not that of members") as caught:
        CpuTarget("avx2", 1).build(entry)
    assert (caught.value.code, caught.value.node) == ("E0302", entry.sym_name.data)


def test_a_softmax_is_derived_to_stream():
    loops = _derived(_attention())
    (online,) = loops.online
    last = len(loops.members) - 1
    assert online.roles == SoftmaxRoles(last - 4, (last - 3,), last - 2, last)
    assert loops.grids == ((symbol("s0"),),)


def test_each_arm_says_its_part_in_its_own_sizes():
    p = Program((6, 8), (8, "n"), (8, "m"))
    p.done(p.unary(p.matmul(p.x[0], p.x[1])), p.matmul(p.x[0], p.x[2]))
    entry = _entry(p)
    assert len(from_attribute(entry.attributes[LOOPS_ATTRIBUTE], DispatchView(entry).shapes.symbols).grids) == 2
    views = [DispatchView(arm.entry) for arm in split_arms(entry)]
    assert [view.said_loops.grids for view in views if view.said_loops] == [((6, symbol("s0")),)] * 2
    assert all(view.loops is view.said_loops for view in views)
