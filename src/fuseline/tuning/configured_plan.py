"""The fusion plan of a configuration: the default compile's, with sets forced together and kept apart.

    default    [a b] [c d] [e]
    join b+c   [a b] [c d] [e]   force b c     the two groups become one
    apart c+d  [a b] [e]         forbid c d    what is left of a group that is broken fuses by default, among itself

Under another pipeline the groups of the default are not those that it would form, and most are not listed: only what a
choice is about is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fuseline.passes.fusion.plan import FusionPlan, Ids, parse_plan
from fuseline.pipeline import pipeline_version
from fuseline.tuning.knob import Knob
from fuseline.tuning.setting import SearchSetting
from fuseline.tuning.spaces.passes import pass_arguments
from fuseline.tuning.spaces.plan import APART, JOIN
from fuseline.tuning.starting_plan import starting_plan

_GROUP = "\n[[group]]"


@dataclass(frozen=True, slots=True)
class _Edges:
    """Pairs of ids that a configuration wants together, and apart."""

    join: tuple[Ids, ...]
    apart: tuple[Ids, ...]


def configured_plan(setting: SearchSetting, configuration: Mapping[str, str]) -> str:
    """The text of the plan; empty where `configuration` says nothing of groups."""
    edges = _edges(setting.knobs, configuration)
    if not edges.join and not edges.apart:
        return ""
    plan, start = parse_plan(setting.plan, setting.model), starting_plan(setting.options)
    edges = _Edges((*start.force, *edges.join), (*start.forbid, *edges.apart))
    variant = pass_arguments(configuration, setting.options)
    if variant:
        head = _head(setting.plan, _whole_groups(edges.join, plan), edges.apart, variant.get("passes"))
        return f"{head}\n"
    kept = _groups(setting.plan, plan, broken={id for ids in edges.apart[len(start.forbid) :] for id in ids})
    return _GROUP.join([_head(setting.plan, edges.join, edges.apart, None), *kept]) + "\n"


def plan_without_groups(setting: SearchSetting, passes: str | None = None) -> str:
    """A plan that asks for nothing, for the pipeline `passes`."""
    return _head(setting.plan, (), (), passes) + "\n"


def _edges(knobs: Iterable[Knob], configuration: Mapping[str, str]) -> _Edges:
    asked = [(knob, configuration.get(knob.name)) for knob in knobs if knob.space == "plan"]
    changed = [(knob.ops, choice) for knob, choice in asked if choice is not None and choice != knob.choices[0]]
    return _Edges(
        tuple(ids for ops, choice in changed if choice == JOIN for ids in ops),
        tuple(ids for ops, choice in changed if choice == APART for ids in ops),
    )


def _whole_groups(sets: Sequence[Ids], plan: FusionPlan) -> tuple[Ids, ...]:
    """Each set with all ops of the groups that it touches."""
    home = {id: ids for ids in plan.groups for id in ids}
    return tuple(tuple(dict.fromkeys(op for id in ids for op in home.get(id, (id,)))) for ids in sets)


def _head(text: str, force: Sequence[Ids], forbid: Sequence[Ids], passes: str | None) -> str:
    """What stands above the first group, with the sets in it."""
    head = text.partition(_GROUP)[0].rstrip()
    head = head.replace("force = []", f"force = {_sets(force)}").replace("forbid = []", f"forbid = {_sets(forbid)}")
    return for_pipeline(head, passes) if passes else head


def for_pipeline(text: str, passes: str, graph: str = "") -> str:
    """A plan that says that it is for another pipeline; `graph`: what that makes of the model, where it is known."""
    found = re.sub(r'(?m)^pipeline = ".*"$', f'pipeline = "{pipeline_version(passes, {})}"', text, count=1)
    return re.sub(r'(?m)^graph = ".*"$', f'graph = "{graph}"', found, count=1)


def _sets(sets: Sequence[Ids]) -> str:
    if not sets:
        return "[]"
    lines = [f"    [{', '.join(_quoted(id) for id in ids)}]," for ids in sets]
    return "\n".join(["[", *lines, "]"])


def _quoted(id: str) -> str:
    return f'"{id}"'


def _groups(text: str, plan: FusionPlan, broken: set[str]) -> list[str]:
    """The texts of the groups that stay as they are."""
    texts = text.rstrip().split(_GROUP)[1:]
    return [shown for shown, ids in zip(texts, plan.groups, strict=True) if not broken.intersection(ids)]
