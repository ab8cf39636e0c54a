"""The final configuration against the default: processes are rounds; nothing is claimed that is not so."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import numpy as np
import pytest

from fuseline.errors import FuselineError
from fuseline.report.tuning_records import Confirmed
from fuseline.tuning.confirmation import FRESH_SEEDS, LIMIT_SECONDS, PROCESSES, confirmation
from fuseline.tuning.setting import SearchSetting
from fuseline.tuning.trial import Interval, State, Trial, TrialOutcome
from tests.draws import RNG

SETTING = SearchSetting(model="m.onnx", options={}, knobs=(), seed=5)


class Lab:
    """Evaluators that each measure one ratio."""

    def __init__(self, ratio: Callable[[], float], state: State = "complete") -> None:
        self.ratio = ratio
        self.state: State = state
        self.settings, self.trials, self.open = list[SearchSetting](), list[Trial](), 0

    def __call__(self, setting: SearchSetting) -> Lab:
        self.settings.append(setting)
        self.open += 1
        return self

    capacity = 1

    def submit(self, trial: Trial) -> None:
        self.trials.append(trial)

    def outcome(self, timeout: float | None = None) -> TrialOutcome | None:
        del timeout
        if self.state in ("failed", "wrong"):
            error = {"code": "E0601", "message": "differs", "node": "y"}
            return TrialOutcome(number=0, state=self.state, error=error)
        value = self.ratio()
        width = 0.0 if value == 1.0 else 0.001
        return TrialOutcome(
            number=0, state=self.state, seconds=2e-3 * value, ratio=Interval(value, value - width, value + width)
        )

    def close(self) -> None:
        self.open -= 1


def _confirmed(lab: Lab, **options: float) -> Confirmed:
    steps: Iterator[float] = iter(np.arange(1000) * options.get("step", 0.0))
    return confirmation(SETTING, {"k": "v"}, lab, clock=lambda: float(next(steps)))


def test_what_every_process_finds_faster_is():
    lab = Lab(lambda: 0.95 + 0.01 * RNG.random())
    found = _confirmed(lab)
    assert (found.faster, found.verdict, found.processes) == (True, "faster", 6)
    assert 0.95 <= found.low <= found.ratio <= found.high <= 0.96
    assert found.default_seconds == pytest.approx(2e-3, rel=0.01) and lab.open == 0


def test_each_process_has_inputs_of_its_own_against_the_default():
    lab = Lab(lambda: 0.9)
    _confirmed(lab)
    assert [setting.seed for setting in lab.settings] == [5 + FRESH_SEEDS * (i + 1) for i in range(6)]
    assert all((trial.configuration, trial.incumbent) == ({"k": "v"}, {}) for trial in lab.trials)


def test_what_is_slower_is_said_to_be():
    found = _confirmed(Lab(lambda: 1.1, state="pruned"))
    assert (found.faster, found.verdict) == (False, "slower") and found.low > 1


def test_processes_that_disagree_show_no_difference():
    ratios = iter([0.99, 1.01] * 50)
    found = _confirmed(Lab(lambda: next(ratios)))
    assert (found.faster, found.verdict, found.processes) == (False, "no difference", PROCESSES)
    assert found.low < 1 < found.high


def test_the_same_program_is_not_measured_again():
    lab = Lab(lambda: 1.0)
    found = _confirmed(lab)
    assert (found.low, found.ratio, found.high, found.processes) == (1.0, 1.0, 1.0, 1)
    assert not found.faster and found.verdict == "no difference" and len(lab.trials) == 1


def test_a_machine_that_is_slow_has_six_processes():
    ratios = iter([0.99, 1.01] * 50)
    assert _confirmed(Lab(lambda: next(ratios)), step=2 * LIMIT_SECONDS).processes == 6


def test_nothing_is_found_where_there_is_nothing():
    """2.5 of 100 searches; more than 34 of 500 come once in ten million sessions."""
    claims = sum(_confirmed(Lab(lambda: float(np.exp(0.02 * RNG.standard_t(2))))).faster for _ in range(500))
    assert claims <= 34


@pytest.mark.parametrize("state", ["failed", "wrong"])
def test_a_trial_that_fails_is_an_error_and_nothing_stays_open(state: State):
    lab = Lab(lambda: 1.0, state)
    with pytest.raises(FuselineError) as caught:
        _confirmed(lab)
    assert (caught.value.code, caught.value.node) == ("E0601", "y") and lab.open == 0


def test_an_interruption_leaves_nothing_open():
    def interrupted() -> float:
        raise KeyboardInterrupt

    lab = Lab(interrupted)
    with pytest.raises(KeyboardInterrupt):
        _confirmed(lab)
    assert lab.open == 0


def test_what_each_region_gained_is_told_by_all_processes():
    lab = Lab(lambda: 0.9)
    outcome = lab.outcome

    def with_dispatches(timeout: float | None = None) -> TrialOutcome | None:
        found = outcome(timeout)
        assert found is not None
        faster = 1e-3 * (1 + 0.01 * float(RNG.standard_normal()))
        times = {"a+b": faster, "c": 1e-3}
        before = {"a": 1e-3, "b": 1e-3, "c": 1e-3}
        return msgspec.structs.replace(
            found,
            dispatch_seconds=times,
            incumbent_dispatch_seconds=before,
            dispatch_error=dict.fromkeys(["a+b", "a", "b"], 9.0),
        )

    lab.outcome = with_dispatches
    (region,) = _confirmed(lab).regions
    assert (region.default, region.tuned) == (("a", "b"), ("a+b",))
    assert region.gain_seconds == pytest.approx(1e-3, rel=0.05) and 0 < region.error_seconds < 5e-5
