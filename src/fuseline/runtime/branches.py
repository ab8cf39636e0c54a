"""A host operator that chooses between two compiled programs: an `If` of which only one branch may run.

The operator's bytes, little-endian:

    u32 header bytes, header (JSON: the condition's operand, and for each branch its operands and how many bytes it has,
    or the error that taking it is), then the artifacts
"""

from __future__ import annotations

import json
import struct
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from fuseline import executors
from fuseline.errors import FuselineError
from fuseline.runtime import host
from fuseline.runtime.artifact import Artifact, artifact_bytes, artifact_from_bytes
from fuseline.runtime.program import Program
from fuseline.runtime.session import Session


class Branch(NamedTuple):
    """A program, and the numbers of the operands that are its inputs, in order."""

    artifact: Artifact
    operands: tuple[int, ...]


def pack_branches(condition: int, then: Branch | FuselineError, otherwise: Branch | FuselineError) -> bytes:
    """The bytes of an operator that runs `then` where operand `condition` is true, else `otherwise`; an error in place
    of either is raised then."""
    rows: list[Any] = []
    programs: list[bytes] = []
    for branch in (then, otherwise):
        if isinstance(branch, FuselineError):
            rows.append({"code": branch.code, "message": branch.message, "node": branch.node, "hint": branch.hint})
        else:
            programs.append(artifact_bytes(branch.artifact))
            rows.append([list(branch.operands), len(programs[-1])])
    header = json.dumps({"condition": condition, "branches": rows}).encode()
    return b"".join([struct.pack("<I", len(header)), header, *programs])


class Taken(NamedTuple):
    """A branch that a run took: its program, and what it was fed."""

    program: Artifact
    feeds: dict[str, Any]


_taken: ContextVar[list[Taken] | None] = ContextVar("taken", default=None)


@contextmanager
def noting_branches() -> Generator[list[Taken]]:
    """Keep which branches the runs of this context take, and their feeds."""
    noted: list[Taken] = []
    token = _taken.set(noted)
    try:
        yield noted
    finally:
        _taken.reset(token)


def _kept(feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Feeds that later steps cannot change."""
    return {name: np.array(one) if isinstance(one, np.ndarray) else one for name, one in feeds.items()}


class _Choice:
    """The operator, ready to run: sessions are made when their branch is first taken."""

    def __init__(self, data: bytes) -> None:
        (size,) = struct.unpack_from("<I", data)
        header = json.loads(data[4 : 4 + size])
        self.condition = int(header["condition"])
        self._arms: list[tuple[tuple[int, ...], bytes] | dict[str, Any]] = []
        at = 4 + size
        for row in header["branches"]:
            if isinstance(row, dict):
                self._arms.append(row)
                continue
            operands, length = row
            self._arms.append((tuple(operands), data[at : at + length]))
            at += length
        self._sessions: dict[int, Session] = {}

    def programs(self) -> list[Program]:
        """Of the branches that are there."""
        return [artifact_from_bytes(arm[1]).program for arm in self._arms if not isinstance(arm, dict)]

    def run(self, operands: Sequence[Any]) -> list[Any]:
        """The outputs of the branch that the condition asks for; raises the FuselineError that an invalid branch is."""
        number = 0 if bool(np.asarray(operands[self.condition]).reshape(-1)[0]) else 1
        arm = self._arms[number]
        if isinstance(arm, dict):
            raise FuselineError(arm["code"], arm["message"], node=arm["node"], hint=arm["hint"])
        reads, program = arm
        session = self._sessions.get(number)
        if session is None:
            session = self._sessions.setdefault(number, Session(artifact_from_bytes(program)))
        feeds = {spec.name: operands[i] for spec, i in zip(session.inputs, reads, strict=True)}
        noted = _taken.get()
        if noted is not None:
            noted.append(Taken(session.artifact, _kept(feeds)))
        return list(session.run(feeds).values())


@lru_cache(maxsize=64)
def _choice(data: bytes) -> _Choice:
    return _Choice(data)


def execute(node: bytes, operands: Sequence[Any]) -> list[Any]:
    """Run the branch that the condition among `operands` asks for; raises what a session raises."""
    return _choice(node).run(operands)


def programs_of(node: bytes) -> list[Program]:
    """The programs of the branches that a run can take."""
    return _choice(node).programs()


host.register(executors.BRANCHES, execute, lambda node: "fuseline")
