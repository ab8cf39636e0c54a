"""What leads from one plan to another, in changes and in steps."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

from fuseline.compile_options import CompileOptions
from fuseline.verify.bisect.plan_changes import (
    GROUPING,
    PlanChange,
    PlanState,
    as_tuned,
    choices_of,
    plan_changes,
    said_by,
    with_choices_of,
)
from fuseline.verify.bisect.plan_steps import steps_of
from fuseline.verify.bisect.plan_trials import plan_of
from tests.draws import RNG


def _state(*groups: str, forbid: tuple[str, ...] = ()) -> PlanState:
    return PlanState(frozenset(map(tuple, groups)), frozenset(map(tuple, forbid)))


def _kinds(before: PlanState, after: PlanState) -> list[str]:
    return [change.kind for change in plan_changes(before, after)]


def test_equal_states_have_no_changes():
    assert plan_changes(_state("ab", "c"), _state("ab", "c")) == []


def test_a_group_of_one_side_is_split_joined_or_regrouped():
    before, after = _state("ab", "cd", "e", "f", "g"), _state("a", "b", "c", "de", "fg")
    split, regroup, join = plan_changes(before, after)
    assert (split.kind, split.before, split.after) == ("split", (("a", "b"),), (("a",), ("b",)))
    assert (regroup.kind, regroup.ops) == ("regroup", ("c", "d", "e"))
    assert (join.kind, join.before, join.after) == ("join", (("f",), ("g",)), (("f", "g"),))


def test_what_lets_ops_meet_comes_first_and_what_keeps_them_apart_behind_groups():
    before, after = _state("ab", "c", forbid=("ac",)), _state("a", "b", "c", forbid=("bc",))
    assert _kinds(before, after) == ["may-meet", "split", "apart"]


def test_choices_are_changes():
    plain = CompileOptions(fusion="none", without_rules=("root-chain",), kernels={"k.1": "tile=1x8"})
    other = CompileOptions(fusion="default", without_rules=("row-chain",), dedup="none", threads=2)
    said = [("fusion", ""), ("dedup", ""), ("threads", ""), ("kernels", "k.1")]
    said += [("without_rules", "root-chain"), ("without_rules", "row-chain")]
    before, after = (PlanState(frozenset(), choices=choices_of(one, said)) for one in (plain, other))
    made = plan_changes(before, after)
    assert [change.choice for change in made] == [
        ("fusion", ""),
        ("without_rules", "root-chain"),
        ("dedup", ""),
        ("threads", ""),
        ("without_rules", "row-chain"),
        ("kernels", "k.1"),
    ]
    end = reduce(lambda state, change: change.on(state), made, before)
    assert end == after and with_choices_of(plain, end.choices) == other
    tuned = as_tuned(end.choices)
    assert tuned is not None and tuned.options == {"dedup": "none", "threads": 2, "without_rules": ("row-chain",)}
    assert said_by(tuned) == {("dedup", ""), ("threads", ""), ("without_rules", "row-chain")}


def test_what_no_plan_says_is_no_choice():
    options = CompileOptions(threads=2, kernels={"k.1": "tile=1x8", "k.2": "tile=2x8"}, without_rules=("row-chain",))
    assert as_tuned(choices_of(options, [])) is None and said_by(None) == set()
    kept = with_choices_of(options, {("kernels", "k.1"): None, ("dedup", ""): "none"})
    assert kept == CompileOptions(threads=2, kernels={"k.2": "tile=2x8"}, without_rules=("row-chain",), dedup="none")


def _drawn(ops: list[str]) -> list[tuple[str, ...]]:
    homes = RNG.integers(0, 1 + len(ops) // 2, len(ops))
    found: dict[int, list[str]] = {}
    for op, home in zip(ops, homes, strict=True):
        found.setdefault(int(home), []).append(op)
    return [tuple(sorted(group)) for group in found.values()]


def _merges(groups: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Some merges by which groups may have come about: now and then one is of three, and the last is not told."""
    found: list[tuple[str, ...]] = []
    for group in groups:
        order = [str(op) for op in RNG.permutation(group)]
        pairs = [(one, other) for one, other in pairwise(order)]
        found += [tuple(order[:3])] if len(order) > 2 and RNG.random() < 0.3 else []
        found += pairs[: len(pairs) - int(RNG.random() < 0.2)]
    return found


def test_changes_and_steps_lead_from_one_to_the_other():
    """Each program between two plans has each op once; outside of the steps of a change all groups are of a plan."""
    for _ in range(60):
        ops = [f"o{number}" for number in range(int(RNG.integers(1, 24)))]
        one, two = _drawn(ops), _drawn(ops)
        before, after = PlanState(frozenset(one)), PlanState(frozenset(two))
        state, steps = before, list[PlanChange]()
        for change in plan_changes(before, after):
            steps += steps_of(change, _merges(one), _merges(two))
            state = change.on(state)
            assert state.groups <= before.groups | after.groups
            assert sorted(op for group in state.groups for op in group) == sorted(ops)
        assert state == after
        for step in steps:
            assert before.groups.issuperset(step.before) and step.kind in GROUPING
            before = step.on(before)
            assert sorted(op for group in before.groups for op in group) == sorted(ops)
        assert before == after


def test_steps_are_the_merges_of_both_sides():
    change = PlanChange("regroup", (tuple("abc"), tuple("d")), (tuple("a"), tuple("bcd")))
    steps = steps_of(change, [("a", "b"), ("b", "c")], [("c", "d"), ("b", "c")])
    shown = [(step.kind, [*map("".join, step.before)], [*map("".join, step.after)]) for step in steps]
    assert shown == [("split", ["abc"], ["a", "bc"]), ("join", ["bc", "d"], ["bcd"])]
    whole = PlanChange("join", (("a",), ("b",), ("c",)), (tuple("abc"),))
    assert len(steps_of(whole, [], [("a", "c"), ("c", "b")])) == 2
    assert steps_of(PlanChange("apart", after=(("a", "b"),)), [], []) == [PlanChange("apart", after=(("a", "b"),))]


def test_a_plan_of_a_state_keeps_groups_that_a_set_would_part():
    state = _state("ab", "cd", "e", forbid=("abc", "de", "ab"))
    assert plan_of(state).forbid == (("a", "c"), ("b", "c"), ("d", "e"))
