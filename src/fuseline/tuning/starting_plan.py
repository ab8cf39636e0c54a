"""The plan that the user gives a search to start from: what it asks holds for every trial."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fuseline.passes.fusion.plan import FusionPlan, read_plan
from fuseline.passes.fusion.tuned_choices import with_choices


def starting_plan(options: Mapping[str, Any]) -> FusionPlan:
    """The plan among arguments of a compile; one that asks for nothing where there is none. Raises E0701."""
    given = options.get("plan")
    return FusionPlan() if given is None else read_plan(Path(given))


def with_starting_choices(options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with what their plan says beside groups: trials may follow another plan."""
    tuned = starting_plan(options).tuned
    return dict(options) if tuned is None else with_choices(options, tuned)[0]
