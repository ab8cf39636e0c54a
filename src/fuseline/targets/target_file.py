"""A target's description as a TOML file: the fields of `ir.target_description.TargetDescription`, and tables.

name = "toy-npu"
threads = 4
scratch_bytes_limit = 65536

[tile_multiples]                  # by role, see `TILE_ROLES`
OH = 4
OC = 8

[tile_multiples.depthwise]        # of these convolutions, and of `pointwise` ones, in place of the others
OC = 16

[fusion]
rules = ["npu_rules.py"]          # files beside this one
without = ["row-chain"]           # rules and joins that are off (`only`: those that are on)

[costs]
flops_per_ns = 400.0

[work_costs]                      # ir/work_costs.py, as `fuseline tune --fit` writes it
product = 0.0025

[limits]                          # targets/caps_file.py
operands = 4
without_ops = ["tanh"]
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from fuseline.errors import FuselineError
from fuseline.ir.target_description import (
    LARGEST_TILE,
    NUMERICS,
    TILE_CLASSES,
    TILE_ROLES,
    TargetDescription,
    TargetRules,
)
from fuseline.targets.caps_file import caps_of
from fuseline.targets.description_file import costs_of, is_positive
from fuseline.targets.dispatch_caps import DispatchCaps
from fuseline.targets.file_locations import location_of

_FIELDS = {field.name: field for field in dataclasses.fields(TargetDescription)}
_TABLES = ("limits", "fusion")
_RULES = ("rules", "only", "without")

Multiples = tuple[tuple[str, int], ...]


def description_of(
    entries: Mapping[str, object], path: Path, base: TargetDescription
) -> tuple[TargetDescription, DispatchCaps]:
    """The description that the `entries` of the file at `path` give: `base`, where they leave something out; and what
    the target takes of a dispatch. Raises E0501 naming the file, the line and the entry at fault."""
    known: dict[str, Any] = {}
    for name, value in entries.items():
        if name == "tile_multiples":
            known |= _multiples(value, path)
        elif name == "fusion":
            known["rules"] = _rules(value, path)
        elif name != "limits":
            known[name] = _value(name, value, path, base)
    return dataclasses.replace(base, **known), caps_of(entries.get("limits", {}), path)


def _value(name: str, value: object, path: Path, base: TargetDescription) -> object:
    at = location_of(path, "", name)
    field = None if name in ("class_multiples", "rules") else _FIELDS.get(name)
    if field is None:
        names = ", ".join([name for name in _FIELDS if name not in ("class_multiples", "rules")] + [*_TABLES])
        raise FuselineError("E0501", f"{name} is nothing that a description says", node=at, hint=f"it says {names}")
    if name == "costs":
        return costs_of(value, path, base.costs)
    if name == "work_costs":
        return costs_of(value, path, base.work_costs, name)
    if field.type == "int" and not is_positive(value):
        raise FuselineError("E0501", f"{name} is no positive integer: {value!r}", node=at)
    if field.type == "bool" and not isinstance(value, bool):
        raise FuselineError("E0501", f"{name} is neither true nor false: {value!r}", node=at)
    if field.type == "str" and not isinstance(value, str):
        raise FuselineError("E0501", f"{name} is no text: {value!r}", node=at)
    if name == "numerics" and value not in NUMERICS:
        raise FuselineError("E0501", f"numerics cannot be {value!r}", node=at, hint=f"one of {', '.join(NUMERICS)}")
    return value


# tiles ----------------------------------------------------------------------------------------------------------------


def _multiples(value: object, path: Path) -> dict[str, Any]:
    """`tile_multiples` and `class_multiples`."""
    table = cast("dict[str, object]", value) if isinstance(value, dict) else {"tile_multiples": value}
    general = {role: multiple for role, multiple in table.items() if role not in TILE_CLASSES}
    of_class = {name: own for name, own in table.items() if name in TILE_CLASSES}
    return {
        "tile_multiples": _by_role(general, "tile_multiples", TILE_ROLES, path),
        "class_multiples": tuple((name, _of_class(own, name, path)) for name, own in of_class.items()),
    }


def _of_class(value: object, name: str, path: Path) -> Multiples:
    table = cast("dict[str, object]", value) if isinstance(value, dict) else {name: value}
    roles = TILE_ROLES[: TILE_ROLES.index("M")]
    return _by_role(table, f"tile_multiples.{name}", tuple(r for r in roles if name != "depthwise" or r != "IC"), path)


def _by_role(table: Mapping[str, object], where: str, roles: tuple[str, ...], path: Path) -> Multiples:
    for role, multiple in table.items():
        if role not in roles or not is_positive(multiple) or int(str(multiple)) > LARGEST_TILE:
            hint = f"a table of positive integers, at most {LARGEST_TILE}, for {', '.join(roles)}"
            at = location_of(path, where, role)
            raise FuselineError("E0501", f"{where}: {role} = {multiple!r}", node=at, hint=hint)
    return tuple((role, int(str(multiple))) for role, multiple in table.items())


# rules ----------------------------------------------------------------------------------------------------------------


def _rules(value: object, path: Path) -> TargetRules:
    if not isinstance(value, Mapping):
        at = location_of(path, "fusion")
        raise FuselineError("E0501", f"fusion is no table: {value!r}", node=at, hint="write a section [fusion]")
    lists = {name: _texts(name, entry, path) for name, entry in cast("Mapping[str, object]", value).items()}
    only, without = lists.get("only", ()), lists.get("without", ())
    both = [name for name in without if name in only]
    if both:
        at = location_of(path, "fusion", "without", both[0])
        raise FuselineError("E0501", f"fusion: the rule {both[0]} is in only and in without", node=at, hint=_HINT)
    named = [(entry, name) for entry in ("only", "without") for name in lists.get(entry, ())]
    locations = {name: location_of(path, "fusion", entry, name) for entry, name in named}
    files = tuple(str(path.parent / name) for name in lists.get("rules", ()))
    return TargetRules(files, only, without, locations)


_HINT = "two entries contradict each other: leave one out"


def _texts(name: str, entry: object, path: Path) -> tuple[str, ...]:
    at = location_of(path, "fusion", name)
    if name not in _RULES:
        raise FuselineError(
            "E0501", f"fusion: {name} says nothing of rules", node=at, hint=f"it says {', '.join(_RULES)}"
        )
    items = cast("list[object]", entry) if isinstance(entry, list) else [None]
    if not items or not all(isinstance(item, str) and item for item in items):
        raise FuselineError("E0501", f"fusion: {name} = {entry!r}", node=at, hint="a list of names")
    return tuple(dict.fromkeys(str(item) for item in items))
