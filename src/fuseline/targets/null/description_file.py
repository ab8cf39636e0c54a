"""A target described in a TOML file: the numbers that passes may know of a machine, for a target that this project has
no code for.

name = "toy-npu"
threads = 4
scratch_bytes_limit = 65536

[tile_multiples]
OH = 4
OC = 8

[costs]
flops_per_ns = 400.0

[limits]
operands = 4
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, cast

from fuseline.errors import FuselineError
from fuseline.ir.target_description import NUMERICS, TILE_ROLES, TargetDescription
from fuseline.targets.description_file import costs_of, is_positive, read_toml
from fuseline.targets.null.limits import DispatchCaps, caps_of


def read_description(path: Path, threads: int | None = None) -> tuple[TargetDescription, DispatchCaps]:
    """The description in the file at `path`, and what it takes of a dispatch; `threads` counts before what it says.
    Raises E0501 naming the file and the entry at fault."""
    entries = read_toml(path)
    caps = caps_of(entries.pop("limits", {}), path)
    known: dict[str, Any] = {"name": path.stem}
    for name, value in entries.items():
        known[name] = _value(name, value, path)
    if threads is not None:
        known["threads"] = threads
    return TargetDescription(**known), caps


def _value(name: str, value: object, path: Path) -> object:
    if name == "tile_multiples":
        return _multiples(value, path)
    if name == "costs":
        return costs_of(value, path)
    field = next((field for field in dataclasses.fields(TargetDescription) if field.name == name), None)
    if field is None:
        names = ", ".join([*(field.name for field in dataclasses.fields(TargetDescription)), "limits"])
        raise FuselineError(
            "E0501", f"{name} is nothing that a description says", node=str(path), hint=f"it says {names}"
        )
    if field.type == "int" and not is_positive(value):
        raise FuselineError("E0501", f"{name} is no positive integer: {value!r}", node=str(path))
    if field.type == "str" and not isinstance(value, str):
        raise FuselineError("E0501", f"{name} is no text: {value!r}", node=str(path))
    if name == "numerics" and value not in NUMERICS:
        hint = f"one of {', '.join(NUMERICS)}"
        raise FuselineError("E0501", f"numerics cannot be {value!r}", node=str(path), hint=hint)
    return value


def _multiples(value: object, path: Path) -> tuple[tuple[str, int], ...]:
    pairs = cast("dict[str, object]", value) if isinstance(value, dict) else {"tile_multiples": value}
    for role, multiple in pairs.items():
        if role not in TILE_ROLES or not is_positive(multiple):
            hint = f"a table of positive integers for {', '.join(TILE_ROLES)}"
            raise FuselineError("E0501", f"tile_multiples: {role} = {multiple!r}", node=str(path), hint=hint)
    return tuple((role, int(str(multiple))) for role, multiple in pairs.items())
