"""What is known of the executables of a program: which ops they are, and where they are launched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Operation

from fuseline.dispatch.view import DispatchView
from fuseline.ir.flow import DispatchOp, ExecutableOp
from fuseline.ir.provenance import provenance
from fuseline.targets.iree.flow.regions import entry_of
from fuseline.targets.iree.limits import is_loose

MEMBERS_ATTRIBUTE = "fuseline.members"


@dataclass
class Launched:
    """An executable: its `ops`; the `members` (structural ids) of each launch, and the source `nodes`."""

    ops: Sequence[Operation]
    members: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    nodes: set[str] = field(default_factory=set[str])

    @property
    def is_divisible(self) -> bool:
        """Whether a launch is several ops, so that it can be split."""
        return any(len(members) > 1 for members in self.members)


def launched(module: ModuleOp) -> dict[str, Launched]:
    """The executables of a module by name."""
    found = {
        op.sym_name.data: Launched(DispatchView(entry_of(op)).members)
        for op in module.ops
        if isinstance(op, ExecutableOp)
    }
    for op in module.walk():
        if isinstance(op, DispatchOp):
            one = found[op.executable]
            one.members.append(tuple(_names(op.attributes.get(MEMBERS_ATTRIBUTE))))
            one.nodes |= {*provenance(op)}
    return found


def loose_executables(known: Mapping[str, Launched]) -> set[str]:
    """Those whose ops stand outside of regions, for IREE to form."""
    return {name for name, one in known.items() if is_loose(one.ops)}


def _names(members: Any) -> Iterator[str]:
    """The ids in a list that may hold lists (ops that are one op by now)."""
    for member in members.data if isinstance(members, ArrayAttr) else ():
        if isinstance(member, StringAttr):
            yield member.data
        else:
            yield from _names(member)
