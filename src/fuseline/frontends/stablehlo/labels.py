"""What ops are called in records: the name that the source gives (`jit(f)/dot_general`), else their location in the
text."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FusedLoc, NameLoc
from xdsl.ir import Attribute, Operation

from fuseline.ir.text import text_location


def source_name(location: Attribute) -> str:
    """The outermost name in a location, empty where there is none."""
    if isinstance(location, NameLoc):
        return location.desc.data
    if isinstance(location, CallSiteLoc):
        return source_name(location.callee)
    if isinstance(location, FusedLoc) and isinstance(location.locations, ArrayAttr):
        names = (source_name(inner) for inner in location.locations)
        return next((name for name in names if name), "")
    return ""


class Labels:
    """Gives each op a label of its own: what is named alike is numbered."""

    def __init__(self) -> None:
        self._taken: dict[str, int] = {}

    def of(self, op: Operation) -> str:
        """The label of `op`."""
        name = source_name(op.location) or text_location(op.location) or op.name
        count = self._taken.get(name, 0)
        self._taken[name] = count + 1
        return f"{name}#{count + 1}" if count else name
