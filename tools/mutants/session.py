"""One pytest session that collects the tests once; measuring and mutants then run them in forked children, in any order
and as often as needed."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from .changes import Mutant, module_name
from .forks import Job, outcomes
from .put_in_place import Live
from .reach import Reach, digest, measure
from .verdicts import Verdict, verdict

MEASURED_AT_ONCE = 10
"""Tests that one child measures."""


class Session:
    """A pytest plugin: instead of the tests, `work` runs, with this object as its argument."""

    def __init__(self, root: Path, work: Callable[[Session], None]) -> None:
        self.root = root
        self.work = work
        self.items: dict[str, pytest.Item] = {}
        self._failed = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Hand the collected tests over; none where some file does not read: its mutants would count as left."""
        if session.testsfailed:
            raise session.Interrupted(f"{session.testsfailed} test files cannot be collected")
        self.items = {item.nodeid: item for item in session.items}
        self.work(self)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure, of set-up and tear-down too."""
        self._failed = self._failed or report.failed

    def passes(self, name: str, following: str | None = None) -> bool:
        """Run one test here; `following`, the test run next, keeps the fixtures they share."""
        self._failed = False
        item, after = self.items[name], self.items.get(following or "")
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        return not self._failed

    def first_failure(self, names: Sequence[str]) -> str | None:
        """The first of the tests that fails, run in order; None where all pass."""
        for name, following in zip(names, [*names[1:], None], strict=True):
            if not self.passes(name, following):
                return name
        return None

    def files(self) -> list[tuple[str, str]]:
        """Each test with the file it stands in, relative to the project."""
        return [(name, str(item.path.relative_to(self.root))) for name, item in self.items.items()]


def start(root: Path, tests: Sequence[str], work: Callable[[Session], None]) -> int:
    """Collect the tests and call `work`; returns pytest's exit code."""
    os.environ["CI"] = "1"  # hypothesis then draws the same examples each time
    options = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly", f"--rootdir={root}"]
    with contextlib.redirect_stdout(sys.stderr):  # what pytest says is no part of the answer
        return pytest.main([*options, *tests], plugins=[Session(root, work)])


def import_sources(files: Sequence[str]) -> None:
    """Import every file that is mutated: a mutant can only be put in place of what is there."""
    for file in files:
        importlib.import_module(module_name(file))


def bring_up_to_date(
    session: Session, reach: Reach, sources: Sequence[str], workers: int, progress: Callable[[str], None]
) -> None:
    """Measure the tests that are new or changed; source files count as measured only where every test was."""
    names = reach.unmeasured(session.root, session.files())
    everything = len(names) == len(session.items)
    groups = [names[i : i + MEASURED_AT_ONCE] for i in range(0, len(names), MEASURED_AT_ONCE)]
    jobs = [
        Job(str(i), partial(measure, group, session.passes, session.root, sources), 1800)
        for i, group in enumerate(groups)
    ]
    found: dict[str, Any] = {}
    for done, outcome in enumerate(outcomes(jobs, workers), 1):
        progress(f"measuring {len(names)} tests: {100 * done // len(groups)} %")
        found |= outcome.value if isinstance(outcome.value, dict) else {}
    reach.add({name: value for name, value in found.items() if name in session.items})
    wanted = {file for _, file in session.files()} | (set(sources) if everything else set())
    reach.files |= {file: digest(session.root / file) for file in wanted}


def judge(
    session: Session, reach: Reach, mutants: Sequence[Mutant], budget: float, workers: int
) -> Iterator[tuple[Mutant, Verdict]]:
    """Run the tests that reach each mutant, at most `budget` seconds of them, until one fails."""
    known = {mutant.name: mutant for mutant in mutants}
    live = Live(session.root)
    gc.freeze()  # children then neither walk nor copy what they share
    jobs = (_job(session, reach, live, mutant, budget) for mutant in mutants)
    for outcome in outcomes(jobs, workers):
        yield known[outcome.key], verdict(outcome)


def confirm(session: Session, reach: Reach, killers: Sequence[str], workers: int) -> list[str]:
    """Of the tests that noticed a mutant, those that fail on unchanged code as well; they are left out from now on.

    They passed when they were measured, so only code that has changed since makes them fail.
    """
    if all(digest(session.root / file) == kept for file, kept in reach.files.items() if file.startswith("src/")):
        return []
    jobs = [Job(name, partial(session.first_failure, [name]), 600) for name in killers]
    broken = [outcome.key for outcome in outcomes(jobs, workers) if outcome.value is not None or outcome.signal]
    for name in broken:
        reach.tests[name].passes = False
    return broken


def _job(session: Session, reach: Reach, live: Live, mutant: Mutant, budget: float) -> Job:
    exact = reach.files.get(mutant.file) == digest(session.root / mutant.file)
    names = reach.tests_of(mutant.file, mutant.lines(), session.items.keys(), exact=exact)
    names, seconds = reach.within(names, budget)
    return Job(mutant.name, partial(_meet, session, live, mutant, names), 20 + int(4 * seconds))


def _meet(session: Session, live: Live, mutant: Mutant, names: Sequence[str]) -> dict[str, Any]:
    """In a child: the mutant in place, and the tests."""
    if not names:
        return {"tests": 0}
    placed = live.put_in_place(mutant)
    return {"placed": placed, "tests": len(names), "killer": session.first_failure(names) if placed else None}
