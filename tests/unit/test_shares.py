"""Of tests that take long, a default session draws a share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import cpu_seconds
from tests.draws import RNG
from tests.shares import AFFORDED_SECONDS, LONGEST_INTERVAL, function_of, interval, is_drawn

TESTS = [f"tests/test_{name}.py::test_it[{variation}]" for name in "ab" for variation in range(500)]


@pytest.mark.parametrize(
    ("seconds", "sessions"),
    [
        (0.0, 1),
        (AFFORDED_SECONDS, 1),
        (2 * AFFORDED_SECONDS, 2),
        (5 * AFFORDED_SECONDS, 5),
        (99.0, LONGEST_INTERVAL),
    ],
)
def test_the_longer_a_test_takes_the_seldomer_it_runs(seconds: float, sessions: int):
    assert interval(seconds) == pytest.approx(sessions)
    drawn = [is_drawn(test, {"tests/test_a.py::test_it": seconds}) for test in TESTS]
    expected, deviation = 500 / sessions, (500 / sessions * (1 - 1 / sessions)) ** 0.5
    assert sum(drawn[:500]) == pytest.approx(expected, abs=6 * deviation)
    assert all(drawn[500:])


def test_a_session_draws_the_same_again():
    seconds = {function_of(test): float(RNG.uniform(0, 3)) for test in TESTS}
    assert [is_drawn(test, seconds) for test in TESTS] == [is_drawn(test, seconds) for test in TESTS]


def test_what_is_kept_is_an_average_of_what_takes_long():
    known = {"a.py::gone": 2.0, "a.py::slow": 9.0, "b.py::other": 0.5}
    measured = {"a.py::slow": [1.0, 2.0], "a.py::quick": [0.01, 0.02], "c.py::first": [0.333]}
    assert cpu_seconds.merged(known, measured) == {"a.py::slow": 1.5, "b.py::other": 0.5, "c.py::first": 0.33}


def test_a_session_keeps_what_its_tests_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cpu_seconds, "KEPT", tmp_path / "kept.json")
    monkeypatch.setattr(cpu_seconds, "_used", iter([0.0, 1.0, 1.5, 10.0, 10.0, 10.01, 20.0, 21.0, 22.5]).__next__)
    cpu_seconds.KEPT.write_text("{}", encoding="utf-8")
    meter = cpu_seconds.Meter(keeps=True)
    for test in ("a.py::slow[1]", "a.py::quick", "a.py::slow[2]"):
        _run(meter, test)
    cpu_seconds.Meter(keeps=False).pytest_sessionfinish()
    assert cpu_seconds.kept() == {}
    meter.pytest_sessionfinish()
    assert cpu_seconds.kept() == {"a.py::slow": 2.0}


def _run(meter: cpu_seconds.Meter, test: str) -> None:
    """What pytest asks of a plugin while a test runs."""
    meter.pytest_runtest_setup()
    properties = list[tuple[str, object]]()
    for when in ("call", "teardown"):
        report = pytest.TestReport(test, ("", 0, ""), {}, "passed", None, when, user_properties=properties)
        making = meter.pytest_runtest_makereport()
        next(making)
        with pytest.raises(StopIteration):
            making.send(report)
        meter.pytest_runtest_logreport(report)
