"""The host operators of a program, and which package runs each of them in this installation."""

from __future__ import annotations

from collections.abc import Iterator

from fuseline import executors
from fuseline.errors import FuselineError
from fuseline.runtime import branches, host, repeats
from fuseline.runtime.program import HostCall, Program

MISSING = "not installed"
_PROGRAMS = {executors.BRANCHES: branches.programs_of, executors.REPEATS: repeats.programs_of}
_LACKING = {"E0503": MISSING, "E0106": "nothing"}


def host_calls(program: Program) -> Iterator[HostCall]:
    """The host calls of a program, those of the branches it chooses between and the loops it repeats included."""
    for step in program.steps:
        if isinstance(step, HostCall):
            yield step
            inside = _PROGRAMS.get(step.executor)
            for inner in inside(step.node) if inside is not None else ():
                yield from host_calls(inner)


def packages(program: Program) -> dict[str, str]:
    """By the label of each host call what runs it: `onnxruntime`, `onnx.reference`, `not installed`, or `nothing` for
    one that no package knows."""
    return {call.label: _package(call) for call in host_calls(program)}


def _package(call: HostCall) -> str:
    try:
        return host.package_of(call.executor, call.node)
    except FuselineError as error:
        if error.code not in _LACKING:
            raise
        return _LACKING[error.code]
