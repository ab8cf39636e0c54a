"""Ops that a program says are one unit, by the source nodes that all of them have: an attribute of their function."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp

UNITS_ATTRIBUTE = "fuseline.units"
"""On a function: the source nodes whose ops are a unit each."""


def units_of(function: FuncOp) -> list[str]:
    """The source nodes of a function's units."""
    found = function.attributes.get(UNITS_ATTRIBUTE)
    return [one.data for one in found if isinstance(one, StringAttr)] if isinstance(found, ArrayAttr) else []


def add_units(function: FuncOp, nodes: tuple[str, ...]) -> None:
    """Say that the ops of each of `nodes` are a unit."""
    found = dict.fromkeys((*units_of(function), *nodes))
    function.attributes[UNITS_ATTRIBUTE] = ArrayAttr([StringAttr(node) for node in found])
