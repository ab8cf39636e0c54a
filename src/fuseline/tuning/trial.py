"""What a trial is and what came of it: the one form in which the search, the machine that measures, a cluster's workers
and the storage speak of trials."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

State = Literal["complete", "pruned", "failed", "wrong"]
"""`pruned`: given up as clearly slower than the incumbent. `failed`: a coded error. `wrong`: its outputs differ."""


class Interval(msgspec.Struct, frozen=True):
    """A ratio of times, trial / incumbent of the same rounds, and its confidence interval of 95 %."""

    value: float
    low: float
    high: float


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be tried: `configuration` against `incumbent`, both choices by knob; `budget_seconds` of measuring at
    most. `number` counts from 0 in one study."""

    number: int
    configuration: dict[str, str]
    incumbent: dict[str, str]
    budget_seconds: float = 10.0


class TrialOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a trial.

    Attributes:
        ratio: against the incumbent, measured in the same rounds; None where nothing was measured. seconds: the median
        time of a run; on a target without code the predicted one. transient_bytes, code_bytes: of the program. error:
        the coded error of a trial that `failed` or is `wrong`, as `FuselineError.to_json` has it. dispatch_seconds:
        seconds by dispatch (its members' structural ids joined by `+`), where they were measured one by one.
        incumbent_dispatch_seconds: the same of the incumbent, in the same rounds; dispatch_error: standard errors of
        the difference in seconds, for dispatches that are not the same in both (`tuning.attribution`).
        predicted_seconds: as dispatch_seconds, by the cost model. machine: the kind of machine that measured
        (`tuning.machine_kind`); results of different kinds are never compared. worker: which process did.
    """

    number: int
    state: State
    seconds: float = 0.0
    ratio: Interval | None = None
    transient_bytes: int = 0
    code_bytes: int = 0
    dispatches: int = 0
    error: dict[str, str] | None = None
    dispatch_seconds: dict[str, float] = {}
    incumbent_dispatch_seconds: dict[str, float] = {}
    dispatch_error: dict[str, float] = {}
    predicted_seconds: dict[str, float] = {}
    machine: str = ""
    worker: str = ""


class Evaluator(Protocol):
    """Whatever runs trials: this process's machine, a cluster, or what was recorded before."""

    def submit(self, trial: Trial) -> None:
        """Take a trial on; answers come from `outcomes` in any order."""
        ...

    def outcome(self, timeout: float | None = None) -> TrialOutcome | None:
        """The next finished trial; None where none finished within `timeout` seconds."""
        ...

    @property
    def capacity(self) -> int:
        """How many trials it runs at a time."""
        ...

    def close(self) -> None:
        """Give up what runs, and leave no process behind."""
        ...
