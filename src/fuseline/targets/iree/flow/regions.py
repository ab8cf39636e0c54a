"""Outlined dispatches as regions again: where a dispatch is launched stands what it computes."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from fuseline.ir.flow import DispatchOp, DispatchRegionOp, ExecutableOp
from fuseline.ir.flow import ReturnOp as RegionReturnOp


def inline_executables(module: ModuleOp) -> None:
    """Put a `flow.dispatch.region` with the executable's body in place of each launch; the executables go."""
    executables = {op.sym_name.data: op for op in module.ops if isinstance(op, ExecutableOp)}
    entries = {name: _entry(op) for name, op in executables.items()}
    for op in list(module.walk()):
        if isinstance(op, DispatchOp):
            _inline(op, entries[op.executable])
    for executable in executables.values():
        executable.detach()
        executable.erase()


def _entry(executable: ExecutableOp) -> FuncOp:
    return next(op for op in executable.walk() if isinstance(op, FuncOp))


def _inline(call: DispatchOp, entry: FuncOp) -> None:
    block = Block()
    values: dict[SSAValue, SSAValue] = dict(zip(entry.body.block.args, call.arguments, strict=True))
    for op in entry.body.block.ops:
        copy = _copied(op, values)
        copy.location = op.location
        block.add_op(copy)
    types = [result.type for result in call.results]
    region = DispatchRegionOp(types, list(call.result_dims), Region(block))
    region.location = call.location
    region.attributes |= call.attributes
    parent = call.parent
    assert parent is not None
    parent.insert_op_before(region, call)
    for old, new in zip(call.results, region.results, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    call.detach()
    call.erase()


def _copied(op: Operation, values: dict[SSAValue, Any]) -> Operation:
    """A copy of an op of the entry function, its end as the end of a region."""
    if isinstance(op, ReturnOp):
        return RegionReturnOp([values.get(value, value) for value in op.operands])
    return op.clone(values)
