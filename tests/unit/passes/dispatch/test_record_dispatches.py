"""What is written down of dispatches: members with their roles, work, traffic, and what needed none."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.passes import ModulePass

from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.text import parse_module
from fuseline.passes.cleanup.generalize_named_ops import GeneralizeNamedOpsPass
from fuseline.passes.dispatch.clone_cheap_producers import CloneCheapProducersPass
from fuseline.passes.dispatch.form_dispatch_regions import FormDispatchRegionsPass
from fuseline.passes.dispatch.fuse_elementwise_bodies import FuseElementwiseBodiesPass
from fuseline.passes.dispatch.outline_executables import OutlineExecutablesPass
from fuseline.passes.dispatch.record_dispatches import RecordDispatchesPass

PROGRAM = """func.func @main(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<24xf32>) {
  %e = tensor.empty() : tensor<4x6xf32>
  %a = linalg.elementwise <exp> ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32> loc("a")
  %b = linalg.elementwise <abs> ins(%a : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32> loc("b")
  %f = tensor.collapse_shape %x [[0, 1]] : tensor<4x6xf32> into tensor<24xf32> loc("f")
  return %b, %f : tensor<4x6xf32>, tensor<24xf32>
}"""
OUTLINE = (GeneralizeNamedOpsPass(), FormDispatchRegionsPass(), CloneCheapProducersPass(), OutlineExecutablesPass())


def recorded(times: int = 1, before: Sequence[ModulePass] = ()) -> CompilerContext:
    ctx = new_context()
    module = parse_module(PROGRAM, ctx)
    for step in (*OUTLINE, *before, *[RecordDispatchesPass()] * times):
        step.apply(ctx, module)
    return ctx


def test_a_dispatch_is_recorded_with_its_members_and_traffic():
    (record,) = recorded().records.dispatches
    assert (record.name, record.executable, record.root) == (
        "000_elementwise",
        "main_dispatch_0_elementwise",
        "elementwise",
    )
    assert [(member.role, member.nodes) for member in record.members] == [("prologue", ("a",)), ("root", ("b",))]
    assert (record.bytes_read, record.bytes_written, record.loops, record.arms) == (96, 96, ("4", "6"), [])
    assert record.flops > 0


def test_a_reshape_needs_no_dispatch_and_a_member_is_not_lost():
    eliminated = recorded().records.eliminated
    assert eliminated["f"] == "outline-executables"
    assert not {"a", "b"} & set(eliminated)


def test_fused_edges_name_their_dispatch_and_others_none():
    decisions = recorded().records.decisions
    assert {decision.dispatch for decision in decisions if decision.verdict == "fused"} == {"000_elementwise"}
    assert all(not decision.dispatch for decision in decisions if decision.verdict != "fused")


def test_recording_twice_says_the_same_once():
    once, twice = recorded(), recorded(2)
    assert once.records.dispatches == twice.records.dispatches
    assert once.records.eliminated == twice.records.eliminated


def test_members_that_became_one_op_are_recorded_each():
    apart, merged = recorded(), recorded(before=(FuseElementwiseBodiesPass(),))
    (one,), (other,) = apart.records.dispatches, merged.records.dispatches
    assert one.members == other.members
    assert (one.flops, one.bytes_read, one.root) == (other.flops, other.bytes_read, other.root)
    assert apart.records.eliminated == merged.records.eliminated
    assert (apart.records.generic_ops_after, merged.records.generic_ops_after) == (2, 1)
