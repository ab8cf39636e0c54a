"""Trials as lines of JSON, and an evaluator that answers from them: the same seed and the same measurements give the
same search again.

    {"fuseline": "trials", "version": 1, "about": {"graph": .., "seed": 0, "window": 1, ..}}
    {"configuration": {}, "outcome": {"number": 0, "state": "complete", "seconds": 0.0021, ..}}
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec

from fuseline.errors import FuselineError
from fuseline.tuning.study import About
from fuseline.tuning.trial import Trial, TrialOutcome

VERSION = 1
_HINT = "give a file that `fuseline tune --record` wrote"


class Recorded(msgspec.Struct, frozen=True):
    """One trial as a line has it."""

    configuration: dict[str, str]
    outcome: TrialOutcome


class TrialLog:
    """Writes trials as they are told; each line is whole before the next trial is."""

    def __init__(self, path: Path, about: About) -> None:
        """Raises E0502 for a file that is there already, or cannot be written."""
        try:
            self._file = open(path, "xb")
        except OSError as problem:
            hint = "give a file that is not there yet"
            raise FuselineError("E0502", f"cannot write: {problem.strerror}", node=str(path), hint=hint) from problem
        self._write({"fuseline": "trials", "version": VERSION, "about": msgspec.to_builtins(about)})

    def add(self, configuration: dict[str, str], outcome: TrialOutcome) -> None:
        """The next trial."""
        self._write(Recorded(configuration, outcome))

    def __enter__(self) -> TrialLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def _write(self, line: Any) -> None:
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()


class RecordedEvaluator:
    """Answers trials from a log. `about`: the search that wrote it; `trials`: how many it has."""

    def __init__(self, path: Path) -> None:
        """Raises E1002 for a file that is no such log."""
        self._path = path
        self.about, self._known = _read(path)
        self._answers: deque[TrialOutcome] = deque()

    @property
    def trials(self) -> int:
        """How many trials are recorded, from the first on."""
        return len(self._known)

    @property
    def capacity(self) -> int:
        """As many at a time as the search that wrote the log had under way."""
        return self.about.window

    def submit(self, trial: Trial) -> None:
        """Raises E1002 where the trial of this number was another one, or there is none."""
        found = self._known.get(trial.number)
        if found is None:
            raise FuselineError("E1002", f"trial {trial.number} is not recorded", node=str(self._path))
        if found.configuration != trial.configuration:
            message = f"trial {trial.number} had other choices"
            hint = "replay with the model, the options and the version of fuseline that wrote it"
            raise FuselineError("E1002", message, node=str(self._path), hint=hint)
        self._answers.append(found.outcome)

    def outcome(self, timeout: float | None = None) -> TrialOutcome | None:
        """The next recorded outcome that was asked for."""
        del timeout
        return self._answers.popleft() if self._answers else None

    def close(self) -> None:
        """Nothing runs."""


def _read(path: Path) -> tuple[About, dict[int, Recorded]]:
    try:
        first, *rest = path.read_bytes().splitlines()
        head = msgspec.json.decode(first, type=dict[str, Any])
        if (head.get("fuseline"), head.get("version")) != ("trials", VERSION):
            raise FuselineError("E1002", f"no trials of version {VERSION}", node=str(path), hint=_HINT)
        about = msgspec.convert(head["about"], About)
        trials = [msgspec.json.decode(line, type=Recorded) for line in rest]
    except (OSError, ValueError, KeyError, msgspec.MsgspecError) as problem:
        reason = str(problem) or type(problem).__name__
        raise FuselineError("E1002", f"cannot be read: {reason}", node=str(path), hint=_HINT) from problem
    return about, {trial.outcome.number: trial for trial in trials}
