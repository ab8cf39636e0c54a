"""The driver under a plan: groups come back, edits are followed, what is illegal is refused with the pair and the
reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from xdsl.dialects import math
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.errors import FuselineError
from fuseline.ir.build import dims_map
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.decision import Answer, WhyNot
from fuseline.passes.fusion.driver import Partition
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.horizontal import HorizontalMerge
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.plan import FusionPlan
from fuseline.passes.fusion.plan_constraints import PlanMatcher
from fuseline.passes.fusion.planned_driver import PlannedDriver, guided_partition
from fuseline.passes.fusion.rule import FusionRule, Merge, builtin_rules
from fuseline.report.records import CompileRecord

from .programs import TARGET, Program

Named = dict[str, Node]


def _softmax(p: Program, x: SSAValue) -> SSAValue:
    shifted = p.binary(x, p.reduce(x), dims_map(2, [0]))
    return p.binary(shifted, p.reduce(p.unary(shifted)), dims_map(2, [0]))


def _chain() -> Program:
    """matmul -> exp -> exp -> matmul, and an exp of the input beside it."""
    p = Program((64, 64), (64, 64))
    first = p.matmul(p.x[0], p.x[1])
    second = p.matmul(p.unary(p.unary(first)), p.x[1])
    return p.done(second, p.unary(p.x[0]))


def _graph(p: Program) -> tuple[FusionGraph, list[Node]]:
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    return graph, graph.nodes


def _apply(p: Program, plan: FusionPlan, *, only: bool = False, target: TargetDescription = TARGET) -> Partition:
    graph, _ = _graph(p)
    return guided_partition(graph, builtin_rules(), target, "default", PlanMatcher(plan).guide(graph, only=only))


def _wanted(entry: str, ids: Sequence[str]) -> FusionPlan:
    return FusionPlan(groups=(tuple(ids),)) if entry == "groups" else FusionPlan(force=(tuple(ids),))


def _ids(result: Partition) -> list[tuple[str, ...]]:
    return sorted(tuple(sorted(node.id for node in group.members)) for group in result.groups)


def _together(result: Partition, *ids: str) -> bool:
    return any(set(ids) <= {node.id for node in group.members} for group in result.groups)


PROGRAMS: dict[str, Callable[[], Program]] = {
    "chain": _chain,
    "softmax": lambda: (p := Program((64, 128))).done(_softmax(p, p.x[0])),
    "two softmaxes": lambda: (p := Program((64, 128))).done(_softmax(p, p.x[0]), _softmax(p, p.unary(p.x[0]))),
    "shared operand": lambda: (p := Program((64, 64), (64, 64), (64, 64))).done(
        p.matmul(p.x[0], p.x[1]), p.matmul(p.x[0], p.x[2])
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_default_partition_as_a_plan_gives_itself(name: str):
    p = PROGRAMS[name]()
    graph, _ = _graph(p)
    default = guided_partition(graph, builtin_rules(), TARGET)
    plan = FusionPlan(groups=tuple(tuple(node.id for node in group.members) for group in default.groups))
    followed = guided_partition(graph, builtin_rules(), TARGET, "default", PlanMatcher(plan).guide(graph))
    assert [(g.members, g.grid, g.grid_loop_of, g.inlined) for g in followed.groups] == [
        (g.members, g.grid, g.grid_loop_of, g.inlined) for g in default.groups
    ]


def test_ops_in_groups_of_their_own_stay_apart():
    p = PROGRAMS["softmax"]()
    nodes = _graph(p)[1]
    result = _apply(p, FusionPlan(groups=tuple((node.id,) for node in nodes)))
    assert _ids(result) == sorted((node.id,) for node in nodes)
    told = {(d.rule, d.code, d.detail) for d in result.decisions if d.code == "forbidden"}
    assert told == {("plan", "forbidden", "the plan puts them into different groups")}
    assert {d.at for d in result.decisions} <= {node.name for node in nodes}


def test_ops_that_no_group_lists_fuse_by_default_among_themselves():
    p = PROGRAMS["softmax"]()
    nodes = _graph(p)[1]
    result = _apply(p, FusionPlan(groups=((nodes[0].id,),)))
    assert _ids(result) == sorted([(nodes[0].id,), tuple(sorted(node.id for node in nodes[1:]))])


def test_under_no_fusion_the_plan_is_all_that_is_fused():
    p = PROGRAMS["softmax"]()
    nodes = _graph(p)[1]
    pair = (nodes[-2].id, nodes[-1].id)
    result = _apply(p, FusionPlan(groups=(pair,)), only=True)
    assert _ids(result) == sorted([tuple(sorted(pair)), *((node.id,) for node in nodes[:-2])])


def test_forbidden_ops_do_not_meet_and_the_decision_says_so():
    p = Program((64, 64))
    result = _apply(
        p := p.done(p.unary(p.unary(p.x[0]))), FusionPlan(forbid=(tuple(node.id for node in _graph(p)[1]),))
    )
    assert len(result.groups) == 2
    first, second = _graph(p)[1]
    (decision,) = result.decisions
    assert (decision.rule, decision.verdict, decision.code) == ("plan", "missed", "forbidden")
    assert (decision.detail, decision.at) == (f"the plan keeps {first.name} and {second.name} apart", second.name)


def test_forbid_wins_over_a_group():
    p = PROGRAMS["softmax"]()
    nodes = _graph(p)[1]
    result = _apply(p, FusionPlan(groups=(tuple(node.id for node in nodes),), forbid=((nodes[0].id, nodes[1].id),)))
    assert not _together(result, nodes[0].id, nodes[1].id)
    assert len(result.groups) < len(nodes)


def test_forbidden_arms_are_not_joined():
    p = PROGRAMS["shared operand"]()
    nodes = _graph(p)[1]
    assert len(_apply(p, FusionPlan()).groups) == 1
    result = _apply(p, FusionPlan(forbid=(tuple(node.id for node in nodes),)))
    assert len(result.groups) == 2
    assert [(d.code, d.arms) for d in result.decisions] == [("forbidden", True)]


def test_independent_ops_of_a_group_become_arms():
    p = Program((64, 64), (48, 32))
    p.done(p.reduce(p.x[0]), p.unary(p.x[1]))
    nodes = _graph(p)[1]
    result = _apply(p, FusionPlan(groups=(tuple(node.id for node in nodes),)))
    assert [len(group.arms) for group in result.groups] == [2]


def _wide_row() -> Program:
    """Much work at each point, and the sum of one row: fusing leaves one workgroup for two threads."""
    p = Program((1, 1 << 17))
    return p.done(p.reduce(p.unary(p.x[0], math.CosOp)))


@pytest.mark.parametrize("entry", ["groups", "force"])
def test_a_plan_overrules_the_cost_model(entry: str):
    p = _wide_row()
    ids = tuple(node.id for node in _graph(p)[1])
    target = TargetDescription("test", threads=2, scratch_bytes_limit=1 << 24)
    assert not _together(_apply(p, FusionPlan(), target=target), *ids)
    assert _together(_apply(p, _wanted(entry, ids), target=target), *ids)


def test_others_may_join_a_forced_set():
    p = PROGRAMS["softmax"]()
    nodes = _graph(p)[1]
    assert len(_apply(p, FusionPlan(force=((nodes[0].id, nodes[-1].id),))).groups) == 1


def test_force_joins_the_groups_it_touches():
    p = PROGRAMS["softmax"]()
    nodes = _graph(p)[1]
    plan = FusionPlan(groups=tuple((node.id,) for node in nodes), force=((nodes[-2].id, nodes[-1].id),))
    assert _ids(_apply(p, plan)) == sorted(
        [tuple(sorted((nodes[-2].id, nodes[-1].id))), *((node.id,) for node in nodes[:-2])]
    )


def _refusal(
    p: Program, ids: Sequence[str], entry: str = "groups", target: TargetDescription = TARGET
) -> FuselineError:
    with pytest.raises(FuselineError) as caught:
        _apply(p, _wanted(entry, ids), target=target)
    assert caught.value.code == "E0703"
    return caught.value


def _diagonal_reads() -> Program:
    p = Program((64, 64), (64, 64))
    first = p.matmul(p.x[0], p.x[1])
    return p.done(p.binary(first, first, dims_map(2, [0, 0])))


@pytest.mark.parametrize("entry", ["groups", "force"])
def test_an_illegal_group_is_refused_with_the_pair_and_the_reason(entry: str):
    p = _diagonal_reads()
    producer, consumer = _graph(p)[1]
    error = _refusal(p, [producer.id, consumer.id], entry)
    reason = "indexing-map: the reads do not map the root's parallel loops one to one"
    name = "group 1" if entry == "groups" else "force 1"
    assert error.message == f"{name} cannot be one dispatch: {producer.name} -> {consumer.name}: {reason}"
    assert error.node == "n1, n2"
    way_out = "take one of the two out of the group, or add the op that is missing between them"
    assert error.hint == f"docs/why-not.md explains indexing-map at {consumer.name}; {way_out}"


def test_a_group_that_would_wait_for_itself_is_refused():
    p = Program((64, 64))
    first = p.unary(p.x[0])
    last = p.unary(p.reduce(first, 0))
    p.done(p.binary(first, last, dims_map(2, [1])))
    nodes = _graph(p)[1]
    error = _refusal(p, [nodes[0].id, nodes[-1].id])
    assert error.message.endswith(
        f"{nodes[0].name} -> {nodes[-1].name}: cycle: {nodes[1].name} lies on a path between them"
    )


def test_arms_that_depend_on_each_other_are_refused():
    p = Program((64, 64))
    nodes = _graph(p.done(p.reduce(p.unary(p.unary(p.unary(p.x[0])), permutation=(1, 0)), 0)))[1]
    message = _refusal(p, [nodes[0].id, nodes[-1].id]).message
    ends = f"{nodes[0].name} -> {nodes[-1].name}: cycle: "
    assert any(message.endswith(f"{ends}{node.name} lies on a path between them") for node in nodes[1:-1])


def test_two_groups_that_wait_for_each_other_are_refused():
    p = Program((64, 64), (32, 32))
    a, c = p.unary(p.x[0]), p.unary(p.x[1])
    p.done(p.reduce(a), p.reduce(c))
    one, two, sum_one, sum_two = (node.id for node in _graph(p)[1])
    with pytest.raises(FuselineError, match="cycle"):
        _apply(p, FusionPlan(groups=((one, sum_two), (two, sum_one))))


def test_limits_of_the_target_hold_for_a_group():
    p = _wide_row()
    ids = [node.id for node in _graph(p)[1]]
    message = _refusal(p, ids, target=TargetDescription("tiny", binding_limit=1)).message
    assert message.endswith("binding-limit: 2 buffers, the target binds 1")


def test_stale_entries_are_told_one_by_one_and_refused_when_strict():
    p = PROGRAMS["softmax"]()
    graph, nodes = _graph(p)
    matcher = PlanMatcher(
        FusionPlan(
            groups=((nodes[0].id,), ("gone", nodes[1].id)),
            force=(("x", "y"),),
            forbid=((nodes[2].id, "z"),),
            graph="other",
        )
    )
    guide = matcher.guide(graph)
    assert [planned.nodes for planned in guide.sets] == [(nodes[0],)]
    record = CompileRecord(fingerprint="this")
    lines = matcher.check(record, strict=False)
    assert lines == [
        "plan: made for graph other, this is this",
        "plan: group 2 does not match: gone not in the graph; skipped",
        "plan: force 1 does not match: x, y not in the graph; skipped",
        "plan: forbid 1 does not match: z not in the graph; skipped",
    ]
    with pytest.raises(FuselineError) as caught:
        matcher.check(record, strict=True)
    error = caught.value
    assert (error.code, error.node, error.hint) == (
        "E0702",
        None,
        "correct the entries, or leave --plan-strict out to skip them",
    )
    assert error.message == "; ".join(line.removeprefix("plan: ").removesuffix("; skipped") for line in lines[1:])


def test_many_stale_entries_are_counted():
    p = PROGRAMS["softmax"]()
    graph, nodes = _graph(p)
    groups = ((nodes[0].id,), *((f"gone{i}", *(f"{i}.{k}" for k in range(i))) for i in range(7)))
    matcher = PlanMatcher(FusionPlan(groups=groups, model="m.onnx"))
    matcher.guide(graph)
    with pytest.raises(FuselineError) as caught:
        matcher.check(CompileRecord(), strict=True)
    error = caught.value
    assert error.node == "m.onnx"
    assert error.message.startswith(
        "group 2 does not match: gone0 not in the graph; group 3 does not match: gone1, 1.0 not in the graph; "
    )
    assert error.message.endswith("; and 2 more")
    assert error.message.count("does not match") == 5
    lines = matcher.check(CompileRecord(), strict=False)
    assert lines[4] == "plan: group 6 does not match: gone4, 4.0, 4.1, 4.2, 4.3 not in the graph; skipped"
    assert lines[5] == "plan: group 7 does not match: gone5, 5.0, 5.1, 5.2, 5.3 and others not in the graph; skipped"


def test_an_entry_with_ops_of_several_functions_matches_none():
    graphs = [_graph(PROGRAMS[name]())[0] for name in ("softmax", "shared operand")]
    matcher = PlanMatcher(FusionPlan(groups=(tuple(graph.nodes[0].id for graph in graphs),)))
    assert [matcher.guide(graph).sets for graph in graphs] == [(), ()]
    assert matcher.check(CompileRecord(), strict=False) == ["plan: group 1 has ops of several functions; skipped"]


def test_what_a_plan_was_made_for_is_compared():
    graph, nodes = _graph(_chain())
    matcher = PlanMatcher(FusionPlan(groups=((nodes[0].id,),), graph="g", target="cpu", threads=2, pipeline="p"))
    matcher.guide(graph)
    record = CompileRecord(fingerprint="g", target="null", threads=8, pipeline="q")
    assert matcher.check(record, strict=True) == [
        "plan: made for target cpu, this is null",
        "plan: made for threads 2, this is 8",
        "plan: made for pipeline p, this is q",
    ]
    assert matcher.check(CompileRecord(fingerprint="", target="cpu", threads=2, pipeline="p"), strict=True) == []


def test_a_plan_of_another_graph_is_refused():
    matcher = PlanMatcher(FusionPlan(groups=(("gone",),)))
    matcher.guide(_graph(_chain())[0])
    with pytest.raises(FuselineError) as caught:
        matcher.check(CompileRecord(fingerprint="f1"), strict=False)
    error = caught.value
    assert (error.code, error.node, error.hint) == (
        "E0702",
        None,
        "make a new plan: fuseline compile MODEL --emit plan",
    )
    assert error.message == "no op of the plan is in the graph: the plan is for another graph, the graph is f1"


def test_a_plan_says_what_it_is_for_when_it_fits_nothing():
    matcher = PlanMatcher(FusionPlan(groups=(("gone",),), graph="f0", model="m.onnx"))
    matcher.guide(_graph(_chain())[0])
    with pytest.raises(FuselineError) as caught:
        matcher.check(CompileRecord(fingerprint="f1"), strict=True)
    assert (caught.value.node, caught.value.message) == (
        "m.onnx",
        "no op of the plan is in the graph: the plan is for f0, the graph is f1",
    )


def test_a_plan_that_matches_says_nothing():
    graph, nodes = _graph(_chain())
    matcher = PlanMatcher(FusionPlan(groups=tuple((node.id,) for node in nodes)))
    matcher.guide(graph)
    assert matcher.check(CompileRecord(), strict=True) == []


def test_what_remains_of_a_stale_forbid_still_holds():
    p = Program((64, 64))
    p.done(p.unary(p.unary(p.x[0])))
    ids = [node.id for node in _graph(p)[1]]
    assert len(_apply(p, FusionPlan(forbid=((*ids, "gone"),))).groups) == 2


# softmaxes that stream ------------------------------------------------------------------------------------------------

_STREAMING = replace(TARGET, streamed_points=64)


def _attention(depth: int = 32) -> Program:
    p = Program(("q", depth), (depth, "k"), ("k", depth))
    return p.done(p.matmul(p.softmax(p.matmul(p.x[0], p.x[1])), p.x[2]))


def test_a_plan_gives_a_streamed_softmax_back():
    p = _attention()
    nodes = [node.id for node in _graph(p)[1]]
    for plan in (_wanted("groups", nodes), _wanted("force", nodes), FusionPlan()):
        assert _together(_apply(p, plan, target=_STREAMING), *nodes)


def test_a_plan_may_keep_a_softmax_from_streaming():
    p = _attention()
    nodes = {node.kind.value: node.id for node in _graph(p)[1]}
    apart = (nodes["reduction"], nodes["contraction"])
    result = _apply(p, FusionPlan(forbid=(apart,)), target=_STREAMING)
    assert not _together(result, *apart)
    assert any(decision.code == "forbidden" for decision in result.decisions)


@pytest.mark.parametrize("entry", ["groups", "force"])
def test_a_plan_makes_a_softmax_stream_whatever_it_costs(entry: str):
    p = _attention(8000)
    nodes = [node.id for node in _graph(p)[1]]
    assert not _together(_apply(p, FusionPlan(), target=_STREAMING), *nodes)
    assert _together(_apply(p, _wanted(entry, nodes), target=_STREAMING), *nodes)


# arms of a plan -------------------------------------------------------------------------------------------------------


def test_forbid_wins_over_a_group_of_arms():
    """They could run beside each other, and the plan does not want two of them to."""
    p = Program((64, 64), (48, 32), (20, 10))
    p.done(*(p.reduce(x) for x in p.x))
    ids = tuple(node.id for node in _graph(p)[1])
    assert _together(_apply(p, FusionPlan(groups=(ids,))), *ids)
    result = _apply(p, FusionPlan(groups=(ids,), forbid=(ids[:2],)))
    assert not _together(result, *ids[:2])


def test_a_host_op_is_in_no_group():
    p = Program((64, 64), (48, 32))
    p.module.body.block.add_op(FuncOp.external("host.sort", [p.x[0].type], [p.x[0].type]))
    call = p.emit.add(CallOp("host.sort", [p.x[0]], [p.x[0].type]))
    p.done(call.results[0], p.reduce(p.x[1]))
    nodes = _graph(p)[1]
    assert len(nodes) == 2
    error = _refusal(p, [node.id for node in nodes])
    assert ": host-op: func.call runs on the host" in error.message


def test_a_refusal_that_names_no_place():
    class Never(FusionRule):
        name = "never"

        def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
            return WhyNot("no-rule", "because")

    p = Program((64, 64))
    graph, nodes = _graph(p.done(p.unary(p.unary(p.x[0]))))
    guide = PlanMatcher(_wanted("groups", [node.id for node in nodes])).guide(graph)
    with pytest.raises(FuselineError) as caught:
        guided_partition(graph, [Never()], TARGET, "default", guide)
    assert caught.value.message.endswith(f"{nodes[0].name} -> {nodes[1].name}: no-rule: because")
    assert caught.value.hint is not None and caught.value.hint.startswith("docs/why-not.md explains no-rule; take one")


def test_of_arms_that_a_plan_keeps_apart_the_last_ones_stay() -> None:
    """Of three siblings the first two are forbidden: it is the first that goes, and the record says for whom."""
    p = Program((64, 64))
    graph, nodes = _graph(p.done(*(p.unary(p.x[0], kind) for kind in (math.ExpOp, math.TanhOp, math.SqrtOp))))
    groups = tuple(Group.of(node) for node in nodes)
    join = HorizontalMerge("siblings", groups)

    def restricted(*forbidden: tuple[int, int]) -> tuple[HorizontalMerge | WhyNot | None, PlannedDriver]:
        plan = FusionPlan(forbid=tuple((nodes[a].id, nodes[b].id) for a, b in forbidden))
        constraints = PlanMatcher(plan).guide(graph)
        assert constraints is not None
        driver = PlannedDriver(graph, builtin_rules(), TARGET, "default", constraints)
        return driver._restricted(join), driver  # pyright: ignore[reportPrivateUsage]

    kept, driver = restricted((0, 1))
    assert kept == HorizontalMerge("siblings", groups[1:])
    (apart,) = driver.kept_apart
    assert apart[:3] == ("plan", groups[0], groups[1]) and apart[3].code == "forbidden"
    assert restricted((0, 2))[0] == HorizontalMerge("siblings", groups[1:])
    assert restricted()[0] == join
    refused, _ = restricted((0, 1), (0, 2), (1, 2))
    assert isinstance(refused, WhyNot) and refused.code == "forbidden"
