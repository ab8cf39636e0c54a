"""What a plan says beside which ops run together: the table `[tuned]`, which `fuseline tune` writes.

[tuned]
dedup = "none"
threads = 1

[tuned.kernels]
"contraction.8f37c55e9cf8" = "tile=9x48"

[[tuned.change]]
knob = "dedup"
choice = "none"
detail = "how much dispatches share code"
gain = 0.012
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from fuseline.report.records import TunedChange


class TunedChoices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of a compile that a search chose, those that it left alone are None or empty; what it changed and what
    each change gained; and what it measured, for the reader."""

    dedup: str | None = None
    threads: int | None = None
    fusion: str | None = None
    passes: str | None = None
    without_rules: tuple[str, ...] = ()
    kernels: dict[str, str] = {}
    change: tuple[TunedChange, ...] = ()
    measured: dict[str, Any] = {}

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of a compile that were chosen."""
        names = ("dedup", "threads", "fusion", "passes", "without_rules", "kernels")
        return {name: value for name in names if (value := getattr(self, name))}


def read_tuned(table: object) -> TunedChoices:
    """The choices in a table of TOML. Raises ValueError saying what is wrong."""
    found = msgspec.convert(table, TunedChoices)
    if found.threads is not None and found.threads < 1:
        raise ValueError("Expected `int` of at least 1 - at `$.threads`")
    return found


def with_choices(given: Mapping[str, Any], tuned: TunedChoices) -> tuple[dict[str, Any], list[str]]:
    """The arguments of a compile that a user gave, with those of a plan where the user says nothing; and what is to be
    told of those that gave way. Rules are left out, and kernels chosen, by both."""
    merged, told = dict(given), list[str]()
    for name, value in tuned.options.items():
        user = given.get(name)
        if not user:
            merged[name] = value
        elif name == "without_rules":
            merged[name] = list(dict.fromkeys([*value, *user]))
        elif name == "kernels":
            merged[name] = {**value, **user}
        elif user != value:
            told.append(f"plan: {name} {_short(value)} of the plan gives way to {_short(user)}")
    return merged, told


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


# writing --------------------------------------------------------------------------------------------------------------


def tuned_text(tuned: TunedChoices) -> str:
    """The table as TOML, to stand behind the groups of a plan."""
    lines = ["", "[tuned]"]
    lines += [f"{name} = {_value(value)}" for name, value in tuned.options.items() if name != "kernels"]
    if tuned.kernels:
        lines += ["", "[tuned.kernels]", *(f"{_value(name)} = {_value(text)}" for name, text in tuned.kernels.items())]
    if tuned.measured:
        lines += ["", "[tuned.measured]", *(f"{name} = {_value(value)}" for name, value in tuned.measured.items())]
    for change in tuned.change:
        fields = msgspec.to_builtins(change)
        lines += ["", "[[tuned.change]]", *(f"{name} = {_value(value)}" for name, value in fields.items() if value)]
    return "\n".join(lines) + "\n"


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(_value, value))}]"
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(character if character.isprintable() else "?" for character in text) + '"'
