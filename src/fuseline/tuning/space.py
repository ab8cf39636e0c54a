"""The space of a search: the default compile of a model, and what of it may be otherwise.

default compile ──records──> knobs of `plan`, `passes`, `dedup`, `kernels`, `threads`
                ──plan────> what the choices about groups start from
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from fuseline.api import compile as compile_model
from fuseline.api import emit
from fuseline.compiled_model import CompiledModel
from fuseline.errors import FuselineError
from fuseline.passes.fusion.plan import parse_plan
from fuseline.targets import create_target
from fuseline.targets.null.target import NullProgram
from fuseline.tuning.kernel_knobs import kernel_knobs
from fuseline.tuning.knob import SPACES, Knob
from fuseline.tuning.realize import choice_arguments
from fuseline.tuning.setting import SearchSetting
from fuseline.tuning.spaces.passes import pass_knobs
from fuseline.tuning.spaces.plan import plan_knobs
from fuseline.tuning.spaces.single import dedup_knob, threads_knob
from fuseline.tuning.starting_plan import with_starting_choices

Progress: TypeAlias = Callable[[str, int, int], None]

FIXED_BY = {
    "plan": (),
    "passes": ("fusion", "passes", "pass_options", "plan"),
    "dedup": ("dedup",),
    "kernels": (),
    "threads": ("threads",),
}
"""Arguments of a compile that leave a space nothing to choose, where they are given."""


@dataclass(frozen=True, slots=True)
class Space:
    """What a search is about: the setting of its trials, and the program that they are compared with."""

    setting: SearchSetting
    default: CompiledModel


def search_space(
    model: str | Path,
    options: Mapping[str, Any],
    spaces: Sequence[str] = SPACES,
    *,
    seed: int = 0,
    rounds: int = 60,
    progress: Progress = lambda phase, done, total: None,
) -> Space:
    """Compile `model` with `options` (arguments of `fuseline.compile`), and find what may be otherwise.

    Raises E0501 for a space that there is not, and what a compile raises.
    """
    require_spaces(spaces)
    options = with_starting_choices(options)
    default = compile_model(model, progress=progress, **options)
    start = SearchSetting(
        model=str(model), options=dict(options), knobs=(), plan=default.plan, seed=seed, rounds=rounds
    )
    knobs: list[Knob] = []
    for number, space in enumerate(asked := [space for space in SPACES if space in spaces]):
        progress(f"what may be chosen: {space}", number, len(asked))
        knobs += _knobs(space, default, start)
    return Space(msgspec.structs.replace(start, knobs=tuple(knobs)), default)


def has_code(program: CompiledModel) -> bool:
    """Whether a program can be run and timed; one of a target that only counts cannot."""
    return not isinstance(program.session, NullProgram)


def require_spaces(spaces: Sequence[str]) -> None:
    """Raises E0501 for a name that is no space, and for none at all."""
    for name in spaces:
        if name not in SPACES:
            raise FuselineError("E0501", f"no space is called {name!r}", hint=f"use some of {', '.join(SPACES)}")
    if not spaces:
        raise FuselineError("E0501", "a search needs a space", hint=f"use some of {', '.join(SPACES)}")


def _knobs(space: str, default: CompiledModel, setting: SearchSetting) -> list[Knob]:
    options = setting.options
    if any(options.get(name) is not None for name in FIXED_BY[space]):
        return []
    if space == "plan":
        return plan_knobs(default.record, _description(options).costs)
    if space == "passes":
        return [knob for knob in pass_knobs(default.record) if _does_something(knob, setting)]
    if space == "dedup":
        return [dedup_knob()] if has_code(default) else []
    if space == "threads":
        knob = threads_knob(_description(options).threads)
        return [knob] if knob is not None else []
    return kernel_knobs(setting.model, options)


def _does_something(knob: Knob, setting: SearchSetting) -> bool:
    """Whether a variant of the pipeline gives another partition, or other ops; one that fails does something, too: the
    trial will say what."""
    variant = choice_arguments(setting, {knob.name: knob.choices[1]})
    try:
        plan = emit(setting.model, "plan", **{**setting.options, **variant})
    except FuselineError:
        return True
    before, after = (parse_plan(text) for text in (setting.plan, plan))
    return (before.graph, set(before.groups)) != (after.graph, set(after.groups))


def _description(options: Mapping[str, Any]) -> Any:
    return create_target(
        options.get("target", "cpu"), options.get("threads"), options.get("numerics", "default")
    ).description
