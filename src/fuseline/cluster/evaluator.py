"""Trials of a search on the workers of a cluster."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec
from distributed import Client

from fuseline.cluster.admission import wanted
from fuseline.cluster.connect import connected
from fuseline.cluster.jobs import Done, Jobs
from fuseline.cluster.sending import send
from fuseline.cluster.shipment import model_shipment
from fuseline.cluster.shipped_options import shipped_options
from fuseline.cluster.team import ANSWER_SECONDS, Team
from fuseline.cluster.trial_work import Run, TrialWork, end_search, run_trial, start_early
from fuseline.errors import FuselineError
from fuseline.tuning.error_texts import error_texts
from fuseline.tuning.setting import SearchSetting
from fuseline.tuning.trial import Trial, TrialOutcome


class ClusterEvaluator:
    """An `Evaluator` whose trials run on workers: of one kind of machine, each on cores of its own, at most one at a
    time per worker. A trial that loses its worker runs elsewhere; its number has one outcome.

    Args:
        setting: the search. Its model and the files that its options name go to the workers by content.
        scheduler: an address such as `tcp://host:8786`, or `local` for processes of this machine; or a client, which
        stays open (`connected`).
        kind: the kind of machine (`tuning.machine_kind`) or a part of its name; the most frequent if None.
        notice: is told in lines which workers do not take part, and why.
        run: runs a trial on a worker. patience: seconds for which no worker at all may be there.

    Raises FuselineError: E1101 where no scheduler answers, E1102 where no worker can take part, E0101 for a model that
    is not there.
    """

    def __init__(
        self,
        setting: SearchSetting,
        scheduler: str | Client,
        *,
        kind: str | None = None,
        notice: Callable[[str], object] = lambda line: None,
        run: Run = run_trial,
        patience: float = ANSWER_SECONDS,
    ) -> None:
        cores = cores_of(setting)
        options = shipped_options(setting.options)
        bare = msgspec.structs.replace(setting, options={})
        self._work = TrialWork(uuid.uuid4().hex, bare, model_shipment(Path(setting.model)), options, cores)
        self._run = run
        with ExitStack() as stack:
            client = stack.enter_context(connected(scheduler, cores=cores)) if isinstance(scheduler, str) else scheduler
            asked = wanted(str(setting.options.get("target", "cpu")), cores)
            self._team = Team(client, asked, kind=kind, prepare=self._prepare, notice=notice, patience=patience)
            self._jobs: Jobs[TrialOutcome] = Jobs(self._team)
            stack.callback(self._end)
            self._team.gather()
            self._stack = stack.pop_all()

    @property
    def capacity(self) -> int:
        """How many trials run at a time; changes as workers come and go."""
        return max(1, self._team.capacity)

    @property
    def kind(self) -> str:
        """The kind of machine that takes part."""
        return self._team.kind

    def submit(self, trial: Trial) -> None:
        """Run `trial` on a worker that is free, or the first to be."""
        self._jobs.submit(trial.number, self._run, self._work, trial)

    def outcome(self, timeout: float | None = None) -> TrialOutcome | None:
        """The next finished trial; None where none finished within `timeout` seconds, or none was submitted. Raises
        FuselineError: E1101 where the scheduler is gone, E1102 where no worker is left; what was told before stands."""
        done = self._jobs.done(timeout)
        return None if done is None else self._outcome_of(done)

    def close(self) -> None:
        """Give up what runs, and leave no process behind that this started."""
        self._stack.close()

    def __enter__(self) -> ClusterEvaluator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _outcome_of(self, done: Done[TrialOutcome]) -> TrialOutcome:
        if done.result is not None and done.result.machine == self.kind:
            return done.result
        error = done.error or FuselineError(
            "E1102", "it was measured on another kind of machine", node=done.result.machine if done.result else None
        )
        return TrialOutcome(
            number=done.number, state="failed", error=error_texts(error), machine=self.kind, worker=done.worker
        )

    def _prepare(self, address: str) -> None:
        """Send a worker what it lacks, and have it start the process of its trials meanwhile."""
        for sent in (self._work.model, *self._work.options.shipments()):
            send(sent, self._team.caller(address))
        if self._run is run_trial:
            self._team.caller(address)(start_early, self._work)

    def _end(self) -> None:
        self._jobs.cancel()
        members = list(self._team.members)
        if members:
            with suppress(FuselineError):  # the scheduler is gone: workers end it when nothing more comes
                self._team.ask(end_search, self._work.search, workers=members)


def cores_of(setting: SearchSetting) -> int:
    """How many cores a trial takes: the threads that the options ask for, or the most that the search may choose; one
    where neither says.

    >>> cores_of(SearchSetting(model="m.onnx", options={"threads": 2}, knobs=()))
    2
    """
    threads = setting.options.get("threads")
    if threads is not None:
        return int(threads)
    return max((int(choice) for knob in setting.knobs if knob.space == "threads" for choice in knob.choices), default=1)
