"""`fuseline explain`: answers from the decision records, and remarks for tools."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import msgspec

from fuseline.cli.console import emit, say
from fuseline.cli.models import record_of
from fuseline.cli.options import compile_options, json_option, model_argument, threads_option
from fuseline.cli.output import STDOUT, deliver
from fuseline.errors import FuselineError
from fuseline.report.advice import advice
from fuseline.report.explain import Answer, explain_edge, explain_model, explain_node
from fuseline.report.records import CompileRecord
from fuseline.report.remarks import RemarkFilter, jsonl_remarks, yaml_remarks


def _pattern(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    del ctx
    try:
        re.compile(value or "")
    except re.error as problem:
        raise FuselineError("E0501", f"--{parameter.name} is no regular expression: {problem}", node=value) from problem
    return value


@click.command()
@model_argument
@click.argument("nodes", nargs=-1)
@click.option(
    "--remarks-format",
    "--remarks",
    "remarks",
    type=click.Choice(["yaml", "jsonl"]),
    help="Print the decisions as optimization remarks.",
)
@click.option(
    "--remarks-filter",
    "anything",
    callback=_pattern,
    metavar="REGEX",
    help="Keep remarks whose rule, code or node matches.",
)
@click.option("--filter-rule", "rule", callback=_pattern, metavar="REGEX", help="Keep remarks of these rules.")
@click.option("--filter-code", "code", callback=_pattern, metavar="REGEX", help="Keep remarks with these reason codes.")
@click.option("--filter-node", "node", callback=_pattern, metavar="REGEX", help="Keep remarks that touch these nodes.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the remarks here instead of to standard output (-).",
)
@compile_options
@threads_option
@json_option
def explain(
    model: Path,
    nodes: tuple[str, ...],
    remarks: str | None,
    anything: str | None,
    rule: str | None,
    code: str | None,
    node: str | None,
    output: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Explain MODEL as a whole, the fate of one NODE, or why two NODES (producer and consumer) are fused or not.

    A NODE is an ONNX node, a structural id (as plans have them), or the name or number of a dispatch.
    """
    if len(nodes) > 2:
        raise FuselineError(
            "E0501", f"explain takes at most two nodes, not {len(nodes)}", hint="fuseline explain MODEL [NODE [NODE]]"
        )
    record = record_of(model, options)
    answer = _answer(record, nodes)
    if not answer.found:
        raise FuselineError(
            "E0501",
            "; ".join(answer.lines),
            node=" ".join(nodes),
            hint="`fuseline stats MODEL --dispatches` lists the nodes",
        )
    keep = RemarkFilter(rule, code, node, anything)
    if remarks is not None:
        _write_remarks(answer, keep, remarks, output)
    elif as_json:
        emit("explain", {"model": str(model), "nodes": list(nodes), **_document(answer, keep)})
    else:
        say(answer.lines)


def _write_remarks(answer: Answer, keep: RemarkFilter, form: str, output: Path | None) -> None:
    text = (yaml_remarks if form == "yaml" else jsonl_remarks)(answer.decisions, keep, answer.remarks)
    deliver(output or STDOUT, text)


def _document(answer: Answer, keep: RemarkFilter) -> dict[str, Any]:
    kept = [decision for decision in answer.decisions if keep.keeps(decision)]
    hints = {decision.code: advice(decision.code) for decision in kept if decision.verdict == "missed"}
    return {
        "text": list(answer.lines),
        "dispatches": list(answer.dispatches),
        "decisions": msgspec.to_builtins(kept),
        "remarks": msgspec.to_builtins([remark for remark in answer.remarks if keep.keeps_op(remark)]),
        "hints": hints,
    }


def _answer(record: CompileRecord, nodes: tuple[str, ...]) -> Answer:
    if not nodes:
        return explain_model(record)
    return explain_node(record, nodes[0]) if len(nodes) == 1 else explain_edge(record, nodes[0], nodes[1])
