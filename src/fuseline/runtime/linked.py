"""A program with the image that was linked for it, as a file holds them: each knows the other."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fuseline.runtime.memory import Bytes
from fuseline.runtime.program import Program, program_from_json, program_to_json
from fuseline.runtime.references import check_references
from fuseline.runtime.signatures import CodeTable, Signature, split_table, with_table


class Linked(NamedTuple):
    """A program in its JSON form, and its image: code, and the table of what that takes."""

    program: dict[str, Any]
    image: bytes


def linked(
    program: Program,
    code: bytes,
    entries: Mapping[str, int],
    fixups: Sequence[tuple[int, int]],
    kernels: Mapping[int, Sequence[Signature]] | None,
) -> Linked:
    """What a file holds of these fields of an artifact."""
    data = program_to_json(program)
    return Linked(data, with_table(code, CodeTable(entries, fixups, kernels, _digest(data))))


def loaded(data: Any, image: Bytes, constants: Sequence[Bytes]) -> dict[str, Any]:
    """The fields of an artifact, by name, that tell a program, its code and its constants.

    Raises KeyError, TypeError, IndexError or ValueError for what is no program, for an image of another one, and for
    references to what is not there.
    """
    program = program_from_json(data)
    code, table = split_table(image.tobytes())
    if table.program != _digest(data):
        raise ValueError("the program is not the one that the code was linked for")
    check_references(program, len(code), table.entries, [len(constant) for constant in constants], table.kernels)
    return {
        "program": program,
        "code": code,
        "entries": table.entries,
        "fixups": table.fixups,
        "constants": tuple(constants),
        "kernels": table.kernels,
    }


def _digest(program: Mapping[str, Any]) -> str:
    """The image carries it, so that code and program of two artifacts are never taken for one."""
    return hashlib.sha256(json.dumps(program, separators=(",", ":")).encode()).hexdigest()
