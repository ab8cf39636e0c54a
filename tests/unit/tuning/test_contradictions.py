"""Choices that rule each other out are not proposed: some are known, some are learned from a trial that failed."""

from __future__ import annotations

import pytest

from fuseline.passes.fusion.plan import Ids
from fuseline.tuning.attributed import Places
from fuseline.tuning.contradictions import Contradictions
from fuseline.tuning.knob import Knob
from fuseline.tuning.trial import TrialOutcome
from tests.unit.tuning.landscape import BROKEN, LandscapeEvaluator, searched
from tests.unit.tuning.landscape import KNOBS as LANDSCAPE

GROUPS: tuple[Ids, ...] = (("a", "b", "c"), ("d", "e"), ("f", "g"))
JOIN, OTHER, APART, FAR, RULE, KERNEL = (
    "join/cd",
    "join/ef",
    "apart/ab",
    "apart/fg",
    "passes/without-rule/r",
    "kernel/k",
)
KNOBS = {
    knob.name: knob
    for knob in (
        Knob(JOIN, "plan", ("apart", "join"), nodes=("C", "D"), ops=(("c", "d"),)),
        Knob(OTHER, "plan", ("apart", "join"), nodes=("E", "F"), ops=(("e", "f"),)),
        Knob(APART, "plan", ("join", "apart"), nodes=("A", "B"), ops=(("a", "b"),)),
        Knob(FAR, "plan", ("join", "apart"), nodes=("F", "G"), ops=(("f", "g"),)),
        Knob(RULE, "passes", ("no", "yes")),
        Knob(KERNEL, "kernels", ("default", "x")),
    )
}
JOINED, CUT, LEFT_OUT = {JOIN: "join"}, {APART: "apart"}, {RULE: "yes"}
ILLEGAL = {"code": "E0703", "node": "C, D", "message": "no rule"}


@pytest.fixture
def known() -> Contradictions:
    return Contradictions(KNOBS, Places.of(KNOBS.values(), GROUPS))


def test_whole_groups_are_not_forced_and_cut_at_once(known: Contradictions):
    assert known.without({**JOINED, **CUT, **LEFT_OUT}) == {**CUT, **LEFT_OUT}
    for fine in ({**JOINED, **CUT}, {**JOINED, **LEFT_OUT}, {**JOINED, FAR: "apart", **LEFT_OUT}, {**CUT, **LEFT_OUT}):
        assert known.without(fine) == fine


def test_what_was_illegal_under_a_variant_is_so_whatever_else_changes(known: Contradictions):
    known.learn({**JOINED, **LEFT_OUT, OTHER: "join", KERNEL: "x"}, ILLEGAL)
    assert known.without({**JOINED, **LEFT_OUT}) == LEFT_OUT
    assert known.without({**JOINED, KERNEL: "x"}) == {**JOINED, KERNEL: "x"}
    assert known.without({OTHER: "join", **LEFT_OUT}) == {OTHER: "join", **LEFT_OUT}


def test_what_was_illegal_beside_a_cut_is_so_beside_it_only(known: Contradictions):
    known.learn({**JOINED, **CUT, FAR: "apart"}, ILLEGAL)
    assert known.without({**JOINED, **CUT}) == CUT
    assert known.without({**JOINED, FAR: "apart"}) == {**JOINED, FAR: "apart"}


@pytest.mark.parametrize(
    "error",
    [{"code": "E0601", "node": "C, D"}, {"code": "E0703", "node": "nobody's"}, {}],
    ids=["other", "node", "none"],
)
def test_nothing_is_learned_of_what_is_not_understood(known: Contradictions, error: dict[str, str]):
    both = {**JOINED, OTHER: "join", **LEFT_OUT}
    known.learn(both, error)
    assert known.without(both) == both


class _Refusing(LandscapeEvaluator):
    """What a compile does: a join that a rule made legal is refused without the rule."""

    def outcome(self, timeout: float | None = None) -> TrialOutcome | None:
        found = super().outcome(timeout)
        if found is None:
            return None
        configuration = next(trial.configuration for trial in self.submitted if trial.number == found.number)
        if configuration.get("plan/up") == "join" and configuration.get("passes/without-rule/r") == "yes":
            error = {"code": "E0703", "message": "no rule covers this pair", "node": "up"}
            return TrialOutcome(number=found.number, state="failed", error=error)
        return found


def test_a_search_meets_a_contradiction_once():
    knobs = (
        *(knob for knob in LANDSCAPE if knob.name not in BROKEN),
        Knob("plan/up", "plan", ("apart", "join"), nodes=("up",), ops=(("b4", "a5"),)),
        Knob("passes/without-rule/r", "passes", ("no", "yes")),
    )
    result = searched(_Refusing(), trials=60, knobs=knobs)
    assert result.trials.count("failed") <= 1 and len(result.trials.trials) > 30
