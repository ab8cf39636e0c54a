"""A host operator that repeats a compiled program: a loop whose end only the run knows.

The operator's bytes, little-endian:

    u32 header bytes, header (JSON, below), then the artifacts of its programs

    counted: operands are first, end and step, then the states, then what no trip changes. On each trip `body` gets the
             counter, the states and the rest, and answers the states.
    else:    operands are the states, then the rest. `before` gets both, and answers whether to go on, and values. What
             it hands on (`forward`: a number of what it got, or of its values) are the results, or with the rest what
             `body` gets, which answers the states.

`reads` says which of those a program has as inputs.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from fuseline import executors
from fuseline.errors import FuselineError
from fuseline.runtime import host
from fuseline.runtime.artifact import Artifact, artifact_bytes, artifact_from_bytes
from fuseline.runtime.program import Program
from fuseline.runtime.session import Session

Call = Callable[[str, Sequence[Any]], Sequence[Any]]
"""Runs one of the programs, by its name, on its inputs."""


def pack_repeat(header: Mapping[str, Any], programs: Mapping[str, Artifact]) -> bytes:
    """The bytes of an operator that does what `header` says with these programs."""
    packed = {name: artifact_bytes(program) for name, program in programs.items()}
    sizes = {name: len(data) for name, data in packed.items()}
    text = json.dumps({**header, "bytes": sizes}).encode()
    return b"".join([struct.pack("<I", len(text)), text, *packed.values()])


def repeat(header: Mapping[str, Any], call: Call, operands: Sequence[Any]) -> list[Any]:
    """The states behind the last trip. Raises FuselineError (E0203) for a step that leads nowhere, and what a program
    raises."""
    if header["counted"]:
        return _counted(header, call, operands)
    count: int = header["states"]
    states, rest = list(operands[:count]), list(operands[count:])
    while True:
        slots = [*states, *rest]
        flag, *values = call("before", [slots[number] for number in header["reads"]["before"]])
        handed = [(values if where == "value" else slots)[number] for where, number in header["forward"]]
        if not bool(np.asarray(flag).reshape(-1)[0]):
            return handed
        slots = [*handed, *rest]
        states = list(call("body", [slots[number] for number in header["reads"]["body"]]))


def _counted(header: Mapping[str, Any], call: Call, operands: Sequence[Any]) -> list[Any]:
    first, end, step = (int(np.asarray(value).reshape(-1)[0]) for value in operands[:3])
    if step <= 0:
        raise FuselineError("E0203", f"a loop counts in steps of {step}, which must be at least 1")
    states, rest = list(operands[3 : 3 + header["states"]]), list(operands[3 + header["states"] :])
    for counter in range(first, end, step):
        slots = [np.asarray(counter), *states, *rest]
        states = list(call("body", [slots[number] for number in header["reads"]["body"]]))
    return states


class _Repeat:
    """The operator, ready to run: a session is made when its program first runs."""

    def __init__(self, data: bytes) -> None:
        (size,) = struct.unpack_from("<I", data)
        self.header: dict[str, Any] = json.loads(data[4 : 4 + size])
        self._programs: dict[str, bytes] = {}
        self._sessions: dict[str, Session] = {}
        at = 4 + size
        for name, length in self.header["bytes"].items():
            self._programs[name] = data[at : at + length]
            at += length

    def programs(self) -> list[Program]:
        """The programs that a trip runs."""
        return [artifact_from_bytes(data).program for data in self._programs.values()]

    def call(self, name: str, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of one of the programs."""
        session = self._sessions.get(name)
        if session is None:
            session = self._sessions.setdefault(name, Session(artifact_from_bytes(self._programs[name])))
        feeds = {spec.name: value for spec, value in zip(session.inputs, inputs, strict=True)}
        return list(session.run(feeds).values())


@lru_cache(maxsize=64)
def _repeat(data: bytes) -> _Repeat:
    return _Repeat(data)


def execute(node: bytes, operands: Sequence[Any]) -> list[Any]:
    """Run the programs as long as the loop goes on; raises what `repeat` raises."""
    operator = _repeat(node)
    return repeat(operator.header, operator.call, operands)


def programs_of(node: bytes) -> list[Program]:
    """The programs that such an operator runs."""
    return _repeat(node).programs()


host.register(executors.REPEATS, execute, lambda node: "fuseline")
