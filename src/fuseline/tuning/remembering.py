"""What a search leaves for later compiles: records of the kernels that it chose, and of those that it tried in vain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from fuseline.ir.kernel_choice import DEFAULT
from fuseline.report.records import TunedChange
from fuseline.report.tuning_records import TuningReport
from fuseline.tuning.kernel_knobs import KERNEL
from fuseline.tuning.records import CompileKind, TuningRecord, compile_kind, found_here, remember
from fuseline.tuning.trial import Interval


def remember_search(report: TuningReport, options: Mapping[str, Any]) -> int:
    """Keep what a search with `options` (arguments of `fuseline.compile`) found of kernels; answers how many records.
    None where its result was not confirmed: on a target without code, and after an interruption. Raises E0705."""
    if report.confirmed is None or report.ended == "interrupted":
        return 0
    kind = compile_kind(**options)
    threads = next((int(change.choice) for change in report.changes if change.knob == "threads"), kind.threads)
    return remember(_found(report, kind._replace(threads=threads)))


def _found(report: TuningReport, kind: CompileKind) -> Iterator[TuningRecord]:
    """A record of each class that was tried: the choice that is kept, or that the default is."""
    assert report.confirmed is not None
    whole = Interval(report.confirmed.ratio, report.confirmed.low, report.confirmed.high)
    kept = {change.knob: change for change in report.changes} if report.kept == "tuned" else {}
    tried = dict.fromkeys(knob for trial in report.trials for knob in trial.changes if knob.startswith(KERNEL))
    for knob in tried:
        change = kept.get(knob)
        one = found_here(
            knob.removeprefix(KERNEL),
            change.choice if change is not None else DEFAULT,
            whole if change is not None else Interval(1.0, 1.0, 1.0),
            gain=_gain(change, report) if change is not None else 0.0,
            seconds=report.confirmed.seconds if change is not None else report.confirmed.default_seconds,
            model=report.model,
            kind=kind,
        )
        yield msgspec.structs.replace(one, machine=report.machine)  # workers may have measured it


def _gain(change: TunedChange, report: TuningReport) -> float:
    """The share of a run that a change gains; what all of them do, where it is the only one."""
    assert report.confirmed is not None
    return change.gain or (1 - report.confirmed.ratio if len(report.changes) == 1 else 0.0)
