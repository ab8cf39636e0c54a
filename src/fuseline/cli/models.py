"""A MODEL argument is an ONNX file, which is compiled, or a .fuse artifact, which is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuseline.cli.console import progress, warn
from fuseline.errors import FuselineError
from fuseline.runtime.artifact import ARTIFACT_SUFFIX

if TYPE_CHECKING:
    from fuseline.api import CompiledModel
    from fuseline.report.records import CompileRecord


def is_artifact(path: Path) -> bool:
    """Whether the path names a compiled artifact."""
    return path.suffix == ARTIFACT_SUFFIX


def compiled(path: Path, options: Mapping[str, Any]) -> CompiledModel:
    """The program behind a MODEL argument: loaded or compiled with `options` (keyword arguments of `fuseline.compile`)."""
    import fuseline

    if not path.exists():
        raise FuselineError("E0101", "no such file", node=str(path))
    if is_artifact(path):
        return fuseline.load(path, threads=options.get("threads"))
    with progress(f"compiling {path.name}") as report:
        program = fuseline.compile(path, progress=report, **options)
    warn(program.record.warnings)
    return program


def record_of(path: Path, options: Mapping[str, Any]) -> CompileRecord:
    """The record of the compile behind a MODEL argument."""
    return compiled(path, options).record


def require_model(path: Path, what: str) -> None:
    """Raises E0501 for an artifact where the model itself is needed."""
    if is_artifact(path):
        raise FuselineError("E0501", f"{what} needs the model, not an artifact", node=str(path), hint="give the .onnx file")


def require_onnx(path: Path, what: str) -> None:
    """Raises E0501 for anything but an ONNX model, which is what other runtimes read."""
    if path.suffix in (ARTIFACT_SUFFIX, ".mlir"):
        raise FuselineError("E0501", f"{what} needs an ONNX model, which the other runtime can read", node=str(path), hint="give the .onnx file")
