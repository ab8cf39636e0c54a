"""deduplicate-executables: executables with equal code become one.

From level `exact` on: structural equality; names and locations are ignored, constants that are operands do not matter,
the loops that fusion lets the members share do: other loops are other code. What higher levels share beyond that, the
passes before this one have made equal. `none` keeps one per dispatch. Source: iree-org/iree#1144, #4000.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from fuseline.analysis.structural_key import AttributeNumbers, structural_key
from fuseline.dispatch.executable_entry import entry_of
from fuseline.ir import flow
from fuseline.ir.fast.direct import erase
from fuseline.ir.fast.nesting import ops_inside
from fuseline.ir.provenance import carry
from fuseline.passes.dedup.levels import checked, contains


@dataclass(frozen=True)
class DeduplicateExecutablesPass(ModulePass):
    """`level`: one of `levels.LEVELS`."""

    name = "deduplicate-executables"
    level: str = "exact"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Keep the first of each class, which all its calls name then. Raises FuselineError: E0304 for an unknown
        level."""
        del ctx
        if contains(checked(self.level, self.name), "exact"):
            _redirect(op, _merge(op))


def _merge(module: ModuleOp) -> dict[str, flow.ExecutableOp]:
    """Erase all but the first of equal executables; answers which one stands for each name."""
    numbers = AttributeNumbers()
    equal: dict[Hashable, list[flow.ExecutableOp]] = {}
    for executable in [op for op in module.ops if isinstance(op, flow.ExecutableOp)]:
        equal.setdefault(structural_key(entry_of(executable), numbers), []).append(executable)
    stands_for: dict[str, flow.ExecutableOp] = {}
    for kept, *others in equal.values():
        stands_for.update({executable.sym_name.data: kept for executable in (kept, *others)})
        carry(others, [kept])  # at once: one body may stand for hundreds
        for executable in others:
            erase(executable)
    return stands_for


def _redirect(module: ModuleOp, stands_for: dict[str, flow.ExecutableOp]) -> None:
    entries = {
        name: flow.entry_points(kept.sym_name.data, entry_of(kept).sym_name.data) for name, kept in stands_for.items()
    }
    for function in module.ops:
        for call in (
            [op for op in ops_inside(function) if type(op) is flow.DispatchOp] if type(function) is FuncOp else ()
        ):
            call.properties["entry_points"] = entries.get(call.executable, call.entry_points)


EXPORT = DeduplicateExecutablesPass
