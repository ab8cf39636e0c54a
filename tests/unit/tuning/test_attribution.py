"""Times of single dispatches: what is compared with what, and what each region gained."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from fuseline.report.records import DispatchRecord, MemberRecord
from fuseline.tuning.attribution import (
    LEAST_ROUNDS,
    ROUNDS,
    DispatchTimes,
    Launch,
    TimedProgram,
    attributed,
    launches,
    region_gains,
)
from tests.draws import RNG


class FakeTimer:
    """Takes so many seconds for each launch, times noise."""

    def __init__(self, seconds: list[float], noise: float = 0.0) -> None:
        self.seconds, self.noise, self.asked = seconds, noise, Counter[int]()

    def sample(self, index: int, repeats: int = 1) -> float:
        self.asked[index] += 1
        return self.seconds[index] * float(np.exp(self.noise * RNG.standard_normal()))


def _program(noise: float = 0.0, /, **seconds: float) -> TimedProgram:
    """Launches by key, `_` in place of `+`; a number behind `__` is other code."""
    launched: list[Launch] = []
    for index, name in enumerate(seconds):
        key, _, code = name.partition("__")
        launched.append(Launch(index, key.replace("_", "+"), code))
    return TimedProgram(FakeTimer(list(seconds.values()), noise), launched)


def test_what_both_have_is_timed_once_and_gains_nothing():
    trial, incumbent = _program(a=9e-3, b_c=2e-3), _program(a=1e-3, b_c=2e-3)
    found = attributed(trial, incumbent, 1.0)
    assert found == DispatchTimes(found.incumbent, {"a": 1e-3, "b+c": 2e-3}, {})
    assert isinstance(trial.timer, FakeTimer) and not trial.timer.asked
    asked = Counter(incumbent.timer.asked) if isinstance(incumbent.timer, FakeTimer) else Counter[int]()
    attributed(trial, incumbent, 1.0)
    assert isinstance(incumbent.timer, FakeTimer) and incumbent.timer.asked == asked
    assert region_gains(found) == []


def test_what_differs_is_told_by_its_region():
    trial = _program(a=1e-3, b=1e-3, c=2e-3, d__2=1e-3, e_f_g=5e-3)
    incumbent = _program(a=1e-3, b_c=4e-3, d=3e-3, e_f=4e-3, g=2e-3)
    found = attributed(trial, incumbent, 1.0)
    assert set(found.error) == {"b", "c", "b+c", "d", "e+f+g", "e+f", "g"}
    gains = {(r.incumbent, r.trial): r.gain_seconds for r in region_gains(found)}
    assert gains == {
        (("d",), ("d",)): pytest.approx(2e-3),
        (("b+c",), ("b", "c")): pytest.approx(1e-3),
        (("e+f", "g"), ("e+f+g",)): pytest.approx(1e-3),
    }
    assert list(gains.values()) == sorted(gains.values(), reverse=True)


def test_launches_of_one_dispatch_add_up():
    trial = TimedProgram(FakeTimer([1e-3, 2e-3]), [Launch(0, "a", "x"), Launch(1, "a", "x")])
    found = attributed(trial, _program(a=1e-3), 1.0)
    assert found.trial == {"a": pytest.approx(3e-3)} and found.incumbent == {"a": pytest.approx(1e-3)}


@pytest.mark.parametrize(("budget", "rounds"), [(0.0, LEAST_ROUNDS), (1e9, ROUNDS)])
def test_rounds_end_with_the_time_there_is(budget: float, rounds: int):
    trial = _program(a__2=1.0)
    times = iter(range(1000))
    attributed(trial, _program(a=1.0), budget, clock=lambda: float(next(times)))
    assert isinstance(trial.timer, FakeTimer)
    assert trial.timer.asked[0] == rounds + 2  # two say how long it takes


def test_the_error_is_that_of_the_difference():
    differences: list[float] = []
    errors: list[float] = []
    for _ in range(300):
        found = attributed(_program(0.1, a__2=1.0), _program(0.1, a=1.0), 1e9)
        differences.append(found.trial["a"] - found.incumbent["a"])
        errors.append(found.error["a"])
    assert np.std(differences) == pytest.approx(np.median(errors), rel=0.5)


def _times(before: dict[str, float], after: dict[str, float], error: float) -> DispatchTimes:
    return DispatchTimes(after, before, dict.fromkeys([*before, *after], error))


def test_equal_layers_add_their_evidence():
    before = {f"conv.{i}+relu.{i}": 1e-3 + i * 1e-6 for i in range(4)}
    after = {f"conv.{i}": 5e-4 + i * 1e-5 for i in range(4)} | {f"relu.{i}": 1e-4 for i in range(4)}
    found = region_gains(_times(before, after, 2e-5))
    alone = np.sqrt(3) * 2e-5  # three dispatches differ
    assert [r.layers for r in found] == [4] * 4
    assert {round(r.error_seconds, 9) for r in found} == {round(alone / 2, 9)}
    assert len({r.gain_seconds for r in found}) == 1


def test_layers_of_other_times_or_gains_are_no_equal_layers():
    before = {"conv.1": 1e-3, "conv.2": 9e-3, "conv.3": 2e-3, "conv.4": 2e-3}
    after = {"conv.1": 0.9e-3, "conv.2": 8e-3, "conv.3": 1e-3, "conv.4": 2e-3}
    assert [r.layers for r in region_gains(_times(before, after, 1e-6))] == [1] * 4


def _record(executable: str, *ids: str, kernel: str = "k") -> DispatchRecord:
    members = [MemberRecord(id=id, kind="elementwise", role="member") for id in ids]
    return DispatchRecord(
        name=executable, executable=executable, root="elementwise", members=members, kernels=(kernel,), workgroups="4"
    )


def test_launches_are_known_by_their_records():
    records = [_record("e", "a"), _record("f", "b", "c"), _record("e", "d")]
    found = launches(["e", "copy", "e", "f"], records, 2)
    assert [item.key for item in found] == ["a", "copy", "d", "b+c"]
    assert found[3].members == ["b", "c"] and found[1].members == ["copy"]
    others = [_record("e", "a", kernel="other"), *records[1:]]
    assert [a.code == b.code for a, b in zip(found, launches(["e", "copy", "e", "f"], others, 2), strict=True)] == [
        False,
        True,
        True,
        True,
    ]
    assert not any(a.code == b.code for a, b in zip(found, launches(["e", "copy", "e", "f"], records, 1), strict=True))
