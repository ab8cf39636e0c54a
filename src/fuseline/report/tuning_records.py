"""What a search leaves behind, for tables, `--json` and the page."""

from __future__ import annotations

import msgspec

from fuseline.report.records import TunedChange


class TrialRow(msgspec.Struct, frozen=True, kw_only=True):
    """One trial. `values`: one per objective, empty where it does not count; `relative`: its time by that of the
    default, 0 where it has none; `best`: whether it was the best so far; `changes`: its choices that are no default;
    `code`: of the error that it failed with."""

    number: int
    state: str
    values: tuple[float, ...] = ()
    relative: float = 0.0
    best: bool = False
    changes: dict[str, str] = {}
    seconds: float = 0.0
    transient_bytes: int = 0
    code_bytes: int = 0
    dispatches: int = 0
    code: str = ""
    message: str = ""


class RegionRow(msgspec.Struct, frozen=True, kw_only=True):
    """Dispatches of the default and what the final plan has in their place, by their members' ids: seconds of a run
    that this gained, with its standard error. `layers`: how many regions alike have the same figures."""

    default: tuple[str, ...]
    tuned: tuple[str, ...]
    gain_seconds: float
    error_seconds: float
    layers: int = 1


class Confirmed(msgspec.Struct, frozen=True, kw_only=True):
    """The final plan against the default, measured afresh in so many `processes`: ratio of times with its interval of
    95 %, and both in seconds. `faster`: whether the interval lies below 1; `verdict` says so in words (`faster`,
    `no difference`, `slower`). `regions`: what each gained, the largest gain first, where dispatches were timed."""

    ratio: float
    low: float
    high: float
    seconds: float
    default_seconds: float
    faster: bool
    verdict: str = ""
    processes: int = 1
    regions: tuple[RegionRow, ...] = ()


class TuningReport(msgspec.Struct, kw_only=True):
    """A whole search.

    Attributes:
        ended: why it did: `budget`, `searched` (nothing new was left) or `interrupted`. seconds: that it took. knobs:
        how many there were, by space. failures: trials that failed, by code. front: numbers of the trials that no other
        beats, of several objectives. importance: share of the first objective that a knob explains. changes: of the
        plan that is kept; empty where the default stays. confirmed: None where nothing was: on a target without code,
        and after an interruption. kept: `tuned` or `default`.
    """

    model: str
    target: str
    graph: str
    machine: str
    objectives: tuple[str, ...]
    seed: int
    ended: str
    seconds: float
    default_seconds: float
    best: int
    knobs: dict[str, int] = {}
    trials: list[TrialRow] = []
    failures: dict[str, int] = {}
    front: list[int] = []
    importance: dict[str, float] = {}
    changes: list[TunedChange] = []
    confirmed: Confirmed | None = None
    kept: str = ""
    storage: str = ""
    study: str = ""
