"""Measured dispatches as JSON lines, one per program and round: written whole or not at all, so that a collection that
is broken off goes on where it stopped."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from pathlib import Path
from typing import NamedTuple

import msgspec

from fuseline.errors import FuselineError
from fuseline.ir.work_costs import KINDS
from fuseline.runtime.files import write_bytes

RECORD_VERSION = 4
"""Raised when kinds of work change meaning: before, chains of operations and columns that are widened did not count."""


class DispatchSample(msgspec.Struct, frozen=True, kw_only=True):
    """One dispatch: the code that it launches, what it has to do (`ir.work_costs`), the part of it that the busiest
    thread does, the least seconds of one launch."""

    name: str
    executable: str
    work: dict[str, float]
    share: float
    seconds: float


class ProgramKey(NamedTuple):
    """What is measured once per round: times are the same for the same key."""

    machine: str
    digest: str
    target: str
    threads: int
    fusion: str


class ProgramSamples(msgspec.Struct, frozen=True, kw_only=True):
    """One compiled model, measured once.

    Attributes:
        machine: its kind (`tuning.machine_kind`). model: the name of the file; digest: SHA-256 of its content. target,
        threads, fusion: as it was compiled. round: 0, 1, ... of those with the same key. dispatches: in the order of
        the program.
    """

    machine: str
    model: str
    digest: str
    target: str
    threads: int
    fusion: str
    dispatches: tuple[DispatchSample, ...]
    round: int = 0
    version: int = RECORD_VERSION

    @property
    def key(self) -> ProgramKey:
        """What was measured, whatever the round."""
        return ProgramKey(self.machine, self.digest, self.target, self.threads, self.fusion)


def read_records(path: Path) -> list[ProgramSamples]:
    """What the file holds; nothing where there is no file.

    Raises FuselineError (E0501 naming file and line) for a line that is no record of this version, or that no machine
    can have measured."""
    try:
        lines = path.read_bytes().splitlines() if path.exists() else []
    except (OSError, ValueError) as error:
        raise FuselineError("E0501", f"cannot read the records: {error}", node=str(path)) from error
    return [_decoded(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip()]


def write_records(path: Path, records: Iterable[ProgramSamples]) -> None:
    """The file with these records, as a whole. Raises E0502 where it cannot be written."""
    write_bytes(path, b"".join(msgspec.json.encode(record) + b"\n" for record in records))


def _decoded(line: bytes, at: str) -> ProgramSamples:
    try:
        record = msgspec.json.decode(line, type=ProgramSamples)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FuselineError("E0501", f"the line is no record of dispatches: {error}", node=at, hint=_HINT) from error
    why = _impossible(record)
    if why:
        raise FuselineError("E0501", f"the line is no record of this version: {why}", node=at, hint=_HINT)
    return record


_HINT = "give another --records file, and the models are measured again"


def _impossible(record: ProgramSamples) -> str:
    """Why nobody can have measured that, or this version does not know it; empty where it is sound."""
    if record.version != RECORD_VERSION:
        return f"version {record.version}, not {RECORD_VERSION}"
    if record.threads < 1 or record.round < 0:
        return f"{record.threads} threads in round {record.round}"
    return next((why for one in record.dispatches if (why := _impossible_dispatch(one))), "")


def _impossible_dispatch(one: DispatchSample) -> str:
    unknown = sorted({*one.work} - {*KINDS})
    if unknown:
        return f"{one.name} does work of an unknown kind, {unknown[0]}"
    if not (isfinite(one.seconds) and one.seconds > 0 and 0 < one.share <= 1):
        return f"{one.name} took {one.seconds} seconds, {one.share} of it on one thread"
    wrong = next((kind for kind, amount in one.work.items() if not (isfinite(amount) and amount >= 0)), "")
    return f"{one.name} has {one.work[wrong]} of {wrong}" if wrong else ""
