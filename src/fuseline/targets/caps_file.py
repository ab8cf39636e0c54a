"""The table `[limits]` of a target's description, read and checked: what its dispatches may be.

[limits]
members = 8                                  # ops
operands = 4                                 # tensors read
results = 1                                  # tensors written
loops = 5                                    # loops of one op
code_bytes = 16384
kinds = ["convolution", "elementwise"]       # what ops do, as reports name it
roots = ["convolution"]                      # what dispatches of several ops are built around
element_types = ["f32", "i8", "i32"]
without_ops = ["tanh", "erf"]                # scalar operations that it lacks, as `arith` and `math` call them
                                             # (`ops`: the only ones that it has)
[limits.convolution]                         # for dispatches with one, and (types, operations) for it
operands = 3
element_types = ["i8", "i32"]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from fuseline.errors import FuselineError
from fuseline.targets.description_file import is_positive
from fuseline.targets.dispatch_caps import ELEMENT_TYPES, KINDS, OPS, ROOTS, DispatchCaps
from fuseline.targets.file_locations import location_of

_NUMBERS = ("members", "operands", "results", "loops", "code_bytes")
_OF_A_KIND: dict[str, tuple[str, ...]] = {"element_types": ELEMENT_TYPES, "ops": OPS, "without_ops": OPS}
_NAMES: dict[str, tuple[str, ...]] = {"kinds": KINDS, **_OF_A_KIND, "roots": ROOTS}
_SHOWN = 20


def caps_of(value: object, path: Path) -> DispatchCaps:
    """The table `[limits]` of the description at `path`. Raises E0501 naming file, line and entry for what limits
    nothing, and for entries that contradict each other."""
    table = _table("limits", value, path)
    kinds = {name: entry for name, entry in table.items() if name in KINDS}
    own = {name: entry for name, entry in table.items() if name not in KINDS}
    given = _entries("limits", own, _NAMES, path)
    nested = tuple((kind, _of_kind(kind, entry, path)) for kind, entry in kinds.items())
    _refuse_contradictions("limits", given, path)
    allowed = given.get("kinds") or KINDS
    for name in (*kinds, *given.get("roots", ())):
        if name not in allowed:
            at = location_of(path, f"limits.{name}" if name in kinds else "limits.roots", "", name)
            raise FuselineError("E0501", f"limits: {name} is limited, and none of kinds", node=at, hint=_HINT)
    return DispatchCaps(**given, of_kind=nested, locations=dict(_locations("limits", given, path)))


_HINT = "two entries contradict each other: leave one out"


def _of_kind(kind: str, value: object, path: Path) -> DispatchCaps:
    where = f"limits.{kind}"
    given = _entries(where, _table(where, value, path), _OF_A_KIND, path)
    _refuse_contradictions(where, given, path)
    return DispatchCaps(**given, locations=dict(_locations(where, given, path)))


def _table(where: str, value: object, path: Path) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        hint = f"write a section [{where}]"
        raise FuselineError("E0501", f"{where} is no table: {value!r}", node=location_of(path, where), hint=hint)
    return cast("Mapping[str, object]", value)


def _entries(
    where: str, table: Mapping[str, object], named: Mapping[str, tuple[str, ...]], path: Path
) -> dict[str, Any]:
    """The entries of a table, checked; `named` are the lists of names, each with those that it may have."""
    given: dict[str, Any] = {}
    for name, entry in table.items():
        if name in named:
            given[name] = _names(where, name, entry, named[name], path)
        elif name in _NUMBERS:
            given[name] = _number(where, name, entry, path)
        else:
            known = ", ".join([*_NUMBERS, *named, *(["a table for each of the kinds"] if named is _NAMES else [])])
            at = location_of(path, where, name)
            raise FuselineError("E0501", f"{where}: {name} limits nothing", node=at, hint=f"it says {known}")
    return given


def _number(where: str, name: str, entry: object, path: Path) -> object:
    if not is_positive(entry):
        at = location_of(path, where, name)
        raise FuselineError("E0501", f"{where}: {name} is no positive integer: {entry!r}", node=at)
    return entry


def _names(where: str, name: str, entry: object, known: tuple[str, ...], path: Path) -> tuple[str, ...]:
    entries = cast("list[object]", entry) if isinstance(entry, list) else [entry]
    wrong = next((item for item in entries if item not in known), None)
    if not isinstance(entry, list) or not entries or wrong is not None:
        at = location_of(path, where, name, wrong)
        raise FuselineError("E0501", f"{where}: {name} = {entry!r}{_unknown(wrong)}", node=at, hint=_near(wrong, known))
    return tuple(dict.fromkeys(str(item) for item in entries))


def _unknown(wrong: object) -> str:
    return f" with {wrong!r}, which is none" if isinstance(wrong, str) else ""


def _near(wrong: object, known: tuple[str, ...]) -> str:
    near = get_close_matches(str(wrong), known, 3)
    shown = ", ".join(known[:_SHOWN]) + (", .." if len(known) > _SHOWN else "")
    return f"did you mean {' or '.join(near)}?" if near else f"a list of some of {shown}"


def _refuse_contradictions(where: str, given: Mapping[str, Any], path: Path) -> None:
    """Raises E0501 for an operation that there is and is not."""
    both = [name for name in given.get("without_ops", ()) if name in given.get("ops", ())]
    if both:
        at = location_of(path, where, "without_ops", both[0])
        raise FuselineError("E0501", f"{where}: {both[0]} is in ops and in without_ops", node=at, hint=_HINT)


def _locations(where: str, given: Mapping[str, Any], path: Path) -> Iterator[tuple[str, str]]:
    for name in given:
        yield name, location_of(path, where, name, short=True)
    for op in given.get("without_ops", ()):
        yield f"without_ops.{op}", location_of(path, where, "without_ops", op, short=True)
