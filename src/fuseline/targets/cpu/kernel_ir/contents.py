"""What is known of the integers that a kernel loads: those of a constant lie between its least and its greatest
element."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fuseline.targets.cpu.kernel_ir.types import MemRef, Value


class Range(NamedTuple):
    """Both ends are included."""

    low: int
    high: int


def range_of_load(load: Value, contents: Mapping[int, Range]) -> Range | None:
    """Between which numbers the elements of a load or gather lie, lanes that are not read (they are 0) included; None
    if nobody knows."""
    memory = load.args[0].root
    if not isinstance(memory, MemRef) or memory.writable:
        return None
    found = contents.get(memory.position) if memory.kind == "binding" else _of_table(memory)
    if found is None or load.args[1] is None:
        return found
    return Range(min(found.low, 0), max(found.high, 0))


def _of_table(memory: MemRef) -> Range | None:
    """Of a table of integers inside the code; of what it holds no element of another type is an index."""
    return Range(int(min(memory.data)), int(max(memory.data))) if memory.data else None
