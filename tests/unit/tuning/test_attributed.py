"""Times by the dispatches that choices change."""

from __future__ import annotations

from fuseline.tuning.attributed import Places, dispatch_times, relative_time, share_of
from fuseline.tuning.knob import Knob
from fuseline.tuning.trial import Interval, TrialOutcome

A, B, ALL = (
    Knob("a", "plan", ("x", "y"), ops=(("k.1", "2"),)),
    Knob("b", "plan", ("x", "y"), ops=(("3", "4"),)),
    Knob("all", "dedup", ("x", "y")),
)
PLACES = Places.of([A, B, ALL], [("1", "2", "5"), ("3",), ("4",), ("6",)])


def outcome(**seconds: float) -> TrialOutcome:
    named = {key.replace("_", "+"): value for key, value in seconds.items()}
    ratio = Interval(1.0, 1.0, 1.0)
    return TrialOutcome(number=0, state="complete", ratio=ratio, dispatch_seconds=named)


def test_a_knob_changes_the_groups_of_its_ops():
    assert PLACES.ops["a"] == {"1", "2", "5"} and PLACES.ops["b"] == {"3", "4"}
    assert not PLACES.overlap("a", "b") and PLACES.overlap("a", "all") and PLACES.everywhere("all")


def test_a_part_is_compared_with_the_same_ops():
    base = outcome(k1_k2_k5=4.0, k3=1.0, k6=5.0)
    trial = outcome(k1=1.0, k2_k5=1.0, k3=1.0, k6=5.0)
    ops = frozenset({"k1", "k2", "k5"})
    assert relative_time(trial, base, ops, ops) == 0.5


def test_dispatches_that_did_not_change_say_how_fast_the_machine_was():
    base, trial = outcome(k1=4.0, k6=5.0), outcome(k1=4.0, k6=10.0)
    ops = frozenset({"k1"})
    assert relative_time(trial, base, ops, ops) == 0.5


def test_too_few_of_them_say_nothing():
    base, trial = outcome(k1=99.0, k6=1.0), outcome(k1=99.0, k6=2.0)
    ops = frozenset({"k1"})
    assert relative_time(trial, base, ops, ops) == 1.0


def test_what_is_unknown_is_none():
    assert relative_time(outcome(), outcome(k1=1.0), frozenset({"k1"}), frozenset()) is None
    assert relative_time(outcome(k1=1.0), outcome(), frozenset({"k1"}), frozenset()) is None


def test_predicted_times_count_where_nothing_was_measured():
    predicted = TrialOutcome(number=0, state="complete", predicted_seconds={"k1": 1.0, "k2": 3.0})
    assert dispatch_times(predicted) == {"k1": 1.0, "k2": 3.0}
    assert share_of(predicted, frozenset({"k2"})) == 0.75
    measured = TrialOutcome(
        number=0, state="complete", ratio=Interval(1.0, 1.0, 1.0), predicted_seconds={"k1": 1.0, "k2": 3.0}
    )
    assert dispatch_times(measured) == {}
