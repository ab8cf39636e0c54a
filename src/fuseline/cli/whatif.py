"""`fuseline whatif`: the effect of a change in one line each, and the missed edges that cost most."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from rich.table import Table

from fuseline.cli.console import emit, note, say
from fuseline.cli.models import compiled, require_model
from fuseline.cli.native import native_session
from fuseline.cli.options import compile_options, json_option, model_argument, threads_option
from fuseline.cli.run import complete_feeds, model_hints
from fuseline.errors import FuselineError
from fuseline.report.missed_gains import MissedGain, missed_gains
from fuseline.report.quantities import quantity, seconds, shortened

if TYPE_CHECKING:
    from fuseline.compiled_model import CompiledModel
    from fuseline.tuning.what_if import Effect

Changes = Iterator[tuple[str, dict[str, Any]]]

_UNITS = {"": 1, "b": 1, "k": 1000, "kb": 1000, "kib": 1024, "m": 10**6, "mb": 10**6, "mib": 1 << 20}


def bytes_of(text: str) -> int:
    """`64KiB`, `65536` or `64k` in bytes; raises E0501 for other text.

    >>> bytes_of("64KiB"), bytes_of("2 MB"), bytes_of("512")
    (65536, 2000000, 512)
    """
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    if found is None or found[2] not in _UNITS or int(found[1]) == 0:
        raise FuselineError("E0501", f"no size in bytes: {text!r}", hint="write 64KiB or 65536")
    return int(found[1]) * _UNITS[found[2]]


@click.command()
@model_argument
@click.option("--force", nargs=2, multiple=True, metavar="A B", help="What if A and B ran in one dispatch?")
@click.option("--forbid", nargs=2, multiple=True, metavar="A B", help="What if A and B ran in two?")
@click.option("--scratch", multiple=True, metavar="SIZE", help="What if the target had this much scratch (64KiB)?")
@click.option(
    "--level", type=click.Choice(["none", "default", "aggressive"]), help="What if fusion were at this level?"
)
@click.option("--measure", is_flag=True, help="Time both programs in turns, too.")
@click.option("--top", type=click.IntRange(min=0), default=10, show_default=True, help="How many missed edges to rank.")
@compile_options
@threads_option
@json_option
def whatif(
    model: Path,
    force: tuple[tuple[str, str], ...],
    forbid: tuple[tuple[str, str], ...],
    scratch: tuple[str, ...],
    level: str | None,
    measure: bool,
    top: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Say what a change of MODEL's compile would do: dispatches, predicted time and memory before and after, a line for
    each change.

    Each --without-rule is a change, too. A and B are nodes, structural ids or dispatches, as `explain` takes them.
    Without a change: the missed edges that cost most, with what keeps each, and what would change it.
    """
    require_model(model, "whatif")
    off, options["without_rules"] = options["without_rules"], ()
    before = compiled(model, options)
    with tempfile.TemporaryDirectory() as folder:
        asked = [
            *_planned(before, force, forbid, Path(folder)),
            *((f"without {rule}", {"without_rules": (rule,)}) for rule in off),
            *_scratch(scratch, options, Path(folder)),
            *((f"fusion {name}", {"fusion": name}) for name in ([level] if level else [])),
        ]
        effects = list(_effects(model, before, asked, options, measure))
    gains = [] if effects else _gains(before, options, top)
    if as_json:
        emit("whatif", {"model": str(model), "effects": _builtins(effects), "missed": _builtins(gains)})
    else:
        say(_told(effects, gains))
    if any(effect.error for effect in effects):
        raise click.exceptions.Exit(1)


def _told(effects: Sequence[Effect], gains: Sequence[MissedGain]) -> list[str] | Table:
    if effects:
        return [effect_line(effect) for effect in effects]
    return gains_table(gains) if gains else ["no missed edge to tell of"]


def _builtins(values: Sequence[Any]) -> list[Any]:
    return [msgspec.to_builtins(value) for value in values]


# changes --------------------------------------------------------------------------------------------------------------


def _planned(
    before: CompiledModel, force: Sequence[tuple[str, str]], forbid: Sequence[tuple[str, str]], folder: Path
) -> Changes:
    from fuseline.tuning.what_if import ids_between, plan_with

    for word, pairs in (("force", force), ("forbid", forbid)):
        for number, (first, second) in enumerate(pairs):
            path = folder / f"{word}-{number}.toml"
            path.write_text(plan_with(**{word: [ids_between(before.record, first, second)]}), encoding="utf-8")
            yield f"{word} {first} {second}", {"plan": path}


def _scratch(sizes: Sequence[str], options: Mapping[str, Any], folder: Path) -> Changes:
    from fuseline.tuning.what_if import scratch_description

    for size in sizes:
        target = options.get("target") or "cpu"
        if target not in ("cpu", "null"):
            message = f"--scratch is for the targets cpu and null, not {target}"
            raise FuselineError("E0501", message, hint="write scratch_bytes_limit into the target's file")
        yield f"scratch {size}", {"target": f"{target}:{scratch_description(bytes_of(size), folder)}"}


def _effects(
    model: Path,
    before: CompiledModel,
    asked: Sequence[tuple[str, dict[str, Any]]],
    options: Mapping[str, Any],
    measure: bool,
) -> Iterator[Effect]:
    from fuseline.tuning.what_if import effect_of

    if measure:
        native_session(before, "--measure")
    feeds = complete_feeds(before, {}, model_hints(model), 0) if measure else None
    for number, (change, changed) in enumerate(asked, 1):
        note(f"[{number}/{len(asked)}] {change}")
        if options.get("plan") is not None and "plan" in changed:
            raise FuselineError("E0501", "a plan is given already", hint="write force and forbid into that one")
        yield effect_of(change, before, partial(compiled, model, {**options, **changed}), feeds)


def effect_line(effect: Effect) -> str:
    """One effect as a line."""
    if effect.error is not None:
        return f"{effect.change}: refused: {effect.error.get('code')}: {effect.error.get('message')}"
    (few, many), (old, new) = effect.dispatches, effect.predicted_seconds
    share = f" ({new / old - 1:+.1%})" if old > 0 else ""
    memory = " -> ".join(f"{quantity(size)}B" for size in effect.transient_bytes)
    measured = "" if effect.ratio is None else "; measured {:.3f} [{:.3f}, {:.3f}] of the time".format(*effect.ratio)
    return (
        f"{effect.change}: {few} -> {many} dispatches, predicted {seconds(old)} -> {seconds(new)}{share}, "
        f"transients {memory}{measured}"
    )


# missed edges ---------------------------------------------------------------------------------------------------------


def _gains(before: CompiledModel, options: Mapping[str, Any], top: int) -> list[MissedGain]:
    from fuseline.ir.costs import ASSUMED_COSTS

    costs = ASSUMED_COSTS
    return missed_gains(before.record, bytes_per_ns=costs.stored_bytes_per_ns, launch_ns=costs.launch_ns, limit=top)


def gains_table(gains: Sequence[MissedGain]) -> Table:
    """The missed edges that cost most, and why they were missed."""
    table = Table(
        "edges", "producer -> consumer", "stored", "would save", "net", "reason", "to change it",
        box=None, header_style="bold", pad_edge=False,
    )  # fmt: skip
    for gain in gains:
        ends = " -> ".join(
            shortened(nodes, 1) or id
            for nodes, id in ((gain.producer_nodes, gain.producer), (gain.consumer_nodes, gain.consumer))
        )
        net = "not legal" if gain.net_ns is None else seconds(gain.net_ns * 1e-9)
        saved = seconds(gain.saved_ns * 1e-9)
        table.add_row(str(gain.count), ends, f"{quantity(gain.bytes)}B", saved, net, gain.code, gain.to_change)
    return table
