"""What a search found of classes of kernels, as tuning records: other models have the same classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fuseline.tuning.effects import Effects
from fuseline.tuning.kernel_knobs import KERNEL
from fuseline.tuning.records import CompileKind, TuningRecord, compile_kind, found_here
from fuseline.tuning.setting import SearchSetting
from fuseline.tuning.spaces.single import THREADS
from fuseline.tuning.told import Told
from fuseline.tuning.trial import Interval


def kernel_records(
    setting: SearchSetting, chosen: Mapping[str, str], trials: Sequence[Told], effects: Effects
) -> Iterator[TuningRecord]:
    """A record for each choice of `chosen` about kernels that surely gained by itself."""
    kind = _kind(setting, chosen)
    for name, choice in chosen.items():
        told = effects.evidence.get((name, choice)) if name.startswith(KERNEL) else None
        ratio = _ratio(trials[told], effects.gains[name, choice]) if told is not None else None
        if ratio is not None and ratio.high < 1:
            seconds = trials[0].outcome.seconds * ratio.value
            kernel = name.removeprefix(KERNEL)
            yield found_here(kernel, choice, ratio, seconds=seconds, model=setting.model, kind=kind)


def _kind(setting: SearchSetting, chosen: Mapping[str, str]) -> CompileKind:
    kind = compile_kind(**setting.options)
    return kind._replace(threads=int(chosen[THREADS])) if THREADS in chosen else kind


def _ratio(told: Told, gain: float) -> Interval | None:
    """The time of a run with the choice alone by that without: as surely known as the trial that told so."""
    whole = told.outcome.ratio
    if whole is None:
        return None
    value = 1 - gain
    return Interval(value, value - (whole.value - whole.low), value + (whole.high - whole.value))
