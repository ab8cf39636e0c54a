"""What was exported, counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from fuseline.exports.onnx.graph import Graph
from fuseline.exports.onnx.placement import Placement
from fuseline.exports.onnx.roles import CONTROL, HOST
from fuseline.passes.fusion.plan import plan_id
from fuseline.report.records import CompileRecord


class FusedSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of an export, and the two ids that a compile of it gives again.

    `dispatches`: of the compile; `functions`: that stand for them; `shared`: functions of several dispatches, as lists
    of these; `without_function`: dispatches none of whose nodes stand in a function (loop bodies, layouts).
    `nodes`: of the model; `in_functions`; `repeated`: in several functions; `host`, `control`, `others`: in the main
    graph; `expanded`: nodes that are exported by the body of their operator.
    """

    plan: str
    graph: str
    dispatches: int
    functions: int
    shared: list[list[str]]
    without_function: list[str]
    nodes: int
    in_functions: int
    repeated: int
    host: int
    control: int
    others: int
    expanded: list[str]


def summary_of(
    graph: Graph, placement: Placement, record: CompileRecord, roles: Mapping[int, str], expanded: Sequence[str]
) -> FusedSummary:
    """The counts of a placement."""
    labels = [dispatch.label for dispatch in record.dispatches]
    shown = {number for numbers in placement.dispatches.values() for number in numbers}
    main = [number for what, number in placement.main_nodes if what == "node"]
    kinds = [roles.get(number, "") for number in main]
    return FusedSummary(
        plan=plan_id(record),
        graph=record.fingerprint,
        dispatches=len(labels),
        functions=len(placement.functions),
        shared=[[labels[one] for one in numbers] for numbers in placement.dispatches.values() if len(numbers) > 1],
        without_function=[label for number, label in enumerate(labels) if number not in shown],
        nodes=len(graph.nodes),
        in_functions=len(graph.nodes) - len(main),
        repeated=len(placement.repeated),
        host=kinds.count(HOST),
        control=kinds.count(CONTROL),
        expanded=list(expanded),
        others=len(kinds) - kinds.count(HOST) - kinds.count(CONTROL),
    )
