"""`--report-bug FILE`: one archive with all that is needed to see a failure again: the model without its weights,
options, versions.

report.json     the command, the error, versions, and whether the archive alone shows the same error
traceback.txt
model.*         every large weight replaced by seeded numbers, in weights-<dtype>.bin
...             plans, rules and descriptions of targets that the command names
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import traceback
import zipfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import fuseline
from fuseline.border import coded
from fuseline.errors import FuselineError
from fuseline.runtime.files import write_file

PACKAGES = (
    "numpy",
    "xdsl",
    "llvmlite",
    "onnx",
    "onnx-ir",
    "ml_dtypes",
    "click",
    "rich",
    "msgspec",
    "onnxruntime",
    "openvino",
)
_MODELS = (".onnx", ".mlir", ".fuse")
_DROPPED_WITH_VALUE = ("-o", "--output", "--input")
_SECONDS = 900


def write_report(path: Path, arguments: Sequence[str], problem: BaseException) -> bool:
    """Write the archive; answers whether it shows the error by itself. Raises FuselineError (E0502) for a place that
    cannot be written."""
    with tempfile.TemporaryDirectory(prefix="fuseline-report-") as name:
        folder = Path(name)
        command, missing = _collect(arguments, folder)
        error = (
            problem
            if isinstance(problem, FuselineError)
            else coded(problem, "command")
            if isinstance(problem, Exception)
            else None
        )
        again = _tried(command, folder)
        same = error is not None and again is not None and again.get("code") == error.code
        report = {
            "command": ["fuseline", *command],
            "error": None if error is None else error.to_json(),
            "reproduced": same,
            "error_again": again,
            "left_out": missing,
            **_versions(),
        }
        (folder / "report.json").write_text(json.dumps(report, indent=2))
        (folder / "traceback.txt").write_text("".join(traceback.format_exception(problem)))
        write_file(path, lambda file: _pack(file, folder))
    return same


def _versions() -> dict[str, Any]:
    packages = {name: _version(name) for name in PACKAGES}
    variables = {name: value for name, value in os.environ.items() if name.startswith("FUSELINE_")}
    return {
        "fuseline": fuseline.__version__,
        "python": sys.version,
        "platform": platform.platform(),
        "packages": packages,
        "environment": variables,
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _pack(file: Any, folder: Path) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in sorted(path for path in folder.rglob("*") if path.is_file()):
            archive.write(member, member.relative_to(folder).as_posix())


# the command ----------------------------------------------------------------------------------------------------------


def _collect(arguments: Sequence[str], folder: Path) -> tuple[list[str], list[str]]:
    """The command over the files in the archive, which are put into `folder`, and what had to be left out."""
    command: list[str] = []
    missing: list[str] = []
    for word in _without_outputs(arguments):
        option, sign, value = word.rpartition("=") if word.startswith("--") else ("", "", word)
        prefix = "null:" if value.startswith("null:") else ""
        path = Path(value.removeprefix(prefix))
        if "\0" in value or not path.is_file():
            command.append(word)
            continue
        try:
            command.append(f"{option}{sign}{prefix}{_copied(path, folder)}")
        except Exception as problem:  # noqa: BLE001 - a report on a broken model must not break on it
            missing.append(f"{path.name}: {problem}")
            command.append(word)
    return command, missing


def _without_outputs(arguments: Sequence[str]) -> Iterator[str]:
    """The words, those that name files to write or data to feed left out."""
    words = iter(arguments)
    for word in words:
        if word in _DROPPED_WITH_VALUE:
            next(words, None)
        elif not word.startswith(tuple(f"{option}=" for option in _DROPPED_WITH_VALUE)):
            yield word


def _copied(path: Path, folder: Path) -> str:
    """The name in the archive of a file without the weights in it."""
    stem = "model" if path.suffix in _MODELS else path.stem
    names = (f"{stem}{path.suffix}", *(f"{stem}-{i}{path.suffix}" for i in range(2, 100)))
    name = next(name for name in names if not (folder / name).exists())
    target = folder / name
    if path.suffix in (".onnx", ".fuse"):
        from fuseline.verify.stripped_weights import write_stripped, write_stripped_artifact

        write = write_stripped if path.suffix == ".onnx" else write_stripped_artifact
        write(path, target)
    elif path.suffix == ".mlir":
        from fuseline.verify.stripped_text import write_stripped_text

        write_stripped_text(path, target)
    else:
        target.write_bytes(path.read_bytes())
    return name


def _tried(command: Sequence[str], folder: Path) -> dict[str, Any] | None:
    """The error of the command run on the archive's files alone; None where there is none."""
    given = set(folder.iterdir())
    words = [sys.executable, "-m", "fuseline", *command, *([] if "--json" in command else ["--json"])]
    path = os.pathsep.join([str(Path(fuseline.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            env={**os.environ, "PYTHONPATH": path},
        )
        return json.loads(done.stdout)["error"]
    except (subprocess.TimeoutExpired, OSError, ValueError, KeyError, TypeError):
        return None
    finally:
        for path in set(folder.iterdir()) - given:  # `compile` and `report` write beside the model
            path.unlink()
