"""What a plan makes of a model, without its code: the groups of all ops, those that it does not list among them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from fuseline.border import coded
from fuseline.compilation import target_of
from fuseline.compile_options import CompileOptions
from fuseline.errors import FuselineError
from fuseline.passes.fusion.plan import FusionPlan, id_of, read_plan
from fuseline.phase_runner import run_phases
from fuseline.report.records import CompileRecord
from fuseline.source_program import prepare
from fuseline.verify.bisect.plan_changes import Choice, PlanState, choices_of, said_by


class PlanSide(NamedTuple):
    """A plan's file, what it makes of the model, and the record of it."""

    path: Path
    state: PlanState
    record: CompileRecord


def plan_sides(source: Any, before: CompileOptions, after: CompileOptions) -> tuple[PlanSide, PlanSide]:
    """Both plans of `before` and `after` on one model. Raises E0702 for plans whose passes make other ops of it, and
    what following one of them raises (E0701, E0702, E0703)."""
    said = {choice for options in (before, after) for choice in said_by(_plan_of(options).tuned)}
    first, second = _side(source, before, said), _side(source, after, said)
    if set(first.record.fusion_nodes) != set(second.record.fusion_nodes) or before.passes != after.passes:
        message = f"{first.path} and {second.path} ask for other passes, and these make other ops of the model"
        hint = "make both plans with the same --passes"
        raise FuselineError("E0702", message, node=str(second.path), hint=hint)
    return first, second


def _plan_of(options: CompileOptions) -> FusionPlan:
    assert options.plan is not None
    return read_plan(options.plan)


def _side(source: Any, options: CompileOptions, said: Collection[Choice]) -> PlanSide:
    plan = _plan_of(options)
    record = _followed(source, replace(options, cache=False, progress=None, fuel=None))
    known = set(map(id_of, record.fusion_nodes))
    groups = frozenset(tuple(sorted(map(id_of, names))) for names in record.groups)
    forbid = frozenset(tuple(sorted(ids)) for ids in plan.forbid if known.issuperset(ids))
    assert options.plan is not None
    return PlanSide(options.plan, PlanState(groups, forbid, choices_of(options, said)), record)


def _followed(source: Any, options: CompileOptions) -> CompileRecord:
    try:
        module, ctx = prepare(source, options, target_of(options))
        run_phases(module, ctx, options, until="fusion")
    except FuselineError:
        raise
    except Exception as problem:
        raise coded(problem, "compile") from problem
    return ctx.records
