"""Target descriptions in TOML files: what a file may say, checked entry by entry."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any, TypeGuard, TypeVar, cast

from fuseline.errors import FuselineError
from fuseline.ir.costs import MachineCosts
from fuseline.ir.work_costs import WorkCosts
from fuseline.targets.file_locations import location_of

MOST = 1e12
"""No rate or time of a machine is as large as this, nor as small as one over it."""


def read_toml(path: Path) -> dict[str, object]:
    """The entries of the file. Raises E0501 naming it where it cannot be read, or is no TOML."""
    try:
        return dict(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise FuselineError(
            "E0501", f"cannot read the target's description: {error.strerror}", node=str(path)
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FuselineError("E0501", f"the target's description is no TOML: {error}", node=str(path)) from error


Costs = TypeVar("Costs", MachineCosts, WorkCosts)


def costs_of(value: object, path: Path, assumed: Costs, table: str = "costs") -> Costs:
    """The table `[costs]` of a description, or the one called `table`; what it leaves out is as `assumed`. Raises E0501
    naming the entry that no machine has."""
    if not isinstance(value, Mapping):
        at = location_of(path, table)
        raise FuselineError("E0501", f"{table} is no table: {value!r}", node=at, hint=f"write a section [{table}]")
    fields = {field.name: field for field in dataclasses.fields(assumed)}
    given: dict[str, Any] = {}
    for name, number in cast("Mapping[str, object]", value).items():
        at = location_of(path, table, name)
        if name not in fields:
            message = f"{table}: {name} is nothing that a machine costs"
            raise FuselineError("E0501", message, node=at, hint=f"it says {', '.join(fields)}")
        if not _is_rate(number):
            raise FuselineError("E0501", f"{table}: {name} is no positive number: {number!r}", node=at)
        if fields[name].type == "int" and number != round(number):
            raise FuselineError("E0501", f"{table}: {name} is no whole number: {number!r}", node=at)
        given[name] = round(number) if fields[name].type == "int" else float(number)
    return dataclasses.replace(assumed, **given)


def _is_rate(number: object) -> TypeGuard[int | float]:
    """Whether an entry is a number that a machine may have."""
    return (
        isinstance(number, int | float)
        and not isinstance(number, bool)
        and isfinite(number)
        and 1 / MOST < number < MOST
    )


def is_positive(value: object) -> bool:
    """Whether an entry is a positive integer."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
