"""A landscape with a known optimum, and an evaluator that measures on it: what each choice costs is independent of the
others, but for a pair that only pays together."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import optuna

from fuseline.passes.fusion.plan import Ids
from fuseline.tuning.attributed import Places
from fuseline.tuning.budget import Budget
from fuseline.tuning.goal import Goal
from fuseline.tuning.knob import Knob
from fuseline.tuning.search import Search, SearchResult
from fuseline.tuning.study import About, open_study
from fuseline.tuning.study_file import opened
from fuseline.tuning.trial import Evaluator, Interval, State, Trial, TrialOutcome

OF_TIME = Goal()
LAYERS = 6
DEFAULT_SECONDS = 1e-3

KNOBS = (
    *(Knob(f"plan/{i}", "plan", ("join", "apart"), nodes=(f"n{i}",), ops=((f"a{i}", f"b{i}"),)) for i in range(LAYERS)),
    Knob("kernel/k", "kernels", ("default", "x", "y"), nodes=("n0",), ops=(("a0",), ("a1",))),
    Knob("dedup", "dedup", ("constants", "none")),
)
GROUPS: tuple[Ids, ...] = tuple((f"a{i}", f"b{i}") for i in range(LAYERS))
GOOD = {"plan/1": "apart", "plan/4": "apart", "kernel/k": "y", "dedup": "none"}
"""The optimum."""

BROKEN = {"plan/2": "apart"}
"""A choice that no program can have."""


def layer_seconds(configuration: Mapping[str, str]) -> dict[str, float]:
    """The time of each layer."""
    times = {f"a{i}+b{i}": DEFAULT_SECONDS / LAYERS for i in range(LAYERS)}
    for i in range(LAYERS):
        if configuration.get(f"plan/{i}") == "apart":
            times[f"a{i}+b{i}"] *= 0.7 if GOOD.get(f"plan/{i}") else 1.4
    for i in (0, 1):
        times[f"a{i}+b{i}"] *= {"x": 1.2, "y": 0.9}.get(configuration.get("kernel/k", ""), 1.0)
    slower = 0.95 if configuration.get("dedup") == "none" else 1.0
    return {key: seconds * slower for key, seconds in times.items()}


class LandscapeEvaluator:
    """Answers in any order; `attributed`: with the time of each layer; `crashes_at`: a trial at which it raises."""

    def __init__(
        self, capacity: int = 1, *, attributed: bool = True, crashes_at: int | None = None, shuffle: int = 0
    ) -> None:
        self._capacity, self._attributed, self._crashes_at = capacity, attributed, crashes_at
        self._random, self._waiting = random.Random(shuffle), list[Trial]()
        self.submitted: list[Trial] = []

    @property
    def capacity(self) -> int:
        """Trials at a time."""
        return self._capacity

    def submit(self, trial: Trial) -> None:
        """Take a trial on."""
        if trial.number == self._crashes_at:
            raise KeyboardInterrupt
        self.submitted.append(trial)
        self._waiting.append(trial)

    def outcome(self, timeout: float | None = None) -> TrialOutcome | None:
        """Any of those that wait."""
        del timeout
        if not self._waiting:
            return None
        trial = self._waiting.pop(self._random.randrange(len(self._waiting)))
        return outcome_of(trial, attributed=self._attributed)

    def close(self) -> None:
        """Nothing runs."""


def outcome_of(trial: Trial, *, attributed: bool = True) -> TrialOutcome:
    """What a machine without noise would measure."""
    if any(trial.configuration.get(name) == choice for name, choice in BROKEN.items()):
        error = {"code": "E0703", "message": "cannot be one dispatch", "node": "n2"}
        return TrialOutcome(number=trial.number, state="failed", error=error)
    ours, theirs = (sum(layer_seconds(given).values()) for given in (trial.configuration, trial.incumbent))
    ratio = ours / theirs
    state: State = "pruned" if ratio > 1.3 else "complete"
    return TrialOutcome(
        number=trial.number,
        state=state,
        seconds=ours,
        ratio=Interval(ratio, ratio - 1e-3, ratio + 1e-3),
        transient_bytes=1000 - 100 * sum(choice == "apart" for choice in trial.configuration.values()),
        code_bytes=500,
        dispatch_seconds=layer_seconds(trial.configuration) if attributed else {},
    )


ABOUT = About(
    model="m.onnx",
    graph="g",
    target="t",
    machine="m",
    objectives=("time",),
    knobs=tuple((knob.name, knob.choices) for knob in KNOBS),
)


def searched(
    evaluator: Evaluator,
    file: Path | None = None,
    *,
    trials: int = 30,
    seed: int = 0,
    goal: Goal = OF_TIME,
    resume: bool = False,
    window: int = 1,
    knobs: tuple[Knob, ...] = KNOBS,
    record: Callable[[dict[str, str], TrialOutcome], object] = lambda configuration, outcome: None,
) -> SearchResult:
    """A search of the landscape, kept in `file`, or nowhere."""
    about = msgspec.structs.replace(ABOUT, objectives=goal.objectives)
    storage = opened(file) if file is not None else optuna.storages.InMemoryStorage()
    study, _ = open_study(storage, about, knobs, where=str(file), resume=resume)
    search = Search(
        knobs,
        Places.of(knobs, GROUPS),
        evaluator,
        study,
        goal=goal,
        budget=Budget(trials=trials),
        seed=seed,
        window=window,
        record=record,
    )
    return search.run()


def trace(result: SearchResult) -> list[tuple[tuple[str, str], ...]]:
    """The trials in order."""
    return [tuple(sorted(told.configuration.items())) for told in result.trials.trials]
