"""Trials on a worker: in a process of their own, on cores that no other worker of the machine holds.

scheduler ──trial──> worker ──holds core 1──> process of the search (kept between its trials) ──> outcome

The worker itself stays out of it: generated code that crashes ends that process, and Dask's heartbeat goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from fuseline.cluster.cores import held_cores, pinned
from fuseline.cluster.jobs import NotPreparedError
from fuseline.cluster.shipment import Shipment
from fuseline.cluster.shipped_options import ShippedOptions, here
from fuseline.errors import FuselineError
from fuseline.tuning.local_evaluator import LocalEvaluator
from fuseline.tuning.machine_kind import machine_kind
from fuseline.tuning.setting import SearchSetting
from fuseline.tuning.trial import Trial, TrialOutcome

IDLE_SECONDS = 120.0
"""After which the process of a search that sends nothing more is ended: the search may have been killed."""

_LOOK_SECONDS = 1.0


class TrialWork(msgspec.Struct, frozen=True):
    """What a worker needs of a search: its name, its setting, the files behind model and options, and how many cores a
    trial takes."""

    search: str
    setting: SearchSetting
    model: Shipment
    options: ShippedOptions
    cores: int

    def here(self) -> SearchSetting:
        """The setting with the paths of this machine. Raises NotPreparedError where a file is missing."""
        return msgspec.structs.replace(self.setting, model=here(self.model), options=self.options.here())


Run: TypeAlias = Callable[[TrialWork, Trial], TrialOutcome]
"""Runs a trial on a worker; importable there by its name."""


@dataclass(slots=True)
class _Search:
    """A search on this worker: its process, and the processors that this is held to."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    over: threading.Event = field(default_factory=threading.Event)
    processors: tuple[int, ...] = ()
    evaluator: LocalEvaluator | None = None
    trials: int = 0

    def end(self) -> None:
        """End the process; the next trial starts another."""
        evaluator, self.evaluator = self.evaluator, None
        if evaluator is not None:
            evaluator.close()


_searches: dict[str, _Search] = {}


def run_trial(work: TrialWork, trial: Trial) -> TrialOutcome:
    """What came of `trial`. Raises FuselineError: E1103 where the search ended meanwhile."""
    setting, kind = work.here(), machine_kind()  # the machine's, not that of the cores the trial is held to
    search = _searches.setdefault(work.search, _Search())
    with search.lock, held_cores(work.cores, search.processors, search.over.is_set) as processors, pinned(processors):
        if search.evaluator is None or processors != search.processors:
            search.end()
            search.processors, search.evaluator = processors, LocalEvaluator(setting)
        outcome = msgspec.structs.replace(_outcome(search, search.evaluator, trial), machine=kind)
        search.trials += 1
    _end_when_idle(search, search.trials)
    return outcome


def start_early(work: TrialWork) -> None:
    """Have the process of a search get ready for its trials, beside whoever called; the first trial waits for it."""
    search = _searches.setdefault(work.search, _Search())
    threading.Thread(target=_got_ready, args=(work, search), daemon=True).start()


def _got_ready(work: TrialWork, search: _Search) -> None:
    with suppress(FuselineError, NotPreparedError), search.lock:  # the first trial says what is wrong
        if search.evaluator is not None or search.over.is_set():
            return
        setting = work.here()
        with held_cores(work.cores, given_up=search.over.is_set) as processors, pinned(processors):
            search.processors, search.evaluator = processors, LocalEvaluator(setting)
            search.evaluator.get_ready(search.over.is_set)
        if search.over.is_set():
            search.end()
    _end_when_idle(search, search.trials)


def _outcome(search: _Search, evaluator: LocalEvaluator, trial: Trial) -> TrialOutcome:
    evaluator.submit(trial)
    while not search.over.is_set():
        found = evaluator.outcome(_LOOK_SECONDS)
        if found is not None:
            return found
    search.end()
    raise FuselineError("E1103", "the search ended meanwhile", node=f"trial {trial.number}")


def end_search(name: str) -> None:
    """Give up what runs of a search on this worker, and end its process."""
    search = _searches.pop(name, None)
    if search is None:
        return
    search.over.set()
    if search.lock.acquire(blocking=False):  # whoever holds it sees that the search is over
        search.end()
        search.lock.release()


def _end_when_idle(search: _Search, trials: int) -> None:
    def look() -> None:
        if not search.lock.acquire(blocking=False):  # a trial runs
            return
        try:
            if search.trials == trials:
                search.end()
        finally:
            search.lock.release()

    timer = threading.Timer(IDLE_SECONDS, look)
    timer.daemon = True
    timer.start()
