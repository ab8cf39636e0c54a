"""Runs trials in this process: compile, check, time against the incumbent; whatever a trial does wrong is its outcome.

trial ──realize──> arguments ──compile──> program ──agrees?──> timed in turns with the incumbent ──> outcome
                                                      no: wrong                        raises: failed
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fuseline.border import coded
from fuseline.compiled_model import CompiledModel
from fuseline.errors import FuselineError
from fuseline.runtime import Artifact, Session
from fuseline.runtime.feed_files import Feeds
from fuseline.tuning.agreement import Agreement
from fuseline.tuning.attribution import TimedProgram, attributed, launches
from fuseline.tuning.error_texts import error_texts
from fuseline.tuning.machine_kind import machine_kind
from fuseline.tuning.objectives import arena_bytes, objectives
from fuseline.tuning.others_load import BUSY_SHARE, OthersLoad
from fuseline.tuning.paired_rounds import Limits, PairedTimes, paired_rounds
from fuseline.tuning.realize import realized
from fuseline.tuning.same_program import same_program
from fuseline.tuning.sampler import Clock, MachineClock, Sampler, ThreadClock
from fuseline.tuning.setting import Realize, SearchSetting
from fuseline.tuning.shared_weights import on_level_ground
from fuseline.tuning.trial import Interval, Trial, TrialOutcome
from fuseline.verify.dispatch_times import DispatchTimer, program_run
from fuseline.verify.model_feeds import model_hints

ATTRIBUTION_SHARE = 0.5
"""Of a trial's budget, what may be spent on single dispatches besides."""

WITHOUT_CODE = "E0305"
"""What runs of a target without code raise."""


class TrialRunner:
    """Runs trials of one search one after the other, and keeps the incumbent's program between them.

    Args:
        setting: the search. realize: makes arguments of a configuration (`realized` if left out). folder: for files
        that arguments name; one of its own if left out, which `close` removes.
    """

    def __init__(self, setting: SearchSetting, realize: Realize | None = None, folder: Path | None = None) -> None:
        self.setting, self._realize = setting, realize or realized
        self._kept: _Kept | None = None
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

    def get_ready(self) -> None:
        """Make what all trials share, before the first asks for it; what goes wrong is for that one to say."""
        with suppress(Exception):
            _ = self._agreement

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
        compiled = self.program(trial.configuration)
        known = objectives(compiled.record)
        if self._agreement is None:
            return {"state": "complete", "seconds": sum(known["predicted_seconds"].values()), **known}
        incumbent = self._incumbent(trial.incumbent)
        program = on_level_ground(compiled, incumbent.program)
        self._agreement.require(program)
        if not known["transient_bytes"] and isinstance(artifact := program.session.artifact, Artifact):
            known["transient_bytes"] = arena_bytes(artifact, self.feeds)
        times = self._times(program, incumbent.program, trial)
        state = "pruned" if times.verdict == "slower" else "complete"
        told = state == "pruned" and len(changes(trial)) == 1  # which choice is slower, nothing need say
        attribution = self._attributed(program, incumbent, trial) if self.setting.attribution and not told else {}
        return {"state": state, "ratio": times.ratio, "seconds": times.trial_seconds, **attribution, **known}

    def _times(self, program: CompiledModel, incumbent: CompiledModel, trial: Trial) -> PairedTimes:
        if _are_one(program, incumbent, trial):
            seconds = self._sampler(incumbent, clock_of(incumbent))()
            return PairedTimes(Interval(1.0, 1.0, 1.0), "same", seconds, 0)
        return self.compared(program, incumbent, Limits(self.setting.rounds, trial.budget_seconds), trial.number)

    def compared(self, program: CompiledModel, incumbent: CompiledModel, limits: Limits, seed: int) -> PairedTimes:
        """Both timed in turns; `seed` of whose turn it is. Raises E0606 where their numbers of threads differ and other
        programs take the processors."""
        clock, others = clock_of(program, incumbent), OthersLoad()
        ours, theirs = self._sampler(program, clock), self._sampler(incumbent, clock)
        found = paired_rounds(ours, theirs, limits, round_cost=ours.cost + theirs.cost, seed=self.setting.seed + seed)
        if program.threads != incumbent.threads and (share := others.share()) > BUSY_SHARE:
            raise _too_busy(share, program.threads, incumbent.threads)
        return found

    def _sampler(self, program: CompiledModel, clock: Clock) -> Sampler:
        feeds = self.feeds
        return Sampler(lambda: renewed(program).bind(feeds), clock, wall=MachineClock())

    def _attributed(self, program: CompiledModel, incumbent: _Kept, trial: Trial) -> dict[str, dict[str, float]]:
        """Fields of the outcome about single dispatches; none for programs that are not launched one by one here."""
        clock = clock_of(program, incumbent.program)
        ours, theirs = timed_program(program, self.feeds, clock), incumbent.timed(self.feeds, clock)
        if ours is None or theirs is None:
            return {}
        found = attributed(
            ours, theirs, trial.budget_seconds * ATTRIBUTION_SHARE, seed=self.setting.seed + trial.number
        )
        return {
            "dispatch_seconds": dict(found.trial),
            "incumbent_dispatch_seconds": dict(found.incumbent),
            "dispatch_error": dict(found.error),
        }

    def _incumbent(self, configuration: Mapping[str, str]) -> _Kept:
        key = json.dumps(configuration, sort_keys=True)
        if self._kept is None or self._kept.key != key:
            self._kept = None
            self._kept = _Kept(key, on_level_ground(self.program(configuration)))
        return self._kept

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
                self._incumbent({}).program,
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
    def feeds(self) -> Feeds:
        """What programs are timed on. Raises E0305 on a target without code."""
        if self._agreement is None:
            raise FuselineError(WITHOUT_CODE, "a target without code is not timed", node=self.setting.model)
        return self._agreement.feeds[0]


@dataclass
class _Kept:
    """An incumbent between trials."""

    key: str
    program: CompiledModel
    _timed: dict[type, TimedProgram | None] = field(default_factory=dict[type, "TimedProgram | None"])

    def timed(self, feeds: Feeds, clock: Clock) -> TimedProgram | None:
        """Its dispatches one by one, prepared once for a kind of clock."""
        if type(clock) not in self._timed:
            self._timed[type(clock)] = timed_program(self.program, feeds, clock)
        return self._timed[type(clock)]


def timed_program(program: CompiledModel, feeds: Feeds, clock: Clock) -> TimedProgram | None:
    """The program with a timer of its dispatches; None for one that is not launched one by one here, or whose records
    are of another program than what runs these sizes."""
    artifact = program.session.artifact
    if not isinstance(artifact, Artifact) or not isinstance(program.session, Session):
        return None
    run = program_run(artifact, feeds, program.threads)
    if run is artifact.fallback:
        return None
    timer = DispatchTimer(run, feeds, program.threads, clock)
    return TimedProgram(timer, launches(timer.labels, program.record.dispatches, program.threads))


def _are_one(program: CompiledModel, incumbent: CompiledModel, trial: Trial) -> bool:
    """Whether there is nothing to compare: the same choices, or others that make the same program."""
    if not changes(trial):
        return True
    artifacts = program.session.artifact, incumbent.session.artifact
    return program.threads == incumbent.threads and same_program(*artifacts)


def _too_busy(share: float, threads: int, others: int) -> FuselineError:
    message = f"other programs took {share:.0%} of the processors while threads were compared: {threads} with {others}"
    return FuselineError("E0606", message, hint="tune again when the machine is quiet, or fix the number: --threads N")


def changes(trial: Trial) -> set[str]:
    """The knobs that the trial sets otherwise than its incumbent."""
    ours, theirs = trial.configuration, trial.incumbent
    return {name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)}


def clock_of(*programs: CompiledModel) -> Clock:
    """What times all of them: processor time where each runs in the calling thread alone."""
    alone = all(
        isinstance(program.session, Session) and program.threads == 1 and not program.record.host_ops
        for program in programs
    )
    return ThreadClock() if alone else MachineClock()


def renewed(program: CompiledModel) -> CompiledModel:
    """The program again, with its code and its transients elsewhere in memory; itself, where others run it."""
    if not isinstance(program.session, Session):
        return program
    return CompiledModel(Session(program.session.artifact, threads=program.threads), from_cache=program.from_cache)


def worker_name() -> str:
    """Which process this is, for people: host and process id."""
    return f"{socket.gethostname()}:{os.getpid()}"
