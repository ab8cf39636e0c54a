"""The least time of each dispatch: of many trials, for one launch, one trip."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.runtime import Artifact
from fuseline.verify import least_dispatch_times as module
from fuseline.verify.dispatch_times import DispatchTimer
from fuseline.verify.least_dispatch_times import LEAST_SECONDS, LEAST_TRIALS, MOST_LAUNCHES, least_dispatch_seconds
from tests.graphs.onnx_text import onnx_model


class _Timer:
    """Two dispatches, of a launch each and of three trips; others disturb all samples but every fourth."""

    labels, trips, each = ("quick", "slow"), (1, 3), (2e-6, 4e-3)

    def __init__(self, artifact: Any, feeds: Any, threads: int, clock: Callable[[], float]) -> None:
        self.asked: list[tuple[int, int]] = []
        _made.append((self, threads, clock))

    def sample(self, index: int, launches: int) -> float:
        self.asked.append((index, launches))
        return self.each[index] * (1 if len(self.asked) % 4 == 0 else 7)


_made: list[tuple[_Timer, int, Callable[[], float]]] = []


@pytest.fixture
def timer(monkeypatch: pytest.MonkeyPatch) -> None:
    _made.clear()
    monkeypatch.setattr(module, "DispatchTimer", _Timer)


def _least(threads: int = 1, seconds: float = 1e-3) -> list[tuple[str, float]]:
    found = least_dispatch_seconds(None, {}, threads, seconds)  # pyright: ignore[reportArgumentType]
    return [(one.label, one.seconds) for one in found]


@pytest.mark.usefixtures("timer")
def test_the_least_of_the_trials_counts_for_one_trip():
    assert _least(seconds=0.02) == [("quick", 2e-6), ("slow", pytest.approx(4e-3 / 3))]


@pytest.mark.usefixtures("timer")
def test_what_is_quick_is_launched_several_times_in_a_trial():
    _least()
    ((timer, *_),) = _made
    counts = {index: max(launches for one, launches in timer.asked if one == index) for index in (0, 1)}
    assert counts[0] == MOST_LAUNCHES and counts[1] == 1


@pytest.mark.usefixtures("timer")
def test_there_are_some_trials_however_little_time_is_given():
    _least(seconds=0.0)
    ((timer, *_),) = _made
    assert sum(index == 1 for index, _ in timer.asked) >= 2 * LEAST_TRIALS


@pytest.mark.usefixtures("timer")
def test_one_thread_is_timed_by_its_own_clock():
    for threads in (1, 2):
        _least(threads)
    assert [clock.__name__ for _, _, clock in _made] == ["thread_time", "perf_counter"]


def test_a_clock_that_stood_still_is_no_time_at_all(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "DispatchTimer", _Timer)
    monkeypatch.setattr(_Timer, "each", (0.0, 0.0))
    assert [seconds for _, seconds in _least()] == [LEAST_SECONDS, LEAST_SECONDS]


def test_every_dispatch_of_a_program_has_a_time():
    model = onnx_model(
        "(float[8, 32] x) => (float[8, 8] y) { t = MatMul(x, w)  u = Softmax(t)  y = MatMul(u, v) }",
        {name: np.ones(shape, np.float32) / 32 for name, shape in {"w": (32, 16), "v": (16, 8)}.items()},
    )
    artifact = fuseline.compile(model, threads=1, fusion="none").session.artifact
    assert isinstance(artifact, Artifact)
    feeds = {"x": np.linspace(-1, 1, 256, dtype=np.float32).reshape(8, 32)}
    told: list[tuple[int, int]] = []
    found = least_dispatch_seconds(artifact, feeds, 1, 1e-3, lambda done, total: told.append((done, total)))
    assert [one.label for one in found] == list(DispatchTimer(artifact, feeds, 1).labels) and len(found) > 2
    assert all(one.seconds > 0 for one in found)
    assert told == [(index, len(found)) for index in range(len(found))]
