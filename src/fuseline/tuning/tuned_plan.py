"""What a search found as a plan file: the groups that were measured, the other choices in the table `[tuned]`, and what
each change gained."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from fuseline.api import emit
from fuseline.passes.fusion.plan import parse_plan
from fuseline.passes.fusion.tuned_choices import TunedChoices, tuned_text
from fuseline.report.records import TunedChange
from fuseline.tuning.configured_plan import configured_plan, for_pipeline, plan_without_groups
from fuseline.tuning.effects import Choice
from fuseline.tuning.knob import Knob
from fuseline.tuning.realize import choice_arguments
from fuseline.tuning.setting import SearchSetting
from fuseline.tuning.spaces.passes import pass_arguments
from fuseline.tuning.starting_plan import starting_plan


def tuned_plan(
    setting: SearchSetting,
    configuration: Mapping[str, str],
    changes: Sequence[TunedChange],
    measured: Mapping[str, Any],
) -> str:
    """The plan that a compile follows to the program of `configuration`. `changes`: see `changes_of`; `measured`: what
    else the reader should know, as TOML has it."""
    given = starting_plan(setting.options).tuned
    arguments = {**(given.options if given is not None else {}), **choice_arguments(setting, configuration)}
    arguments["kernels"] = {name: text for name, text in arguments.get("kernels", {}).items() if text != "default"}
    known = set(TunedChoices.__struct_fields__)
    options: dict[str, Any] = {name: value for name, value in arguments.items() if name in known and value}
    if "without_rules" in options:
        options["without_rules"] = tuple(options["without_rules"])
    tuned = TunedChoices(**options, change=tuple(changes), measured=dict(measured))
    plan = _groups(setting, configuration)
    if tuned.threads is not None:
        plan = re.sub(r"(?m)^threads = \d+$", f"threads = {tuned.threads}", plan, count=1)
    return plan + tuned_text(tuned)


def _groups(setting: SearchSetting, configuration: Mapping[str, str]) -> str:
    """The plan beside the table: what the trial followed; the default's groups where it followed none."""
    plan = configured_plan(setting, configuration)
    variant = pass_arguments(configuration, setting.options)
    if not variant:
        return plan or setting.plan
    passes = variant.get("passes")
    text = plan or plan_without_groups(setting, passes)
    return text if passes is None else for_pipeline(text, passes, _graph(setting, variant))


def _graph(setting: SearchSetting, variant: Mapping[str, Any]) -> str:
    """The graph that a variant of the pipeline makes of the model."""
    return parse_plan(emit(setting.model, "plan", **{**setting.options, **variant})).graph


def worth_keeping(configuration: Mapping[str, str], gains: Mapping[Choice, float]) -> dict[str, str]:
    """The choices of a configuration without those that are known to gain nothing by themselves.

    >>> worth_keeping({"a": "x", "b": "y", "c": "z"}, {("a", "x"): 0.1, ("b", "y"): -0.01})
    {'a': 'x', 'c': 'z'}
    """
    return {name: choice for name, choice in configuration.items() if gains.get((name, choice), 1.0) > 0}


def changes_of(
    knobs: Sequence[Knob],
    configuration: Mapping[str, str],
    gains: Mapping[Choice, float],
    default_seconds: float,
) -> list[TunedChange]:
    """The choices of a configuration with what each gained, the one that gained most first."""
    found = [
        TunedChange(
            knob=knob.name,
            choice=configuration[knob.name],
            detail=knob.detail,
            gain=round(gains.get((knob.name, configuration[knob.name]), 0.0), 6),
            seconds=float(f"{gains.get((knob.name, configuration[knob.name]), 0.0) * default_seconds:.4g}"),
            nodes=knob.nodes,
        )
        for knob in knobs
        if configuration.get(knob.name, knob.choices[0]) != knob.choices[0]
    ]
    return sorted(found, key=lambda change: (-change.gain, change.knob))
