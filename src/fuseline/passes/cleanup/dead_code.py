"""Remove what nothing uses: ops without uses, declarations and executables that nothing calls.

%a = linalg.generic ...   (no use)   =>   (nothing)
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, OpResult
from xdsl.passes import ModulePass

from fuseline.ir.direct import erase, operands_of
from fuseline.ir.flow import DispatchOp, ExecutableOp
from fuseline.ir.nesting import ops_inside
from fuseline.ir.provenance import provenance
from fuseline.passes.cleanup.elimination import is_dead, record_eliminated


def remove_dead(op: Operation, gone: set[str]) -> int:
    """Remove every dead op inside `op`, users before producers; adds their source nodes to `gone` and answers how many went."""
    pending = ops_inside(op)
    removed = 0
    while pending:
        candidate = pending.pop()
        if candidate.parent is None or not is_dead(candidate):
            continue
        pending += _producers(candidate)
        for inner in (candidate, *ops_inside(candidate)):
            gone.update(provenance(inner))
        erase(candidate)
        removed += 1
    return removed


def _producers(op: Operation) -> list[Operation]:
    return [value.op for inner in (op, *ops_inside(op)) for value in operands_of(inner) if isinstance(value, OpResult) and value.op is not op]


def _remove_uncalled(module: ModuleOp) -> None:
    called: set[str] = set()
    for op in ops_inside(module):
        if isinstance(op, CallOp):
            called.add(op.callee.root_reference.data)
        elif isinstance(op, DispatchOp):
            called.add(op.executable)
    for op in list(module.ops):
        uncalled = isinstance(op, FuncOp | ExecutableOp) and op.sym_name.data not in called and _is_private(op)
        if uncalled and not (isinstance(op, FuncOp) and not op.is_declaration):
            erase(op)


def _is_private(op: FuncOp | ExecutableOp) -> bool:
    return op.sym_visibility is not None and op.sym_visibility.data == "private"


@dataclass(frozen=True)
class DeadCodePass(ModulePass):
    """Remove what nothing uses."""

    name = "dead-code"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        gone: set[str] = set()
        remove_dead(op, gone)
        _remove_uncalled(op)
        record_eliminated(ctx, op, gone, self.name)


EXPORT = DeadCodePass
