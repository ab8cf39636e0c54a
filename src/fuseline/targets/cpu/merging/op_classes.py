"""Which kernel ops may be merged how: those that are the same wherever they stand, that trap, that take a mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import (
    I64,
    Value,
)

Many = tuple[Any, ...]
"""The same thing in each kernel."""

MASKED = frozenset({"load", "store", "gather", "scatter"})
"""Ops whose last operand may be a mask."""


TRAPS = frozenset({"udiv", "urem", "sdiv", "srem"})
"""Ops that end the process for some operands."""


FREE: dict[str, Callable[[KernelBuilder, Value, Many], Any]] = {
    "compare": lambda k, one, args: k.compare(one.attr, *args),
    "select": lambda k, one, args: k.select(*args),
    "select_address": lambda k, one, args: k.select_mem(args[0], args[1], 0, args[2], 0),
    "mask": lambda k, one, args: k.mask(args[0], one.type.lanes),
    "splat": lambda k, one, args: k.splat(args[0], one.type.lanes),
    "cast": lambda k, one, args: k.pure("cast", one.type, (k.as_value(args[0]),), one.attr),
}
"""How values are made where they are asked for, so that numbers fold."""


def sort_of(one: Any) -> str:
    """What can stand in one place in several kernels: numbers and index values are alike."""
    return "index" if is_index(one) else "none" if one is None else type(one).__name__


def is_index(one: Any) -> bool:
    """Whether an operand is a number, or a value of the index type."""
    return isinstance(one, int) or (isinstance(one, Value) and one.type == I64)
