"""What was found between two plans, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fuseline.passes.fusion.plan import Ids, id_of
from fuseline.report.bisect_result import Culprit
from fuseline.report.quantities import shortened
from fuseline.report.records import CompileRecord, DispatchRecord
from fuseline.verify.bisect.plan_changes import PlanChange

SHOWN = 6
"""How many ops of a group are named."""


def change_culprit(change: PlanChange, known: CompileRecord, made: CompileRecord | None, number: int) -> Culprit:
    """A change with its ops and source nodes, by the record `known` of any compile; `made`: that of the program with
    the change, for the rules that brought together what is joined, None where there is none."""
    names = {id_of(name): name for name in known.fusion_nodes}
    ops = [names.get(id, id) for id in change.ops]
    detail = "" if made is None or change.kind not in ("join", "regroup") else _by_rules(change, made)
    return Culprit(
        kind=change.kind,
        what=_what(change, names),
        number=number,
        ops=ops,
        nodes=_nodes(ops, known),
        detail=detail,
    )


def family_culprit(changes: Sequence[PlanChange], record: CompileRecord) -> Culprit:
    """The kernel families of the dispatches that changes made."""
    ids = {id for change in changes for id in change.ops}
    made = [dispatch for dispatch in record.dispatches if ids & {id_of(member.id) for member in dispatch.members}]
    families = dict.fromkeys(name for dispatch in made for name in _families(dispatch))
    ops = [member.id for dispatch in made for member in dispatch.members]
    nodes = _nodes(ops, record)
    return Culprit(kind="family", what=" or ".join(families) or "unknown", ops=ops, nodes=nodes)


def _families(dispatch: DispatchRecord) -> Iterable[str]:
    return [name for name in (dispatch.family, *(arm.family for arm in dispatch.arms)) if name]


def _nodes(ops: Iterable[str], record: CompileRecord) -> list[str]:
    known = record.fusion_nodes
    return list(dict.fromkeys(node for op in ops if op in known for node in known[op].nodes))


def _what(change: PlanChange, names: Mapping[str, str]) -> str:
    before, after = (_groups(sets, names) for sets in (change.before, change.after))
    if change.kind == "choice":
        name = " ".join(part for part in change.choice if part)
        return f"{name}: {_value(change.old)} -> {_value(change.new)}"
    if change.kind in ("apart", "may-meet"):
        return before or after
    return f"{before} -> {after}"


def _value(value: object) -> str:
    return "none" if value is None else "off" if value is True else str(value)


def _groups(sets: Iterable[Ids], names: Mapping[str, str]) -> str:
    return " ".join(f"[{shortened([names.get(id, id) for id in ids], SHOWN)}]" for ids in sets)


def _by_rules(change: PlanChange, record: CompileRecord) -> str:
    """The rules that brought ops of different groups together."""
    home = {id: number for number, ids in enumerate(change.before) for id in ids}
    found = dict.fromkeys(
        one.rule
        for one in record.decisions
        if one.verdict == "fused" and _differ(home, id_of(one.producer), id_of(one.consumer))
    )
    return f"by {', '.join(found)}" if found else ""


def _differ(home: Mapping[str, int], one: str, other: str) -> bool:
    return one in home and other in home and home[one] != home[other]
