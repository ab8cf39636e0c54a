"""Runs trials in this process: compile, check, time against the incumbent; whatever a trial does wrong is its outcome.

trial ──realize──> arguments ──compile──> program ──agrees?──> timed in turns with the incumbent ──> outcome
                                                      no: wrong                        raises: failed
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from fuseline.border import coded
from fuseline.errors import FuselineError
from fuseline.runtime import Session
from fuseline.tuning.agreement import Agreement
from fuseline.tuning.machine_kind import machine_kind
from fuseline.tuning.objectives import objectives
from fuseline.tuning.paired_rounds import Limits, PairedTimes, paired_rounds
from fuseline.tuning.realize import realized
from fuseline.tuning.same_program import same_program
from fuseline.tuning.sampler import Clock, MachineClock, Sampler, ThreadClock
from fuseline.tuning.setting import SearchSetting
from fuseline.tuning.trial import Interval, Trial, TrialOutcome
from fuseline.verify.model_feeds import model_hints

if TYPE_CHECKING:
    from fuseline.compiled_model import CompiledModel

Realize = Callable[[SearchSetting, Mapping[str, str], Path], dict[str, Any]]
"""A configuration as arguments of `fuseline.compile`, the model aside; files that they name are in the folder."""

WITHOUT_CODE = "E0305"
"""What runs of a target without code raise."""


class TrialRunner:
    """Runs trials of one search one after the other, and keeps the incumbent's program between them.

    Args:
        setting: the search. realize: makes arguments of a configuration; importable by its name, where the runner is
        for another process. folder: for files that arguments name; one of its own if left out, which `close` removes.
    """

    def __init__(self, setting: SearchSetting, realize: Realize = realized, folder: Path | None = None) -> None:
        self.setting, self._realize = setting, realize
        self._kept: tuple[str, CompiledModel] | None = None
        self._own = TemporaryDirectory(prefix="fuseline-trial-") if folder is None else None
        self._folder = folder or Path(self._own.name if self._own else "")

    def run(self, trial: Trial) -> TrialOutcome:
        """What came of it; nothing that a trial does is raised."""
        about: dict[str, Any] = {"number": trial.number, "machine": self._machine, "worker": worker_name()}
        try:
            return TrialOutcome(**about, **self._tried(trial))
        except Exception as problem:  # noqa: BLE001 - a trial may fail in any way; the search goes on
            error = coded(problem, f"trial {trial.number}")
            state = "wrong" if error.code == "E0601" else "failed"
            return TrialOutcome(**about, state=state, error=error_texts(error))

    def close(self) -> None:
        """Forget the programs and the files behind them."""
        self._kept = None
        if self._own is not None:
            self._own.cleanup()

    def program(self, configuration: Mapping[str, str], **choices: Any) -> CompiledModel:
        """The model compiled as `configuration` and `choices` ask. Raises FuselineError as `fuseline.compile` does."""
        from fuseline.api import compile as compile_model

        arguments = self._realize(self.setting, configuration, self._folder)
        return compile_model(self.setting.model, **{**arguments, **choices})

    # one trial --------------------------------------------------------------------------------------------------------

    def _tried(self, trial: Trial) -> dict[str, Any]:
        """Fields of the outcome."""
        program = self.program(trial.configuration)
        known = objectives(program.record)
        if self._agreement is None:
            return {"state": "complete", "seconds": sum(known["predicted_seconds"].values()), **known}
        incumbent = self._incumbent(trial.incumbent)
        self._agreement.require(program)
        times = self._times(program, incumbent, trial)
        state = "pruned" if times.verdict == "slower" else "complete"
        return {"state": state, "ratio": times.ratio, "seconds": times.trial_seconds, **known}

    def _times(self, program: CompiledModel, incumbent: CompiledModel, trial: Trial) -> PairedTimes:
        theirs = self._sampler(incumbent, clock_of(incumbent))
        if program.threads == incumbent.threads and same_program(program.session.artifact, incumbent.session.artifact):
            seconds = theirs()
            return PairedTimes(Interval(1.0, 1.0, 1.0), "same", seconds, seconds, 0)
        return self.compared(program, incumbent, Limits(self.setting.rounds, trial.budget_seconds), trial.number)

    def compared(self, program: CompiledModel, incumbent: CompiledModel, limits: Limits, seed: int) -> PairedTimes:
        """Both timed in turns; `seed` of whose turn it is."""
        clock = clock_of(program, incumbent)
        ours, theirs = self._sampler(program, clock), self._sampler(incumbent, clock)
        return paired_rounds(ours, theirs, limits, round_cost=ours.cost + theirs.cost, seed=self.setting.seed + seed)

    def _sampler(self, program: CompiledModel, clock: Clock) -> Sampler:
        return Sampler(program.bind(self._agreement_of_code.feeds[0]), clock, wall=MachineClock())

    def _incumbent(self, configuration: Mapping[str, str]) -> CompiledModel:
        key = json.dumps(configuration, sort_keys=True)
        if self._kept is None or self._kept[0] != key:
            self._kept = None
            self._kept = key, self.program(configuration)
        return self._kept[1]

    # what all trials share --------------------------------------------------------------------------------------------

    @cached_property
    def _machine(self) -> str:
        return machine_kind()

    @cached_property
    def _agreement(self) -> Agreement | None:
        """What programs must compute; None on a target without code."""
        numerics = self.setting.options.get("numerics", "default")
        try:
            return Agreement(
                self._incumbent({}),
                model_hints(Path(self.setting.model)),
                self.setting.seed,
                apart=lambda: self.program({}, fusion="none", plan=None),
                numerics=numerics,
            )
        except FuselineError as error:
            if error.code == WITHOUT_CODE:
                return None
            raise

    @property
    def _agreement_of_code(self) -> Agreement:
        found = self._agreement
        if found is None:
            raise FuselineError(WITHOUT_CODE, "a target without code is not timed", node=self.setting.model)
        return found


def clock_of(*programs: CompiledModel) -> Clock:
    """What times all of them: processor time where each runs in the calling thread alone."""
    alone = all(
        isinstance(program.session, Session) and program.threads == 1 and not program.record.host_ops
        for program in programs
    )
    return ThreadClock() if alone else MachineClock()


def worker_name() -> str:
    """Which process this is, for people: host and process id."""
    return f"{socket.gethostname()}:{os.getpid()}"


def error_texts(error: FuselineError) -> dict[str, str]:
    """The error as an outcome has it: its parts that are not empty."""
    return {name: str(value) for name, value in error.to_json().items() if value is not None}
