"""Remove what nothing uses: ops without uses, declarations and executables that nothing calls.

%a = linalg.generic ...   (no use)   =>   (nothing)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, OpResult
from xdsl.passes import ModulePass

from fuseline.ir.fast.direct import erase, operands_of
from fuseline.ir.fast.nesting import ops_inside
from fuseline.ir.flow import DispatchOp, ExecutableOp
from fuseline.ir.provenance import provenance
from fuseline.passes.cleanup.elimination import is_dead, record_eliminated


def remove_dead(op: Operation, gone: set[str]) -> int:
    """Remove every dead op inside `op`, users before producers; adds their source nodes to `gone` and answers how many
    went."""
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
    return [
        value.op
        for inner in (op, *ops_inside(op))
        for value in operands_of(inner)
        if type(value) is OpResult and value.op is not op
    ]


def _remove_uncalled(module: ModuleOp, gone: set[str]) -> None:
    """Remove private functions and executables that nothing public calls, directly or through others; source nodes in
    them go to `gone`."""
    symbols = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp | ExecutableOp)}
    if not any(_is_private(op) for op in symbols.values()):
        return
    pending: list[Operation] = [
        op for op in module.ops if not (isinstance(op, FuncOp | ExecutableOp) and _is_private(op))
    ]
    called = set(pending)
    while pending:
        for callee in _callees(pending.pop()):
            found = symbols.get(callee)
            if found is not None and found not in called:
                called.add(found)
                pending.append(found)
    for op in [op for op in symbols.values() if op not in called]:
        for inner in ops_inside(op):
            gone.update(provenance(inner))
        erase(op)


def _callees(op: Operation) -> Iterator[str]:
    for inner in (op, *ops_inside(op)):
        if type(inner) is CallOp:
            yield inner.callee.root_reference.data
        elif type(inner) is DispatchOp:
            yield inner.executable


def _is_private(op: FuncOp | ExecutableOp) -> bool:
    return op.sym_visibility is not None and op.sym_visibility.data == "private"


@dataclass(frozen=True)
class DeadCodePass(ModulePass):
    """Remove what nothing uses."""

    name = "dead-code"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Remove ops first, then what only they called; nodes that vanish are recorded."""
        gone: set[str] = set()
        remove_dead(op, gone)
        _remove_uncalled(op, gone)
        record_eliminated(ctx, op, gone, self.name)


EXPORT = DeadCodePass
