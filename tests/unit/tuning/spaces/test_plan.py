"""Knobs about groups, from records that were made up, and from a compile."""

from __future__ import annotations

import fuseline
from fuseline.ir.costs import MachineCosts
from fuseline.passes.fusion.plan import id_of
from fuseline.report.records import CompileRecord, Decision, DispatchRecord, MemberRecord
from fuseline.tuning.spaces.plan import MOST, bare, plan_knobs
from tests.small_models import attention

COSTS = MachineCosts()


def decision(producer: str, consumer: str, **fields: object) -> Decision:
    given = {"rule": "root-chain", "verdict": "fused", **fields}
    return Decision(
        producer=f"contraction.{producer}",
        consumer=f"contraction.{consumer}",
        producer_op="contraction",
        consumer_op="contraction",
        producer_nodes=(f"node_{producer}",),
        consumer_nodes=(f"node_{consumer}",),
        **given,  # pyright: ignore[reportArgumentType]
    )


def record(*groups: tuple[str, ...], decisions: list[Decision], ns: float = 1e6) -> CompileRecord:
    dispatches = [
        DispatchRecord(
            name=f"d{i}",
            executable="e",
            root="contraction",
            members=[MemberRecord(id=f"contraction.{id}", kind="contraction", role="member") for id in group],
            predicted_ns=ns,
        )
        for i, group in enumerate(groups)
    ]
    names = [tuple(f"contraction.{id}" for id in group) for group in groups]
    return CompileRecord(dispatches=dispatches, groups=names, decisions=decisions)


def test_a_merge_that_would_not_pay_may_be_made():
    refused = decision("a", "b", verdict="missed", code="unprofitable", numbers={"predicted_loss_ns": 500.0})
    (knob,) = plan_knobs(record(("a",), ("b",), decisions=[refused]), COSTS)
    assert knob.name == "plan/join/a+b" and knob.choices == ("apart", "join")
    assert knob.gain_ns == -500 and knob.ops == (("a", "b"),) and knob.nodes == ("node_a", "node_b")


def test_what_is_illegal_is_no_knob():
    refused = [decision("a", "b", verdict="missed", code=code) for code in ("two-roots", "cycle", "scratch", "target")]
    assert plan_knobs(record(("a",), ("b",), decisions=refused), COSTS) == []


def test_a_refusal_between_ops_that_met_otherwise_is_no_knob():
    refused = decision("a", "b", verdict="missed", code="unprofitable")
    assert plan_knobs(record(("a", "b"), decisions=[refused]), COSTS) == []


def test_what_is_fused_may_be_kept_apart():
    fused = decision("a", "b", numbers={"bytes_saved": 1000.0})
    (knob,) = plan_knobs(record(("a", "b"), decisions=[fused]), COSTS)
    assert knob.choices == ("join", "apart")
    assert knob.gain_ns == round(-1000 / COSTS.stored_bytes_per_ns - COSTS.launch_ns)


def test_what_only_saves_traffic_stays_fused():
    fused = decision("a", "b", rule="elementwise-epilogue", numbers={"bytes_saved": 1000.0})
    assert plan_knobs(record(("a", "b"), decisions=[fused]), COSTS) == []


def test_equal_layers_share_a_knob():
    fused = [decision(f"a{n}", f"b{n}") for n in ("", "-2", "-10")]
    found = plan_knobs(record(("a", "b"), ("a-2", "b-2"), ("a-10", "b-10"), decisions=fused), COSTS)
    assert [knob.ops for knob in found] == [(("a", "b"), ("a-2", "b-2"), ("a-10", "b-10"))]
    assert "3 times" in found[0].detail


def test_what_would_surely_lose_is_no_knob_and_what_is_unsure_comes_first():
    losses = {"b": 5e5, "c": 5e3, "d": 1e9}
    refused = [
        decision("a", id, verdict="missed", code="unprofitable", numbers={"predicted_loss_ns": ns})
        for id, ns in losses.items()
    ]
    found = plan_knobs(record(("a",), ("b",), ("c",), ("d",), decisions=refused), COSTS)
    assert [knob.name for knob in found] == ["plan/join/a+c", "plan/join/a+b"]


def test_a_large_model_has_so_many_at_the_most():
    ids = [f"x{i}" for i in range(2 * MOST)]
    refused = [decision("a", id, verdict="missed", code="unprofitable") for id in ids]
    groups = [(id,) for id in ("a", *ids)]
    assert len(plan_knobs(record(*groups, decisions=refused), COSTS)) == MOST


def test_knobs_of_a_model_name_its_ops():
    compiled = fuseline.compile(attention(), target="null").record
    known = {id_of(name) for names in compiled.groups for name in names}
    found = plan_knobs(compiled, COSTS)
    assert found and {op for knob in found for ops in knob.ops for op in ops} <= known
    assert all(bare(first) in knob.name for knob in found for first, _ in knob.ops)
