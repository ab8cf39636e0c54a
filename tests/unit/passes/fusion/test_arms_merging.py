"""Groups that no edge joins as arms of one dispatch: regions, concats, levels; what keeps them apart is on record."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import pytest

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.arms_merging import REGION, ArmsMerging
from fuseline.passes.fusion.decision import Answer, Forbid, Legal, NotApplicable, WhyNot
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.horizontal import CONCAT_SLICES, SAME_SPACE, SHARED_OPERAND, SMALL
from fuseline.passes.fusion.limits import Veto, no_veto
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.rule import FusionRule, Merge
from fuseline.passes.fusion.starting_groups import StartingGroup
from tests.draws import RNG

from .programs import TARGET, Program

Start = Callable[[list[Node]], list[StartingGroup]]


class Arms(ArmsMerging):
    """Merges pairs where rules do, then regions, then arms."""

    def run(self) -> list[int]:
        """How many arms each dispatch has (1: it is one part), in program order."""
        for group in sorted(self.alive, key=lambda group: group.members[0].position):
            self._examine_consumers(group)
        self._drain()
        self._join_regions()
        self._join_arms()
        ordered = sorted(self.alive, key=lambda group: group.members[0].position)
        return [len(group.arms) or 1 for group in ordered]


def _merging(
    p: Program,
    joins: Collection[str],
    *rules: FusionRule,
    target: TargetDescription = TARGET,
    veto: Veto = no_veto,
    start: Start = lambda nodes: [],
) -> Arms:
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    nodes = sorted(graph.nodes, key=lambda node: node.position)
    return Arms(graph, rules, target, veto=veto, joins=joins, start=start(nodes))


def _groups(*numbers: int) -> Start:
    """One region whose arms are these nodes."""
    return lambda nodes: [StartingGroup(tuple(Group.of(nodes[number]) for number in numbers))]


def _concat() -> Program:
    p = Program((4, 64), (4, 64))
    return p.done(p.concat(p.unary(p.x[0]), p.unary(p.x[1]), axis=1))


def _codes(merging: Arms) -> set[tuple[str, str]]:
    words = [(one.rule, one.answer) for one in merging.edge_words.values()]
    return {(rule, answer.code if isinstance(answer, WhyNot) else "legal") for rule, answer in words}


def test_what_writes_into_a_concat_becomes_its_arms():
    merging = _merging(_concat(), [CONCAT_SLICES])
    assert merging.run() == [3] and _codes(merging) == {(CONCAT_SLICES, "legal")}
    (group,) = merging.alive
    assert [rule for rule, _, _ in merging.side_by_side] == [CONCAT_SLICES] * 2
    assert all(merging.group_of[node] is group for node in merging.graph.nodes)


def test_a_join_that_was_not_asked_for_is_not_done():
    assert _merging(_concat(), []).run() == [1, 1, 1]
    merging = _merging(_concat(), [SMALL])
    assert merging.run() == [2, 1] and [rule for rule, _, _ in merging.side_by_side] == [SMALL]


@pytest.mark.parametrize(
    ("change", "code"), [({"arms_limit": 1}, "arms-limit"), ({"binding_limit": 2}, "binding-limit")]
)
def test_a_concat_beyond_a_limit_tells_its_edges(change: dict[str, int], code: str):
    merging = _merging(_concat(), [CONCAT_SLICES], target=replace(TARGET, **change))
    assert merging.run() == [1, 1, 1] and _codes(merging) == {(CONCAT_SLICES, code)}
    assert len(merging.edge_words) == 2 and not merging.side_by_side


@pytest.mark.parametrize("parts", [2, 3])
def test_a_concat_of_what_depends_on_each_other_is_told(parts: int):
    """Each part waits for the one before."""
    merging = _merging(_waiting_parts(parts, axis=0), [CONCAT_SLICES])
    assert merging.run() == [1] * (parts + 1)
    into = [one for (_, node), one in merging.edge_words.items() if node.kind.value == "concat"]
    assert len(into) == parts and {one.rule for one in into} == {CONCAT_SLICES}
    assert {one.answer.code for one in into if isinstance(one.answer, WhyNot)} == {"cycle"}


@pytest.mark.parametrize("parts", [2, 3])
def test_the_last_of_them_copies_the_others_where_the_concat_is_no_memory(parts: int):
    merging = _merging(_waiting_parts(parts, axis=1), [CONCAT_SLICES])
    assert sorted(merging.run()) == [*[1] * (parts - 1), 2]


def _waiting_parts(count: int, axis: int) -> Program:
    p = Program((4, 64))
    made = [p.unary(p.x[0])]
    while len(made) < count:
        made.append(p.unary(made[-1]))
    return p.done(p.concat(*made, axis=axis))


LEVELS = {
    SHARED_OPERAND: (((512, 64), (64, 32), (64, 48)), lambda p: [p.matmul(p.x[0], w) for w in p.x[1:]]),
    SAME_SPACE: (((512, 256), (512, 256)), lambda p: [p.unary(x) for x in p.x]),
    SMALL: (((7, 5), (3, 2)), lambda p: [p.unary(x) for x in p.x]),
}


def _level(rule: str) -> Program:
    shapes, made = LEVELS[rule]
    p = Program(*shapes)
    return p.done(*made(p))


@pytest.mark.parametrize("rule", LEVELS)
def test_groups_of_one_level_become_arms(rule: str):
    merging = _merging(_level(rule), [rule])
    assert merging.run() == [2] and not merging.kept_apart and not merging.edge_words
    (group,) = merging.alive
    assert merging.side_by_side == [(rule, group.arms[0].root, group.arms[1].root)]


def test_what_was_joined_goes_beside_others_as_a_whole():
    """Two small products of one operand, and what is small and shares nothing: one launch, as another round would
    find."""
    rows, steps, columns = (int(RNG.integers(2, 20)) for _ in range(3))
    p = Program((rows, steps), (steps, columns), (steps, columns + 1), (rows + 1, 3))
    made = [p.matmul(p.x[0], p.x[1]), p.matmul(p.x[0], p.x[2]), p.unary(p.x[3])]
    merging = _merging(p.done(*made), [SHARED_OPERAND, SMALL])
    assert merging.run() == [3]
    assert {rule for rule, _, _ in merging.side_by_side} == {SHARED_OPERAND, SMALL}


@pytest.mark.parametrize("rule", LEVELS)
def test_what_a_target_does_not_take_is_on_record(rule: str):
    def veto(groups: Sequence[Group]) -> WhyNot | None:
        return WhyNot("target", f"{len(groups)} arms") if len(groups) > 1 else None

    merging = _merging(_level(rule), [rule], veto=veto)
    assert merging.run() == [1, 1] and not merging.side_by_side
    ((said, first, other, why),) = merging.kept_apart
    assert (said, why) == (rule, WhyNot("target", "2 arms")) and {first, other} == merging.alive


class _Banned(FusionRule):
    name = "banned"

    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        del graph
        return Forbid("not-mine", "keep apart") if merge.joint else NotApplicable()


@pytest.mark.parametrize("rule", LEVELS)
def test_what_a_rule_forbids_is_on_record(rule: str):
    merging = _merging(_level(rule), [rule], _Banned())
    assert merging.run() == [1, 1]
    assert [(said, why.code) for said, _, _, why in merging.kept_apart] == [("banned", "not-mine")]


def test_a_rule_may_forbid_the_arms_of_a_concat():
    merging = _merging(_concat(), [CONCAT_SLICES], _Banned())
    assert merging.run() == [1, 1, 1] and _codes(merging) == {("banned", "not-mine")}


# regions --------------------------------------------------------------------------------------------------------------


def test_arms_of_a_region_are_one_dispatch_again():
    merging = _merging(_level(SAME_SPACE), [], start=_groups(0, 1))
    assert merging.run() == [2] and [rule for rule, _, _ in merging.side_by_side] == [REGION]
    whole = _merging(_level(SAME_SPACE), [], target=replace(TARGET, arms_limit=1, binding_limit=1), start=_groups(0, 1))
    assert whole.run() == [2], "arms that it had need no leave"


def test_a_region_of_one_arm_is_left_alone():
    merging = _merging(_level(SAME_SPACE), [], start=_groups(0))
    assert merging.run() == [1, 1] and not merging.side_by_side


class _Any(FusionRule):
    name = "any"

    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        del graph
        return NotApplicable() if merge.joint else Legal()


def _two_chains() -> Program:
    """`a -> c` and `b`."""
    p = Program((512, 64), (512, 64))
    a, b = p.unary(p.x[0]), p.unary(p.x[1])
    return p.done(p.unary(a), b)


@pytest.mark.parametrize(
    ("change", "arms"),
    [({}, [2]), ({"binding_limit": 3}, [1, 1]), ({"arms_limit": 1}, [1, 1])],
    ids=["free", "bindings", "arms"],
)
def test_arms_that_have_grown_are_weighed_anew(change: dict[str, int], arms: list[int]):
    target = replace(TARGET, **change)
    merging = _merging(_two_chains(), [], _Any(), target=target, start=_groups(0, 1))
    assert merging.run() == arms
    assert sorted(group.size for group in merging.alive) == ([3] if arms == [2] else [1, 2])


def test_arms_that_lead_to_each_other_by_now_stay_apart():
    """`a` and `c` were one dispatch; `c` has `d` with it, which waits for what is made of `a`."""
    p = Program((512, 64), (512, 64))
    a, c = p.unary(p.x[0]), p.unary(p.x[1])
    total = p.reduce(a, axis=0)
    last = p.add(p.unary(c), p.moved(total, [1], 512, 64))
    graph = p.done(last, a)

    class Last(FusionRule):
        name = "last"

        def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
            del graph
            pointwise = all(node.kind.value == "elementwise" for node in merge.members)
            return Legal() if pointwise and not merge.joint else NotApplicable()

    def start(nodes: list[Node]) -> list[StartingGroup]:
        chosen = [node for node in nodes if node.op in (a.owner, c.owner)]
        return [StartingGroup(tuple(Group.of(node) for node in chosen))]

    merging = _merging(graph, [], Last(), start=start)
    assert set(merging.run()) == {1} and not merging.side_by_side
    assert merging.group_of[_node(merging, a.owner)] is not merging.group_of[_node(merging, c.owner)]
    assert merging.group_of[_node(merging, last.owner)] is merging.group_of[_node(merging, c.owner)]


def _node(merging: Arms, op: object) -> Node:
    return next(node for node in merging.graph.nodes if node.op is op)
