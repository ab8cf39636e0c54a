"""What a target from outside assembles in place of an artifact: bytes or text for a file, or a program of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from fuseline.errors import FuselineError
from fuseline.program.schedule import Schedule
from fuseline.runtime.artifact import Artifact
from fuseline.runtime.files import write_bytes
from fuseline.runtime.program import Program
from fuseline.targets.listed_program import ListedProgram
from fuseline.targets.runtime_form import host_calls, program_of

NO_SUFFIX = ".listing"
"""Of targets that say none."""

_OF_PROGRAMS = ("program", "records", "session", "save")


@dataclass(frozen=True)
class OutsideProgram(ListedProgram):
    """`content` is the file that the target makes of a program, `suffix` how its name ends."""

    content: bytes
    suffix: str
    target: str

    def run(self, feeds: Mapping[str, Any]) -> NoReturn:
        """Raises E0305: what it holds runs elsewhere."""
        del feeds
        raise FuselineError(
            "E0305", f"what the target {self.target} makes does not run here", hint="compile for cpu or interpreter"
        )

    def save(self, path: str | os.PathLike[str], *, sign: Any = None) -> None:
        """Writes the content as one file, at once or not at all. Raises E0501 for a key, E0502 for a bad place."""
        self.refuse_key(sign)
        write_bytes(path, self.content)

    def refuse_key(self, sign: Any) -> None:
        """Raises E0501 where there is a key: only artifacts of fuseline's own are signed."""
        if sign is not None:
            message = f"what the target {self.target} makes is no artifact, and is not signed"
            raise FuselineError("E0501", message, hint="compile for cpu, or sign the file by other means")


def outside_program(
    made: str | bytes | bytearray,
    schedule: Schedule,
    records: bytes,
    metadata: Mapping[str, Any],
    target: str,
    suffix: str,
) -> OutsideProgram:
    """The program behind bytes or text (UTF-8); without a `suffix` it is one that no other file has."""
    content = made.encode() if isinstance(made, str) else bytes(made)
    program = program_of(schedule, host_calls(schedule))
    return OutsideProgram(program, records, metadata, content, suffix or NO_SUFFIX, target)


def program_complaint(made: object, *, makes_artifacts: bool, runs_programs: bool) -> str | None:
    """What is wrong with what a target assembled that is not bytes or text; None for a program."""
    said = f"answered {type(made).__name__}"
    if makes_artifacts or isinstance(made, Artifact):
        return None if isinstance(made, Artifact) else f"{said}, which is no Artifact, and makes_artifacts is True"
    wanted = (*_OF_PROGRAMS, "with_fallback") if runs_programs else _OF_PROGRAMS
    lacking = [name for name in wanted if not hasattr(made, name)]
    if lacking:
        return f"{said}, which is neither bytes nor text, and as a program lacks {', '.join(lacking)}"
    good = isinstance(getattr(made, "records"), bytes) and isinstance(getattr(made, "program"), Program)  # noqa: B009
    return None if good else f"{said}, whose program or records are not those it was given"
