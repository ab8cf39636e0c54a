"""Trials in this process: states, what is kept between them, targets without code. Nothing here hangs on a duration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from fuseline.compiled_model import CompiledModel
from fuseline.errors import FuselineError
from fuseline.tuning import runner as module
from fuseline.tuning.machine_kind import machine_kind
from fuseline.tuning.paired_rounds import Limits, PairedTimes
from fuseline.tuning.runner import TrialRunner
from fuseline.tuning.setting import SearchSetting
from fuseline.tuning.trial import Interval, Trial, TrialOutcome
from tests.draws import RNG
from tests.unit.tuning.realisations import OTHER, harmful, plain, written


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return written(tmp_path, w=RNG.standard_normal((8, 16)).astype("f4"))


def _runner(model: Path, realize: Any = plain, **options: Any) -> TrialRunner:
    return TrialRunner(SearchSetting(model=str(model), options={"threads": 1, **options}, knobs=(), rounds=6), realize)


def _trial(incumbent: dict[str, str] | None = None, **configuration: str) -> Trial:
    return Trial(number=3, configuration=configuration, incumbent=incumbent or {}, budget_seconds=0.0)


def test_a_trial_is_measured_against_the_incumbent(model: Path):
    found = _runner(model).run(_trial(fusion="none"))
    assert found.state in ("complete", "pruned") and found.error is None
    assert found.ratio is not None and found.ratio.low <= found.ratio.value <= found.ratio.high
    assert found.number == 3 and found.seconds > 0 and found.machine == machine_kind()
    assert found.worker.endswith(f":{os.getpid()}")
    assert found.dispatches == len(found.predicted_seconds) > 1 and found.code_bytes > 0


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_choices_that_change_nothing_are_not_timed(model: Path, monkeypatch: pytest.MonkeyPatch, target: str):
    monkeypatch.setattr(module, "paired_rounds", None)
    found = _runner(model, target=target).run(_trial())
    assert found.state == "complete" and found.ratio == Interval(1.0, 1.0, 1.0) and found.seconds > 0


@pytest.mark.parametrize(
    ("verdict", "state"), [("slower", "pruned"), ("faster", "complete"), ("same", "complete"), ("open", "complete")]
)
def test_only_what_is_clearly_slower_is_given_up(
    model: Path, monkeypatch: pytest.MonkeyPatch, verdict: Any, state: str
):
    times = PairedTimes(Interval(1.1, 1.05, 1.2), verdict, 2.0, 8)
    monkeypatch.setattr(module, "paired_rounds", lambda *_, **__: times)
    found = _runner(model).run(_trial(fusion="none"))
    assert (found.state, found.ratio, found.seconds) == (state, times.ratio, 2.0)


@pytest.mark.parametrize(("harm", "code"), [("raise", "E0901"), ("memory", "E0405")])
def test_what_a_trial_raises_is_its_outcome(model: Path, harm: str, code: str):
    runner = _runner(model, harmful)
    found = runner.run(_trial(harm=harm))
    assert found.state == "failed" and found.error is not None and found.error["code"] == code
    assert runner.run(_trial()).state == "complete"


def test_an_option_that_is_wrong(model: Path):
    found = _runner(model).run(_trial(fusion="somehow"))
    assert found.state == "failed" and found.error is not None and found.error["code"] == "E0501"


def test_a_model_that_is_not_there(tmp_path: Path):
    found = _runner(tmp_path / "none.onnx").run(_trial())
    assert found.state == "failed" and found.error is not None and found.error["code"] == "E0101"


class OtherModel(TrialRunner):
    """Compiles another model for trials that ask for it: a compiler that is wrong."""

    def program(self, configuration: Mapping[str, str], **choices: Any) -> CompiledModel:
        import fuseline

        if configuration.get("fusion") == "aggressive":
            return fuseline.compile(Path(self.setting.model).with_name("other.onnx"), threads=1)
        return super().program(configuration, **choices)


def test_a_trial_with_other_outputs_is_wrong(tmp_path: Path, model: Path):
    written(tmp_path, OTHER, "other.onnx", w=RNG.standard_normal((8, 16)).astype("f4"))
    runner = OtherModel(SearchSetting(model=str(model), options={"threads": 1}, knobs=(), rounds=6), plain)
    found = runner.run(_trial(fusion="aggressive"))
    assert found.state == "wrong" and found.ratio is None
    assert found.error is not None and (found.error["code"], found.error["node"]) == ("E0601", "y")


def test_the_incumbent_is_compiled_once(model: Path):
    asked: list[dict[str, str]] = []

    def counted(setting: SearchSetting, configuration: Mapping[str, str], folder: Path) -> dict[str, Any]:
        asked.append(dict(configuration))
        return plain(setting, configuration, folder)

    runner = _runner(model, counted)
    for _ in range(3):
        runner.run(_trial({"fusion": "none"}, dedup="none"))
    assert asked.count({"fusion": "none"}) == 1 and asked.count({}) == 1 and asked.count({"dedup": "none"}) == 3


def test_without_code_the_prediction_is_what_counts(model: Path):
    found = _runner(model, target="null").run(_trial(fusion="none"))
    assert found.state == "complete" and found.ratio is None
    assert found.seconds == pytest.approx(sum(found.predicted_seconds.values())) and found.seconds > 0


def test_a_target_that_runs_elsewhere_is_timed_too(model: Path):
    found = _runner(model, target="interpreter").run(_trial(fusion="none"))
    assert found.state in ("complete", "pruned") and found.ratio is not None


def test_files_of_trials_are_gone_when_it_closes(model: Path):
    folders: list[Path] = []

    def noting(setting: SearchSetting, configuration: Mapping[str, str], folder: Path) -> dict[str, Any]:
        folders.append(folder)
        return plain(setting, configuration, folder)

    runner = _runner(model, noting)
    runner.run(_trial())
    assert folders[0].is_dir()
    runner.close()
    assert not folders[0].exists()


def test_an_outcome_travels(model: Path):
    found = _runner(model).run(_trial(fusion="none"))
    assert msgspec.json.decode(msgspec.json.encode(found), type=TrialOutcome) == found


def test_outputs_of_the_default_decide_even_under_another_incumbent(model: Path):
    runner = _runner(model)
    found = runner.run(_trial({"fusion": "none"}, fusion="none"))
    assert found.ratio == Interval(1.0, 1.0, 1.0)
    assert np.isfinite(found.seconds)


def test_one_thread_is_timed_by_its_own_clock_and_several_by_the_wall(model: Path):
    clocks = {
        threads: type(module.clock_of(_runner(model, threads=threads).program({}))).__name__ for threads in (1, 2)
    }
    assert clocks == {1: "ThreadClock", 2: "MachineClock"}
    one, elsewhere = _runner(model).program({}), _runner(model, target="interpreter").program({})
    assert type(module.clock_of(one, elsewhere)).__name__ == "MachineClock"


@pytest.mark.parametrize(
    ("verdict", "configuration", "told"),
    [
        ("slower", {"fusion": "none"}, False),
        ("slower", {"fusion": "none", "dedup": "none"}, True),
        ("open", {"fusion": "none"}, True),
    ],
)
def test_dispatches_are_timed_where_they_tell_more_than_the_whole(
    model: Path, monkeypatch: pytest.MonkeyPatch, verdict: Any, configuration: dict[str, str], told: bool
):
    times = PairedTimes(Interval(1.1, 1.05, 1.2), verdict, 2.0, 8)
    monkeypatch.setattr(module, "paired_rounds", lambda *_, **__: times)
    runner = _runner(model)
    found = runner.run(Trial(number=3, configuration=configuration, incumbent={}, budget_seconds=0.0))
    assert bool(found.dispatch_seconds) == bool(found.incumbent_dispatch_seconds) == told
    if told:
        assert set(found.dispatch_seconds) == set(found.predicted_seconds) and found.dispatch_error
    quiet = TrialRunner(msgspec.structs.replace(runner.setting, attribution=False), plain)
    assert not quiet.run(
        Trial(number=3, configuration=configuration, incumbent={}, budget_seconds=0.0)
    ).dispatch_seconds


def test_the_default_knows_where_its_time_goes(model: Path):
    found = _runner(model).run(_trial())
    assert set(found.dispatch_seconds) == set(found.predicted_seconds) and not found.dispatch_error


def test_changes_are_told_from_the_incumbent():
    assert module.changes(_trial({"a": "1", "b": "1"}, a="2", b="1", c="3")) == {"a", "c"}
    assert module.changes(_trial({"a": "1"})) == {"a"}


class Others:
    """Other programs that take half of the machine."""

    def share(self) -> float:
        return 0.5


@pytest.mark.parametrize(("threads", "code"), [(2, "E0606"), (1, None)])
def test_numbers_of_threads_are_not_compared_on_a_busy_machine(
    model: Path, monkeypatch: pytest.MonkeyPatch, threads: int, code: str | None
):
    monkeypatch.setattr(module, "OthersLoad", Others)
    runner = _runner(model)
    programs = runner.program({}, threads=threads, fusion="none"), runner.program({})
    limits = Limits(6, 0.0)
    _ = runner.feeds
    if code is None:
        assert runner.compared(*programs, limits, 0).rounds == 6
        return
    with pytest.raises(FuselineError) as caught:
        runner.compared(*programs, limits, 0)
    assert caught.value.code == code and "50%" in caught.value.message


def test_memory_of_symbolic_sizes_is_that_of_the_sizes_it_is_timed_on(tmp_path: Path):
    text = "(float[n, 8] x) => (y) { a = MatMul(x, w) y = Softmax<axis = 1>(a) }"
    path = written(tmp_path, text, w=RNG.standard_normal((8, 16)).astype("f4"))
    runner = _runner(path)
    found = runner.run(_trial(fusion="none"))
    assert found.error is None and len(runner.feeds["x"]) == 1
    assert found.transient_bytes >= 16 * 4  # the product lies in memory
