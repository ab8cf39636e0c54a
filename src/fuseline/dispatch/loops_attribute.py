"""The loops of a dispatch as text: the attribute `fuseline.loops` that the region and the entry function carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute

from fuseline.analysis.softmax_roles import SoftmaxRoles
from fuseline.dispatch.fused_loops import Extent, FusedLoops, MemberLoops, OnlineReduction, Role, mismatch
from fuseline.ir.dim import Dim
from fuseline.ir.dim_json import from_name, to_name

NO_NUMBER = -1
"""In the text, a loop that runs inside a workgroup, or one of one step that is in no class."""

UNNAMED = "?"
"""In the text, an extent that the program has no name for."""


def to_attribute(loops: FusedLoops) -> DictionaryAttr:
    """The loops as a printable attribute, which `from_attribute` reads."""
    entries: dict[str, Attribute] = {
        "grids": ArrayAttr(
            [
                ArrayAttr([StringAttr(UNNAMED if extent is None else to_name(extent)) for extent in grid])
                for grid in loops.grids
            ]
        ),
        "members": ArrayAttr([_member_attribute(member.role, member.grid_loops) for member in loops.members]),
    }
    if len(loops.grids) != 1:
        entries["arms"] = _integers(tuple(member.arm for member in loops.members))
    if loops.online:
        entries["online"] = ArrayAttr([_online_attribute(one) for one in loops.online])
    if loops.along:
        entries["along"] = ArrayAttr([_integers(one) for one in loops.along])
    if loops.classes:
        entries["classes"] = ArrayAttr([_loops_attribute(one) for one in loops.classes])
    return DictionaryAttr(entries)


def _member_attribute(role: Role, grid_loops: tuple[int | None, ...]) -> Attribute:
    return _loops_attribute(grid_loops) if role is Role.PLACED else StringAttr(role.value)


@lru_cache(maxsize=1 << 10)
def _loops_attribute(numbers: tuple[int | None, ...]) -> Attribute:
    return _integers(tuple(NO_NUMBER if number is None else number for number in numbers))


def _online_attribute(one: OnlineReduction) -> DictionaryAttr:
    loops = ArrayAttr([_integers(loop) for loop in one.loops])
    roles: dict[str, Attribute] = {
        "maximum": IntegerAttr(one.roles.maximum, i64),
        "exponentials": _integers(one.roles.exponentials),
        "total": IntegerAttr(one.roles.total, i64),
        "product": IntegerAttr(one.roles.product, i64),
    }
    return DictionaryAttr({"loops": loops, **roles, "points": IntegerAttr(one.points, i64)})


def _integers(values: tuple[int, ...]) -> Attribute:
    return DenseArrayBase.from_list(i64, values)


def with_operands_moved(attribute: DictionaryAttr, orders: Mapping[int, Sequence[int]]) -> DictionaryAttr:
    """The text of the same loops after the operands of members were put in another order: `orders[member][i]` is what
    was the number of operand `i`."""
    if "along" not in attribute.data:
        return attribute
    said = [_numbers(one) for one in _items(attribute.data["along"])]
    moved = [(member, orders[member].index(operand) if member in orders else operand) for member, operand in said]
    return DictionaryAttr({**attribute.data, "along": ArrayAttr([_integers(one) for one in moved])})


def from_attribute(attribute: Attribute, symbols: Mapping[str, Dim], node: str | None = None) -> FusedLoops:
    """The loops that an attribute says. `symbols`: the sizes by name; `node`: the dispatch, for errors. Raises
    FuselineError: E0302."""
    try:
        return _read(attribute, symbols)
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, RecursionError) as problem:
        raise mismatch(f"it does not read as loops ({problem!r})", node) from problem


def _read(attribute: Attribute, symbols: Mapping[str, Dim]) -> FusedLoops:
    entries = _typed(attribute, DictionaryAttr).data
    unknown = entries.keys() - {"grids", "members", "arms", "online", "along", "classes"}
    if unknown:
        raise ValueError(f"unknown entry {min(unknown)}")
    grids = tuple(tuple(_extent(name, symbols) for name in _items(grid)) for grid in _items(entries["grids"]))
    members = _items(entries["members"])
    arms = _numbers(entries["arms"]) if "arms" in entries else (0,) * len(members)
    found = tuple(_member(member, arm) for member, arm in zip(members, arms, strict=True))
    online = tuple(_online(one) for one in _items(entries["online"])) if "online" in entries else ()
    along = [_numbers(one) for one in _items(entries["along"])] if "along" in entries else []
    classes = tuple(_loops(one) for one in _items(entries["classes"])) if "classes" in entries else ()
    return FusedLoops(grids, found, online, tuple((member, operand) for member, operand in along), classes)


def _member(attribute: Attribute, arm: int) -> MemberLoops:
    if isinstance(attribute, StringAttr):
        role = Role(attribute.data)
        if role is Role.PLACED:
            raise ValueError("a placed member has loops")
        return MemberLoops((), role, arm)
    return MemberLoops(_loops(attribute), Role.PLACED, arm)


def _loops(attribute: Attribute) -> tuple[int | None, ...]:
    return tuple(None if number == NO_NUMBER else number for number in _numbers(attribute))


def _online(attribute: Attribute) -> OnlineReduction:
    entries = _typed(attribute, DictionaryAttr).data
    loops = [_numbers(loop) for loop in _items(entries["loops"])]
    return OnlineReduction(
        tuple((member, loop) for member, loop in loops),
        SoftmaxRoles(
            _number(entries["maximum"]),
            _numbers(entries["exponentials"]),
            _number(entries["total"]),
            _number(entries["product"]),
        ),
        _number(entries["points"]),
    )


def _extent(attribute: Attribute, symbols: Mapping[str, Dim]) -> Extent:
    name = _typed(attribute, StringAttr).data
    if not name:
        raise ValueError("a size has no name")
    return None if name == UNNAMED else from_name(name, symbols)


def _items(attribute: Attribute) -> tuple[Attribute, ...]:
    return tuple(_typed(attribute, ArrayAttr).data)


def _numbers(attribute: Attribute) -> tuple[int, ...]:
    array = _typed(attribute, DenseArrayBase)
    if array.elt_type != i64:
        raise TypeError(f"{attribute} is no array of i64")
    return tuple(array.get_values())


def _number(attribute: Attribute) -> int:
    return int(_typed(attribute, IntegerAttr).value.data)


def _typed(attribute: Attribute, wanted: type[Any]) -> Any:
    if not isinstance(attribute, wanted):
        raise TypeError(f"{attribute} is no {wanted.__name__}")
    return attribute
