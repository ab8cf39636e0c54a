"""The search: trials are proposed, evaluated as many at a time as the evaluator runs, and told in the order of their
numbers, whatever order they finish in. So the trials are a function of the seed and of what was measured.

    propose n ──> begin (storage) ──> submit ──> arrives (storage) ──> told when 0..n-1 are

Trial n is proposed when the trials up to n - window are told, no more and no less. A search that goes on walks through
the trials that the storage has in the same way, and takes their outcomes from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from fuseline.errors import FuselineError
from fuseline.tuning.attributed import Places
from fuseline.tuning.budget import Budget
from fuseline.tuning.goal import Goal
from fuseline.tuning.knob import Knob
from fuseline.tuning.proposer import Proposer
from fuseline.tuning.study import Begun
from fuseline.tuning.told import Told, TrialsTold
from fuseline.tuning.trial import Evaluator, Trial, TrialOutcome

_LOOK_SECONDS = 0.25
"""How often whoever watches is told of time that passes."""


class Journal(Protocol):
    """Where trials are kept: `tuning.study.Study`."""

    @property
    def begun(self) -> Mapping[int, Begun]:
        """The trials that an earlier process left, by number."""
        ...

    def begin(self, number: int, configuration: Mapping[str, str], against: int) -> None:
        """A trial is about to run."""
        ...

    def arrive(self, outcome: TrialOutcome) -> None:
        """A trial is over."""
        ...

    def tell(self, outcome: TrialOutcome, values: tuple[float, ...] | None) -> None:
        """A trial is told."""
        ...


@dataclass(frozen=True, slots=True)
class Watch:
    """What a search says while it goes on. `running`: trials under way; `told`: the trial that was just told."""

    trials: TrialsTold
    running: int
    seconds: float
    budget: Budget
    told: Told | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """All trials that were told. `ended`: `budget`, `searched` (nothing new is left) or `interrupted`."""

    trials: TrialsTold
    ended: str
    seconds: float


def default_window(capacity: int) -> int:
    """Trials under way at a time: some wait, so that one that takes long keeps nobody idle."""
    return capacity if capacity == 1 else 2 * capacity


class Search:
    """One search.

    Args:
        window: trials that may be under way at a time. watch: called as time passes and after each trial; record:
        called with the choices and the outcome of each trial that is told.
    """

    def __init__(
        self,
        knobs: tuple[Knob, ...],
        places: Places,
        evaluator: Evaluator,
        journal: Journal,
        *,
        goal: Goal,
        budget: Budget,
        seed: int = 0,
        window: int = 1,
        trial_seconds: float = 10.0,
        watch: Callable[[Watch], object] = lambda watch: None,
        record: Callable[[dict[str, str], TrialOutcome], object] = lambda configuration, outcome: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.evaluator, self.journal, self.budget, self.window = evaluator, journal, budget, window
        self.trials = TrialsTold(goal)
        self.proposer = Proposer(knobs, places, self.trials, seed)
        self._trial_seconds, self._watch, self._record, self._clock = trial_seconds, watch, record, clock
        self._asked: dict[int, tuple[dict[str, str], int]] = {}
        self._arrived: dict[int, TrialOutcome] = {}
        self._start = clock()

    def run(self) -> SearchResult:
        """Search until the budget is spent or nothing new is left. An interruption keeps what is known.

        Raises the error of the default compile where that fails, and what the evaluator and the journal raise.
        """
        try:
            ended = self._loop()
        except KeyboardInterrupt:
            ended = "interrupted"
        return SearchResult(self.trials, ended, self._seconds)

    @property
    def _seconds(self) -> float:
        return self._clock() - self._start

    @property
    def _told(self) -> int:
        return len(self.trials.trials)

    def _loop(self) -> str:
        while True:
            while len(self._asked) - self._told >= self.window:
                self._tell_next()
            if not self._may_begin(number := len(self._asked)):
                return self._drained("budget")
            configuration = self._proposal(number)
            if configuration is not None:
                self._begin(number, configuration)
            elif self._told < number:
                self._tell_next()
            else:
                return "searched"

    def _may_begin(self, number: int) -> bool:
        return number in self.journal.begun or self.budget.left(number, self._seconds)

    def _drained(self, ended: str) -> str:
        while self._told < len(self._asked):
            self._tell_next()
        return ended

    def _proposal(self, number: int) -> dict[str, str] | None:
        """What is proposed; of a trial that was begun before, what it is."""
        proposed = self.proposer.propose(number)
        begun = self.journal.begun.get(number)
        if begun is None:
            return proposed
        self.proposer.saw(begun.configuration)
        return dict(begun.configuration)

    def _begin(self, number: int, configuration: dict[str, str]) -> None:
        best = self.trials.best
        begun = self.journal.begun.get(number)
        against = begun.against if begun is not None else best.number if best is not None else 0
        self._asked[number] = configuration, against
        if begun is None:
            self.journal.begin(number, configuration, against)
        elif begun.outcome is not None:
            self._arrived[number] = begun.outcome
            return
        incumbent = dict(self.trials.trials[against].configuration) if self.trials.trials else {}
        self.evaluator.submit(
            Trial(number=number, configuration=configuration, incumbent=incumbent, budget_seconds=self._trial_seconds)
        )

    def _tell_next(self) -> None:
        """Wait for the trial whose turn it is, and learn from it."""
        number = self._told
        while number not in self._arrived:
            self._look()
        outcome = self._arrived.pop(number)
        configuration, against = self._asked[number]
        told = self.trials.add(configuration, against, outcome)
        self.journal.tell(outcome, told.values)
        self._record(configuration, outcome)
        if number == 0 and not told.complete:
            raise _failed_default(outcome)
        self.proposer.told(told)
        self._say(told)

    def _look(self) -> None:
        outcome = self.evaluator.outcome(_LOOK_SECONDS)
        if outcome is not None:
            self.journal.arrive(outcome)
            self._arrived[outcome.number] = outcome
        self._say(None)

    def _say(self, told: Told | None) -> None:
        running = len(self._asked) - self._told - len(self._arrived)
        self._watch(Watch(self.trials, running, self._seconds, self.budget, told))


def _failed_default(outcome: TrialOutcome) -> FuselineError:
    """The error of a default that cannot be measured."""
    error = outcome.error or {"code": "E0901", "message": f"the default compile was {outcome.state}"}
    rest = {name: error.get(name) for name in ("node", "hint", "phase")}
    return FuselineError(error["code"], error["message"], **rest)
