"""A configuration as arguments of `fuseline.compile`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fuseline.errors import FuselineError
from fuseline.runtime.files import write_bytes
from fuseline.tuning.configured_plan import configured_plan
from fuseline.tuning.knob import Configuration, without_defaults
from fuseline.tuning.setting import SearchSetting
from fuseline.tuning.spaces.passes import pass_arguments
from fuseline.tuning.spaces.single import DEDUP, THREADS

PLAN_FILE = "trial.plan"

KERNEL = "kernel/"
"""What knobs about a class of kernels are called, before the name of the class."""


def realized(setting: SearchSetting, configuration: Configuration, folder: Path) -> dict[str, Any]:
    """The arguments of a compile of `setting.model` that make the choices of `configuration`, the model aside; the plan
    that some of them need is written into `folder`. Raises E0501 for a knob or a choice that there is not."""
    require_choices(setting, configuration)
    chosen = without_defaults(configuration, setting.knobs)
    arguments = {**setting.options, **choice_arguments(setting, chosen)}
    plan = configured_plan(setting, chosen)
    if plan:
        write_bytes(folder / PLAN_FILE, plan.encode())
        arguments["plan"] = str(folder / PLAN_FILE)
    return arguments


def choice_arguments(setting: SearchSetting, chosen: Mapping[str, str]) -> dict[str, Any]:
    """The arguments behind choices that are no default, what a plan says aside."""
    arguments = pass_arguments(chosen, setting.options)
    if DEDUP in chosen:
        arguments["dedup"] = chosen[DEDUP]
    if THREADS in chosen:
        arguments["threads"] = int(chosen[THREADS])
    kernels = {name.removeprefix(KERNEL): choice for name, choice in chosen.items() if name.startswith(KERNEL)}
    if kernels:
        arguments["kernels"] = {**setting.options.get("kernels", {}), **kernels}
    return arguments


def require_choices(setting: SearchSetting, configuration: Configuration) -> None:
    """Raises E0501 for a knob or a choice that the search does not have."""
    known = {knob.name: knob.choices for knob in setting.knobs}
    for name, choice in configuration.items():
        if choice not in known.get(name, ()):
            hint = f"use one of {', '.join(known.get(name, known))}"
            raise FuselineError("E0501", f"{name} cannot be {choice!r}", node=setting.model, hint=hint)
