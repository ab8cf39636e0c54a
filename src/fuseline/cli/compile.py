"""`fuseline compile`: a model to an artifact, or one stage of it as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from fuseline.cli.compile_many import compile_many
from fuseline.cli.console import emit, progress, say
from fuseline.cli.ir_printing import ir_printer, print_ir_options
from fuseline.cli.model_files import is_one_file
from fuseline.cli.model_rows import Workers
from fuseline.cli.models import compiled, require_model
from fuseline.cli.options import compile_options, json_option, scheduler_options, threads_option
from fuseline.cli.output import STDOUT, deliver, is_stdout, note_names_only, refuse_two_documents, require_folder
from fuseline.cli.rule_listing import rules_listing_option, show_rules
from fuseline.cli.trace_file import compile_trace_to, trace_option
from fuseline.errors import FuselineError
from fuseline.report.quantities import plural
from fuseline.report.statistics import statistics_json, statistics_table

OBJECT = "object"
"""The stage that is files for C in place of text."""


@click.command()
@click.argument("models", metavar="MODEL...", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Where the artifact goes (default: MODEL with .fuse, or as the target calls its files); - for standard "
    "output. Of several models: the folder.",
)
@click.option(
    "--emit",
    "stage",
    metavar="STAGE",
    help="Print the IR after a stage (an unknown one lists them); `plan`, the fusion plan; `flow`, the dispatches for "
    "IREE (-o FILE writes its weights beside it); or the code of each executable: `kernel` IR, `llvm`, `asm`. "
    "`object`: what callers in C need, in the folder given by -o.",
)
@click.option("--dispatch", metavar="N", help="Of --emit kernel, llvm and asm: this dispatch only (number or name).")
@click.option("--stats", "with_stats", is_flag=True, help="Print the statistics, too.")
@click.option(
    "--sign",
    "key",
    type=click.Path(path_type=Path),
    metavar="KEY",
    help="Sign the artifact with this private Ed25519 key.",
)
@click.option(
    "--dump-dispatches",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write every dispatch as a program of its own, weights included, and index.json; no artifact.",
)
@trace_option
@print_ir_options
@rules_listing_option
@compile_options
@threads_option
@scheduler_options
@json_option
def compile(
    models: tuple[Path, ...],
    output: Path | None,
    stage: str | None,
    dispatch: str | None,
    with_stats: bool,
    key: Path | None,
    dump_dispatches: Path | None,
    trace: Path | None,
    print_ir_after: str | None,
    print_ir_to: Path | None,
    list_rules: bool,
    scheduler: str | None,
    kind: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Compile each MODEL to an artifact that `fuseline run` and `fuseline.load` take.

    Of several of them, a folder or a quoted glob, one that fails is a line with the code of its error; the others are
    compiled, and the exit code is 1.
    """
    if list_rules:
        show_rules(options["rules"], "compile", as_json=as_json)
        return
    if not models:
        raise click.UsageError("Missing argument 'MODEL'.", click.get_current_context())
    if not is_one_file(models) or scheduler is not None:
        for_one = {"--emit": stage, "--dispatch": dispatch, "--dump-dispatches": dump_dispatches, "--trace": trace}
        hint = "leave --scheduler out" if is_one_file(models) else "give one model"
        _refuse_of_one({**for_one, "--print-ir-after": print_ir_after, "--print-ir-to": print_ir_to}, hint)
        workers = Workers(scheduler, kind)
        compile_many(models, output, options, key=key, with_stats=with_stats, as_json=as_json, workers=workers)
        return
    (model,) = models
    require_model(model, "compile")
    refuse_two_documents(output, as_json)
    options["after_pass"] = _printer(print_ir_after, print_ir_to)
    if dispatch is not None and stage in (None, OBJECT):
        raise FuselineError("E0501", "--dispatch names the code to print", hint="add --emit kernel, llvm or asm")
    if dump_dispatches is not None:
        _refuse_more("--dump-dispatches", {"--emit": stage, "--sign": key, "--output": output, "--trace": trace})
        _dump(model, dump_dispatches, as_json, options)
        return
    if stage is not None:
        _refuse_more("--emit", {"--sign": key, "--trace": trace})
        _emitter(stage, dispatch, output)(model, output=output, as_json=as_json, options=options)
        return
    with compile_trace_to(trace, options, str(model)):
        program = compiled(model, options)
    path = output or model.with_suffix(program.suffix)
    if is_stdout(path):
        deliver(path, program.to_bytes(sign=key))
        return
    program.save(path, sign=key)
    if as_json:
        written = {
            "model": str(model),
            "output": str(path),
            "bytes": path.stat().st_size,
            "from_cache": program.from_cache,
            "warnings": program.record.warnings,
        }
        emit("compile", {**written, **statistics_json(program.record)})
        return
    if with_stats:
        say(statistics_table(program.record))
    origin = " (from the cache)" if program.from_cache else ""
    say(f"{path}: {plural(len(program.record.dispatches), 'dispatch')}{origin}")


def _printer(after: str | None, folder: Path | None) -> Any:
    if after is None and folder is None:
        return None
    from fuseline.pipeline import PASS_PHASES

    return ir_printer(after, folder, {*PASS_PHASES, *(name for names in PASS_PHASES.values() for name in names)})


def _refuse_of_one(others: dict[str, Any], hint: str) -> None:
    """Raises E0501 for options of a compile of one model, here."""
    for name, value in others.items():
        if value is not None:
            raise FuselineError("E0501", f"{name} is for one model, compiled here", hint=hint)


def _refuse_more(option: str, others: dict[str, Any]) -> None:
    """Raises E0501 for options that `option` leaves nothing to do."""
    for name, value in others.items():
        if value is not None:
            raise FuselineError("E0501", f"{option} makes no artifact, and leaves nothing for {name}")


def _dump(model: Path, folder: Path, as_json: bool, options: dict[str, Any]) -> None:
    import fuseline.api

    require_folder(folder)
    with progress(f"compiling {model.name}") as report:
        dispatches = fuseline.api.dump_dispatches(model, folder, progress=report, **options)
    if as_json:
        emit("compile", {"model": str(model), "folder": str(folder), "dispatches": dispatches})
        return
    say(f"{folder}: {plural(len(dispatches), 'dispatch')}; fuseline run {folder}/NAME.mlir runs one")


def _emitter(stage: str, dispatch: str | None, output: Path | None) -> Callable[..., None]:
    """What writes a stage: those of several files have a way of their own."""
    from fuseline.pipeline import FLOW_STAGE

    if stage == OBJECT:
        return _emit_object
    if stage == FLOW_STAGE and output is not None and not is_stdout(output) and dispatch is None:
        return _emit_flow
    return partial(_emit_stage, stage=stage, dispatch=dispatch)


def _emit_flow(model: Path, output: Path, as_json: bool, options: dict[str, Any]) -> None:
    import fuseline.api

    with progress(f"compiling {model.name}") as report:
        files = fuseline.api.emit_flow(model, output, progress=report, **options)
    if as_json:
        emit("compile", {"model": str(model), "stage": "flow", "files": files})


def _emit_object(model: Path, output: Path | None, as_json: bool, options: dict[str, Any]) -> None:
    from fuseline.runtime.artifact import Artifact
    from fuseline.targets.cpu.c_export.export import export_c

    if output is None or is_stdout(output):
        raise FuselineError("E0501", "--emit object writes several files", hint="give a folder: -o DIR")
    artifact = compiled(model, options).session.artifact
    if not isinstance(artifact, Artifact):
        raise FuselineError("E0502", "a program without code cannot be called from C", hint="compile for cpu")
    paths = export_c(artifact, output, model.stem)
    if as_json:
        emit("compile", {"model": str(model), "stage": OBJECT, "files": [str(path) for path in paths]})
        return
    say(f"{output}: {', '.join(path.name for path in paths)}")


def _emit_stage(
    model: Path, stage: str, dispatch: str | None, output: Path | None, as_json: bool, options: dict[str, Any]
) -> None:
    import fuseline.api
    from fuseline.pipeline import STAGES

    if stage not in STAGES:
        known = ", ".join((*STAGES, OBJECT))
        raise FuselineError("E0501", f"no stage is called {stage!r}", hint=f"use one of {known}")
    with progress(f"compiling {model.name}") as report:
        place = None if output is None or is_stdout(output) else output
        text = fuseline.api.emit(
            model, stage, dispatch=dispatch, output=place, progress=report, notice=note_names_only, **options
        )
    if as_json and output is None:
        emit("compile", {"model": str(model), "stage": stage, "text": text})
        return
    if place is None:
        deliver(STDOUT, text if text.endswith("\n") else f"{text}\n")
    if as_json:
        files = {} if place is None else _beside(place, text)
        emit("compile", {"model": str(model), "stage": stage, "output": str(output), **files})


def _beside(output: Path, text: str) -> dict[str, str]:
    """The file of weights that an emitted text names."""
    said = re.search(r'fuseline\.weights = \{file = "([^"]+)"', text[: text.find("\n")])
    return {"weights": str(output.with_name(said.group(1)))} if said else {}
