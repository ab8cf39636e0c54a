"""What may be removed, and the record of source nodes that vanish with it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation
from xdsl.traits import IsTerminator, SymbolOpInterface

from fuseline.evaluation.program import lookup
from fuseline.ir.context import CompilerContext
from fuseline.ir.fast.direct import is_unused
from fuseline.ir.fast.nesting import ops_inside
from fuseline.ir.flow import DispatchOp, DispatchRegionOp
from fuseline.ir.provenance import provenance

PURE_DIALECTS = frozenset({"arith", "linalg", "math", "tensor"})
"""Dialects whose ops compute their results and do nothing else (on tensors)."""


def is_pure(op: Operation) -> bool:
    """Whether `op` only computes its results, so that equal ones are interchangeable."""
    return bool(op.results) and _only_computes(type(op))


@cache
def _only_computes(kind: type[Operation]) -> bool:
    return kind.name.partition(".")[0] in PURE_DIALECTS and not kind.has_trait(IsTerminator)


@cache
def _is_symbol(kind: type[Operation]) -> bool:
    return kind.has_trait(SymbolOpInterface)


def is_removable(op: Operation) -> bool:
    """Whether `op` may go when nothing uses its results: pure ops, dispatches of pure code, host ops (ONNX operators),
    and loops of such."""
    if is_pure(op) or type(op) is DispatchRegionOp or type(op) is DispatchOp:
        return True
    return type(op) is CallOp and is_pure_call(op)


def is_pure_call(op: CallOp) -> bool:
    """Whether `op` calls a declared host operator, or a function of the program."""
    callee = lookup(op, op.callee.root_reference.data)
    return isinstance(callee, FuncOp) and ("fuseline.host_op" in callee.attributes or not callee.is_declaration)


def is_dead(op: Operation) -> bool:
    """Whether `op` may be removed now."""
    return is_unused(op) and is_removable(op) and not _is_symbol(type(op))


def record_eliminated(ctx: Context, module: ModuleOp, nodes: Iterable[str], pass_name: str) -> None:
    """Note each of `nodes` that no op of `module` carries any more as eliminated by the pass; an empty tensor computes
    nothing of a node."""
    gone = set(nodes)
    if not gone or not isinstance(ctx, CompilerContext):
        return
    seen: set[int] = set()
    for op in ops_inside(module):
        if id(op.location) not in seen and type(op) is not tensor.EmptyOp:
            seen.add(id(op.location))
            gone.difference_update(provenance(op))
        if not gone:
            return
    for node in sorted(gone):
        ctx.records.eliminated.setdefault(node, pass_name)
