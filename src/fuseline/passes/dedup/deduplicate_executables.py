"""deduplicate-executables: executables with equal code become one.

`level=exact`: structural equality; names and locations are ignored, constants that are operands do not matter. `none` keeps one per dispatch.
Source: iree-org/iree#1144, #4000.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, SymbolRefAttr
from xdsl.passes import ModulePass

from fuseline.analysis.structural_key import structural_key
from fuseline.errors import FuselineError
from fuseline.ir import flow
from fuseline.ir.provenance import carry
from fuseline.passes.dispatch.outline_executables import entry_of

LEVELS = ("none", "exact")


@dataclass(frozen=True)
class DeduplicateExecutablesPass(ModulePass):
    """`level`: one of `LEVELS`."""

    name = "deduplicate-executables"
    level: str = "exact"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        del ctx
        if self.level not in LEVELS:
            raise FuselineError("E0304", f"level is {self.level!r}", node=self.name, hint=f"use one of {', '.join(LEVELS)}")
        if self.level == "exact":
            _redirect(op, _merge(op))


def _merge(module: ModuleOp) -> dict[str, flow.ExecutableOp]:
    """Erase all but the first of equal executables; answers which one stands for each name."""
    first: dict[Hashable, flow.ExecutableOp] = {}
    stands_for: dict[str, flow.ExecutableOp] = {}
    for executable in [op for op in module.ops if isinstance(op, flow.ExecutableOp)]:
        kept = first.setdefault(_key(executable), executable)
        stands_for[executable.sym_name.data] = kept
        if kept is not executable:
            carry([executable], [kept])
            executable.detach()
            executable.erase()
    return stands_for


def _key(executable: flow.ExecutableOp) -> Hashable:
    return structural_key(entry_of(executable))


def _redirect(module: ModuleOp, stands_for: dict[str, flow.ExecutableOp]) -> None:
    for call in [op for op in module.walk() if isinstance(op, flow.DispatchOp)]:
        kept = stands_for.get(call.executable)
        if kept is not None and kept.sym_name.data != call.executable:
            call.properties["entry_points"] = ArrayAttr([SymbolRefAttr(kept.sym_name.data, [entry_of(kept).sym_name.data])])


EXPORT = DeduplicateExecutablesPass
