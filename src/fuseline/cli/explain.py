"""`fuseline explain`: answers from the decision records, and remarks for tools."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO

import click
import msgspec

from fuseline.cli.console import emit, say
from fuseline.cli.models import record_of
from fuseline.cli.options import compile_options, json_option, model_argument, threads_option
from fuseline.cli.output import STDOUT, deliver, is_stdout
from fuseline.compile_options import CHOICES
from fuseline.errors import FuselineError
from fuseline.report.advice import advice
from fuseline.report.explain import Answer, explain_edge, explain_model, explain_node, explain_sharing
from fuseline.report.records import CompileRecord
from fuseline.report.remark_locations import Listing
from fuseline.report.remarks import RemarkFilter, jsonl_remarks, yaml_remarks
from fuseline.report.sharing import sharing_json
from fuseline.runtime.files import write_files


def _pattern(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    del ctx
    try:
        re.compile(value or "")
    except re.error as problem:
        raise FuselineError(
            "E0501", f"{parameter.opts[0]} is no regular expression: {problem}", node=value
        ) from problem
    return value


class _Explain(click.Command):
    """`--dedup` without a level asks who shares code, at the level that is the default; with one, at that level."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(_with_sharing(args)))


def _with_sharing(arguments: Sequence[str]) -> Iterator[str]:
    """The arguments with `--sharing` for every `--dedup`, which stays where a level follows, or what is neither an
    option nor a file."""
    for argument, after in zip_longest(arguments, arguments[1:]):
        if argument == "--dedup" or argument.startswith("--dedup="):
            yield "--sharing"
        if argument != "--dedup" or not (after is None or after.startswith("-") or _is_file(after)):
            yield argument


def _is_file(word: str) -> bool:
    return word not in CHOICES["dedup"] and Path(word).exists()


@click.command(cls=_Explain)
@model_argument
@click.argument("nodes", nargs=-1)
@click.option("--sharing", is_flag=True, hidden=True)
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
    help="Write the remarks here instead of to standard output (-); beside YAML goes the list of nodes that its lines "
    "are (FILE.nodes.txt).",
)
@compile_options
@threads_option
@json_option
def explain(
    model: Path,
    nodes: tuple[str, ...],
    sharing: bool,
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

    A NODE is an ONNX node, a structural id (as plans have them), or the name or number of a dispatch. With --dedup, and
    no NODE: which dispatches share code, and what keeps others apart.
    """
    if len(nodes) > 2:
        raise FuselineError(
            "E0501", f"explain takes at most two nodes, not {len(nodes)}", hint="fuseline explain MODEL [NODE [NODE]]"
        )
    record = record_of(model, options)
    answer = explain_sharing(record) if sharing and not nodes else _answer(record, nodes)
    if not answer.found:
        raise FuselineError(
            "E0501",
            "; ".join(answer.lines),
            node=" ".join(nodes),
            hint="`fuseline stats MODEL --dispatches` lists the nodes",
        )
    keep = RemarkFilter(rule, code, node, anything)
    if remarks is not None:
        _write_remarks(record, answer, keep, remarks, output)
    elif as_json:
        more: dict[str, Any] = {"sharing": sharing_json(record)} if sharing else {}
        more |= {"quantization": msgspec.to_builtins(record.quantization)} if not nodes else {}
        emit("explain", {"model": str(model), "nodes": list(nodes), **_document(answer, keep), **more})
    else:
        say(answer.lines)


def _write_remarks(record: CompileRecord, answer: Answer, keep: RemarkFilter, form: str, output: Path | None) -> None:
    if form == "jsonl":
        deliver(output or STDOUT, jsonl_remarks(answer.decisions, keep, answer.remarks))
        return
    if output is None or is_stdout(output):
        deliver(STDOUT, yaml_remarks(answer.decisions, keep, answer.remarks))
        return
    nodes = output.with_name(f"{output.name}.nodes.txt")
    listing = Listing(nodes.name, record.source_nodes)
    text = yaml_remarks(answer.decisions, keep, answer.remarks, listing)
    texts = {output: text.encode(), nodes: listing.text.encode()}
    write_files({path: partial(_write, data) for path, data in texts.items()})


def _write(data: bytes, file: BinaryIO) -> None:
    file.write(data)


def _document(answer: Answer, keep: RemarkFilter) -> dict[str, Any]:
    kept = [decision for decision in answer.decisions if keep.keeps(decision)]
    hints = {
        decision.code: advice(decision.code) for decision in kept if decision.verdict in ("missed", "side-by-side")
    }
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
