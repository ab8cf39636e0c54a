"""The CPU seconds that tests take, by function: an average variation. `make cpu-seconds` measures all of them.

What is not kept is quick. A test that is new, or renamed, runs in every session until they are measured again.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

import pytest

from tests.shares import function_of

KEPT = Path(__file__).with_suffix(".json")
LEAST_SECONDS = 0.1


def kept() -> dict[str, float]:
    """The seconds of functions that take long."""
    return json.loads(KEPT.read_text(encoding="utf-8"))


def merged(known: Mapping[str, float], measured: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """What is kept after a session that has measured some functions: of their files nothing else."""
    files = {_file(function) for function in measured}
    means = {function: sum(each) / len(each) for function, each in measured.items()}
    found = {function: mean for function, mean in known.items() if _file(function) not in files} | means
    return {function: round(found[function], 2) for function in sorted(found) if found[function] >= LEAST_SECONDS}


class Meter:
    """Measures tests, in the workers of a session that runs in parallel; its controller `keeps` what they take."""

    def __init__(self, *, keeps: bool) -> None:
        self._keeps = keeps
        self._began = 0.0
        self._measured: dict[str, list[float]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        self._began = _used()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        report.user_properties.append(("cpu_seconds", _used() - self._began))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            seconds = float(str(dict(report.user_properties)["cpu_seconds"]))
            self._measured.setdefault(function_of(report.nodeid), []).append(seconds)

    def pytest_sessionfinish(self) -> None:
        if self._keeps:
            KEPT.write_text(json.dumps(merged(kept(), self._measured), indent=0) + "\n", encoding="utf-8")


def _used() -> float:
    """By this process and those that it has waited for."""
    return sum(usage.ru_utime + usage.ru_stime for usage in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))


def _file(function: str) -> str:
    return function.partition("::")[0]
