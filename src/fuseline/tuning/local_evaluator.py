"""Trials on this machine, one at a time, in a process that may die of one: a new one takes the next."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from fuseline.errors import FuselineError
from fuseline.tuning.error_texts import error_texts
from fuseline.tuning.machine_kind import machine_kind
from fuseline.tuning.setting import Realize, SearchSetting
from fuseline.tuning.trial import Trial, TrialOutcome
from fuseline.tuning.trial_process import TrialProcess

LIMIT_SECONDS = 600.0
"""Of one trial, compiles and measuring together, beyond its budget."""

_STEP_SECONDS = 3600.0
_LOOK_SECONDS = 1.0


class LocalEvaluator:
    """An `Evaluator` for this machine; `limit_seconds`: what a trial may take beyond its budget before it counts as
    hanging."""

    def __init__(
        self, setting: SearchSetting, realize: Realize | None = None, *, limit_seconds: float = LIMIT_SECONDS
    ) -> None:
        self._setting, self._realize, self._limit = setting, realize, limit_seconds
        self._folder = TemporaryDirectory(prefix="fuseline-tune-")
        self._process: TrialProcess | None = None
        self._waiting: deque[Trial] = deque()
        self._running: Trial | None = None

    @property
    def capacity(self) -> int:
        """One: trials would disturb each other's times."""
        return 1

    def get_ready(self, given_up: Callable[[], bool] = lambda: False) -> None:
        """Start the process and have it make what all trials share, before the first of them. Whoever `given_up` is
        asked of (once a second) may end it."""
        if self._process is not None:
            return
        process = self._process = TrialProcess(self._setting, self._realize, Path(self._folder.name))
        process.request("get_ready")
        while not process.ready(_LOOK_SECONDS):
            if given_up() or process.asked_for > self._limit:
                self._end_process()
                return
        try:
            process.answer("the default")
        except FuselineError:  # the first trial says what is wrong
            self._end_process()

    def submit(self, trial: Trial) -> None:
        """Run `trial` when those before it are done."""
        self._waiting.append(trial)
        self._start_next()

    def outcome(self, timeout: float | None = None) -> TrialOutcome | None:
        """The next finished trial; None where none finished within `timeout` seconds, or none was submitted."""
        end = None if timeout is None else time.monotonic() + timeout
        while self._running is not None and self._process is not None:
            left = self._limit + self._running.budget_seconds - self._process.asked_for
            patience = _STEP_SECONDS if end is None else end - time.monotonic()
            if self._process.ready(min(left, patience)):
                return self._finished(self._running, self._process)
            if left <= 0:
                return self._given_up(self._running)
            if patience <= 0:
                return None
        return None

    def close(self) -> None:
        """End what runs, and leave no process and no file."""
        self._waiting.clear()
        self._end_process()
        self._folder.cleanup()

    def __enter__(self) -> LocalEvaluator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start_next(self) -> None:
        if self._running is not None or not self._waiting:
            return
        if self._process is not None and self._process.gone:
            self._end_process()
        if self._process is None:
            self._process = TrialProcess(self._setting, self._realize, Path(self._folder.name))
        self._running = self._waiting.popleft()
        self._process.request("run", self._running)

    def _finished(self, trial: Trial, process: TrialProcess) -> TrialOutcome:
        try:
            found: TrialOutcome = process.answer(f"trial {trial.number}")
        except FuselineError as error:
            return self._failed(trial, error)
        self._running = None
        self._start_next()
        return found

    def _given_up(self, trial: Trial) -> TrialOutcome:
        seconds = self._limit + trial.budget_seconds
        message = f"the trial was not done after {seconds:.0f} s"
        return self._failed(trial, FuselineError("E0605", message, node=f"trial {trial.number}"))

    def _failed(self, trial: Trial, error: FuselineError) -> TrialOutcome:
        """The outcome of a trial whose process is not fit for another."""
        self._end_process()
        self._start_next()
        return TrialOutcome(number=trial.number, state="failed", error=error_texts(error), machine=machine_kind())

    def _end_process(self) -> None:
        process, self._process, self._running = self._process, None, None
        if process is not None:
            process.end()
