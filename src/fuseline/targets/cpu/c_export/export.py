"""Writes what a caller in C needs of a compiled program."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO

from fuseline.errors import FuselineError
from fuseline.runtime.artifact import Artifact, artifact_bytes
from fuseline.runtime.cpu import machine_name
from fuseline.runtime.files import write_files
from fuseline.runtime.program import Command, HostCall, Loop
from fuseline.targets.cpu.c_export.objects import object_with
from fuseline.targets.cpu.c_export.source import identifier, sources
from fuseline.targets.cpu.isa.detection import machine


def export_c(artifact: Artifact, folder: Path, model: str) -> list[Path]:
    """Writes `NAME.fuse` (the weights), `NAME.o` (the code), `NAME_weights.o` (to link the weights in), `NAME.c`,
    `NAME.h` and `example.c` to `folder`, all or none; NAME is an identifier like `model`. Answers their paths.

    Raises FuselineError: E0502 for a program that C cannot run or a place that cannot be written.
    """
    refuse_what_c_cannot_run(artifact)
    name = identifier(model)
    file = artifact_bytes(artifact)
    chip = machine("baseline" if artifact.machine == "x86_64" else "neon")
    contents = {
        f"{name}.fuse": file,
        f"{name}.o": object_with(f"{name}_code", bytes(artifact.code), chip),
        f"{name}_weights.o": object_with(f"{name}_weights", file, chip),
        **{path: text.encode() for path, text in sources(name, artifact, file, _constants_at(file)).items()},
    }
    write_files({folder / path: _writer(content) for path, content in contents.items()})
    return [folder / path for path in contents]


def _writer(content: bytes) -> Callable[[BinaryIO], object]:
    return partial(_write, content)


def _write(content: bytes, file: BinaryIO) -> None:
    file.write(content)


def refuse_what_c_cannot_run(artifact: Artifact) -> None:
    """Raises FuselineError (E0502), naming what stands in the way: an operator that runs on the host, a value that is
    no array, sizes that an input's value tells, another machine's code."""
    program = artifact.program
    if artifact.machine != machine_name():
        raise _refused(None, f"the code is for {artifact.machine}", "export it on such a machine")
    for step in program.steps:
        if isinstance(step, HostCall):
            raise _refused(step.label, "this operator runs on the host, in Python", "run the artifact from Python")
        if not isinstance(step, Command | Loop):
            raise _refused(None, f"a {type(step).__name__} step is for tests", "compile without it")
    for spec in (*program.inputs, *program.outputs):
        if spec.slot is not None or spec.is_index:
            detail = "sizes depend on its value" if spec.is_index else f"it is a {spec.type}, no array of numbers"
            raise _refused(spec.name, detail, "run the artifact from Python")


def _refused(node: str | None, detail: str, hint: str) -> FuselineError:
    return FuselineError("E0502", f"cannot be called from C: {detail}", node=node, hint=hint)


def _constants_at(file: bytes) -> list[int]:
    """Where the constants lie in the file, as its header tells."""
    (length,) = struct.unpack_from("<Q", file, 16)
    return [row[0] for row in json.loads(file[64 : 64 + length])["constants"]]
