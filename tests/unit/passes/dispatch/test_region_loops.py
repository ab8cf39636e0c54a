"""The loops that a region and its executable say their members share."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects.builtin import UnitAttr

from fuseline.dispatch.executable_entry import entry_of
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, FusedLoops, MemberLoops
from fuseline.dispatch.loops_attribute import from_attribute, to_attribute
from fuseline.errors import FuselineError
from fuseline.ir.build import dims_map
from fuseline.ir.context import new_context
from fuseline.ir.dim import symbol
from fuseline.ir.flow import DispatchOp, DispatchRegionOp, ExecutableOp
from fuseline.passes.dispatch.clone_cheap_producers import CloneCheapProducersPass
from fuseline.passes.dispatch.form_dispatch_regions import FormDispatchRegionsPass
from fuseline.passes.dispatch.outline_executables import OutlineExecutablesPass
from tests.unit.passes.fusion.programs import Program


def _formed(p: Program, **limits: int) -> list[FusedLoops]:
    ctx = new_context()
    ctx.target = replace(ctx.target, **limits)
    FormDispatchRegionsPass().apply(ctx, p.module)
    return [
        from_attribute(op.attributes[LOOPS_ATTRIBUTE], {}) for op in p.module.walk() if isinstance(op, DispatchRegionOp)
    ]


def _outlined(p: Program) -> list[FusedLoops]:
    ctx = new_context()
    CloneCheapProducersPass().apply(ctx, p.module)
    OutlineExecutablesPass().apply(ctx, p.module)
    assert not any(LOOPS_ATTRIBUTE in op.attributes for op in p.module.walk() if isinstance(op, DispatchOp))
    return [
        from_attribute(entry_of(op).attributes[LOOPS_ATTRIBUTE], {})
        for op in p.module.walk()
        if isinstance(op, ExecutableOp)
    ]


def test_members_share_the_rows_and_keep_the_columns_to_themselves():
    p = Program((6, 5))
    e = p.unary(p.x[0])
    p.done(p.binary(e, p.reduce(e), dims_map(2, [0])))
    expected = FusedLoops(((6,),), (MemberLoops((0, None)),) * 3, classes=((0, 1),) * 3)
    assert _formed(p) == [expected]
    assert _outlined(p) == [expected]


def test_a_transposed_reader_runs_over_the_same_grid_in_another_order():
    p = Program((6, 5))
    p.done(p.unary(p.unary(p.x[0]), permutation=(1, 0)))
    (loops,) = _formed(p)
    first, second = (member.grid_loops for member in loops.members)
    assert sorted(loops.grids[0], key=str) == [5, 6]
    assert second == tuple(reversed(first))


def test_an_outlined_size_has_the_name_that_the_executable_gives_it():
    p = Program(("rows", 5))
    p.done(p.unary(p.x[0]))
    assert [loops.grids for loops in _formed(p)] == [((symbol("rows"), 5),)]
    assert [loops.grids for loops in _outlined(p)] == [((symbol("s0"), 5),)]


def test_independent_products_are_arms_with_a_grid_each():
    p = Program((6, 8), (8, 5), (8, 7))
    p.done(p.matmul(p.x[0], p.x[1]), p.matmul(p.x[0], p.x[2]))
    (loops,) = _formed(p)
    assert set(loops.grids) == {(6, 5), (6, 7)}
    assert [(loops.grids[member.arm][1], member.grid_loops) for member in loops.members] == [
        (5, (0, 1, None)),
        (7, (0, 1, None)),
    ]
    assert _outlined(p) == [loops]


def test_a_softmax_that_streams_says_which_loops_are_met_block_by_block():
    p = Program(("q", 32), (32, "k"), ("k", 32))
    p.done(p.matmul(p.softmax(p.matmul(p.x[0], p.x[1])), p.x[2]))
    (loops,) = _formed(p, streamed_points=64)
    (online,) = loops.online
    assert loops.grids == ((symbol("q"),),)
    assert (online.product, online.points) == (len(loops.members) - 1, 64)
    assert {member for member, _ in online.loops} == {
        i for i, member in enumerate(loops.members) if len(member.grid_loops) > 1
    }
    assert all(loops.members[member].grid_loops[loop] is None for member, loop in online.loops)


def test_a_softmax_that_fits_the_scratch_says_that_it_could_stream_too():
    p = Program((512, 32), (32, 100), (100, 32))
    p.done(p.matmul(p.softmax(p.matmul(p.x[0], p.x[1])), p.x[2]))
    (loops,) = _formed(p, streamed_points=64)
    assert [(online.product, online.points) for online in loops.online] == [(len(loops.members) - 1, 64)]
    assert _outlined(p) == [loops]


def test_loops_that_are_not_those_of_the_body_stop_the_outlining():
    p = Program((6, 5))
    p.done(p.unary(p.x[0]))
    _formed(p)
    (region,) = [op for op in p.module.walk() if isinstance(op, DispatchRegionOp)]
    region.attributes[LOOPS_ATTRIBUTE] = to_attribute(FusedLoops(((6, 4),), (MemberLoops((0, 1)),)))
    with pytest.raises(FuselineError, match="loop 1 runs to 5, its grid loop to 4") as caught:
        _outlined(p)
    assert (caught.value.code, caught.value.node) == ("E0302", "main_dispatch_0_elementwise")


def test_loops_that_do_not_read_stop_the_outlining():
    p = Program((6, 5))
    p.done(p.unary(p.x[0]))
    _formed(p)
    (region,) = [op for op in p.module.walk() if isinstance(op, DispatchRegionOp)]
    region.attributes[LOOPS_ATTRIBUTE] = UnitAttr()
    with pytest.raises(FuselineError) as caught:
        _outlined(p)
    assert (caught.value.code, caught.value.node) == ("E0302", "main_dispatch_0_elementwise")


def test_a_region_without_loops_is_outlined_as_well():
    p = Program((6, 5))
    p.done(p.unary(p.x[0]))
    _formed(p)
    for op in p.module.walk():
        op.attributes.pop(LOOPS_ATTRIBUTE, None)
    OutlineExecutablesPass().apply(new_context(), p.module)
    assert not any(LOOPS_ATTRIBUTE in op.attributes for op in p.module.walk())
