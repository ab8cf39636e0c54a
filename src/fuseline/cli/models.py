"""A MODEL argument is an ONNX file, which is compiled, or a .fuse artifact, which is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuseline.cli.console import note, progress, warn
from fuseline.cli.options import flag_of, given_options
from fuseline.errors import FuselineError
from fuseline.runtime.artifact import ARTIFACT_SUFFIX

if TYPE_CHECKING:
    from fuseline.compiled_model import CompiledModel
    from fuseline.report.records import CompileRecord


def is_model(path: Path) -> bool:
    """Whether the path names something to compile, rather than what a compile left."""
    return path.suffix not in (ARTIFACT_SUFFIX, ".toml", ".plan", ".json")


def is_artifact(path: Path) -> bool:
    """Whether the path names a compiled artifact."""
    return path.suffix == ARTIFACT_SUFFIX


def compiled(path: Path, options: Mapping[str, Any], *, trusted: Sequence[str] | None = None) -> CompiledModel:
    """The program behind a MODEL argument: loaded (signed by one of the keys `trusted`, if given) or compiled with
    `options`.

    `options` are keyword arguments of `fuseline.compile`. Raises FuselineError: E0101 for no such file, E0501 for keys
    with a model, and what compile and load raise."""
    import fuseline

    if not _exists(path):
        raise FuselineError("E0101", "no such file", node=str(path), hint="check the path")
    if is_artifact(path):
        refuse_compile_options(options)
        return fuseline.load(path, threads=options.get("threads"), trusted=trusted)
    if trusted is not None:
        raise FuselineError(
            "E0501",
            "--trusted is for artifacts: a model is not signed",
            node=str(path),
            hint="compile it, and sign the artifact",
        )
    with progress(f"compiling {path.name}") as report:
        program = fuseline.compile(path, progress=report, **options)
    warn(program.record.warnings)
    return program


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that is too long, or has a zero byte in it
        return False


def refuse_compile_options(options: Mapping[str, Any]) -> None:
    """Raises E0501 for options of a compile that the command line gives with an artifact (`--threads` is one of a run,
    too)."""
    for name in given_options(options):
        if name != "threads":
            hint = "give it to `fuseline compile`, with the model"
            raise FuselineError(
                "E0501", f"{flag_of(name)} is for compiling, and an artifact is compiled already", hint=hint
            )


def record_of(path: Path, options: Mapping[str, Any]) -> CompileRecord:
    """The record of the compile behind a MODEL argument, of an artifact that does not run here (another format, another
    machine) as well. Raises as `compiled` does."""
    try:
        return compiled(path, options).record
    except FuselineError as error:
        return older_record(path, error)


def older_record(path: Path, refused: FuselineError) -> CompileRecord:
    """The record in an artifact that this runtime does not load, with a note. Raises `refused` where that has another
    reason than a format or machine of its own, and where the record is of another schema."""
    if refused.code not in ("E0402", "E0403"):
        raise refused
    import msgspec

    from fuseline.report.records import decode
    from fuseline.runtime.artifact_records import artifact_records

    try:
        record = decode(artifact_records(path))
    except (FuselineError, msgspec.ValidationError, msgspec.DecodeError):
        raise refused from None
    note(f"{path.name}: {refused.message}; its records are read alone")
    return record


def require_model(path: Path, what: str) -> None:
    """Raises E0501 for an artifact where the model itself is needed."""
    if is_artifact(path):
        raise FuselineError(
            "E0501", f"{what} needs the model, not an artifact", node=str(path), hint="give the .onnx file"
        )


def require_onnx(path: Path, what: str) -> None:
    """Raises E0501 for anything but an ONNX model, which is what other runtimes read."""
    if path.suffix in (ARTIFACT_SUFFIX, ".mlir"):
        raise FuselineError(
            "E0501",
            f"{what} needs an ONNX model, which the other runtime can read",
            node=str(path),
            hint="give the .onnx file",
        )
