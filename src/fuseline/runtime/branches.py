"""A host operator that chooses between two compiled programs: an `If` of which only one branch may run.

The operator's bytes, little-endian:

    u32 header bytes, header (JSON: the condition's operand, and for each branch its operands and how many bytes it has), then both artifacts
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from fuseline.runtime import host
from fuseline.runtime.artifact import Artifact, artifact_bytes, artifact_from_bytes
from fuseline.runtime.session import Session

EXECUTOR = "branches"
"""The name under which artifacts ask for it."""


class Branch(NamedTuple):
    """A program, and the numbers of the operands that are its inputs, in order."""

    artifact: Artifact
    operands: tuple[int, ...]


def pack_branches(condition: int, then: Branch, otherwise: Branch) -> bytes:
    """The bytes of an operator that runs `then` where operand `condition` is true, else `otherwise`."""
    programs = [artifact_bytes(branch.artifact) for branch in (then, otherwise)]
    rows = [[list(branch.operands), len(program)] for branch, program in zip((then, otherwise), programs, strict=True)]
    header = json.dumps({"condition": condition, "branches": rows}).encode()
    return b"".join([struct.pack("<I", len(header)), header, *programs])


class _Choice:
    """The operator, ready to run: sessions are made when their branch is first taken."""

    def __init__(self, data: bytes) -> None:
        (size,) = struct.unpack_from("<I", data)
        header = json.loads(data[4 : 4 + size])
        self.condition = int(header["condition"])
        self._programs: list[tuple[tuple[int, ...], bytes]] = []
        at = 4 + size
        for operands, length in header["branches"]:
            self._programs.append((tuple(operands), data[at : at + length]))
            at += length
        self._sessions: dict[int, Session] = {}

    def run(self, operands: Sequence[Any]) -> list[Any]:
        """The outputs of the branch that the condition asks for."""
        number = 0 if bool(np.asarray(operands[self.condition]).reshape(-1)[0]) else 1
        reads, program = self._programs[number]
        session = self._sessions.get(number)
        if session is None:
            session = self._sessions.setdefault(number, Session(artifact_from_bytes(program)))
        feeds = {spec.name: operands[i] for spec, i in zip(session.inputs, reads, strict=True)}
        return list(session.run(feeds).values())


@lru_cache(maxsize=64)
def _choice(data: bytes) -> _Choice:
    return _Choice(data)


def execute(node: bytes, operands: Sequence[Any]) -> list[Any]:
    """Run the branch that the condition among `operands` asks for; raises what a session raises."""
    return _choice(node).run(operands)


host.register(EXECUTOR, execute)
