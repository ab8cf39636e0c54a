"""Outlined dispatches as regions again: where a dispatch is launched stands what it computes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from fuseline.ir.flow import DispatchOp, DispatchRegionOp, ExecutableOp
from fuseline.ir.flow import ReturnOp as RegionReturnOp

_REGION = "flow.dispatch.region"


def inline_executables(module: ModuleOp, loose: Collection[str] = ()) -> list[str]:
    """Put a `flow.dispatch.region` with the executable's body in place of each launch, the bare ops where the
    executable is one of `loose`; the executables go. Answers which executable each region was, in the order of the
    text."""
    executables = {op.sym_name.data: op for op in module.ops if isinstance(op, ExecutableOp)}
    regions: list[str] = []
    for op in list(module.walk()):
        if not isinstance(op, DispatchOp):
            continue
        entry = entry_of(executables[op.executable])
        if op.executable in loose:
            _put_bare(op, entry)
        else:
            _put_region(op, entry)
            regions.append(op.executable)
    for executable in executables.values():
        executable.detach()
        executable.erase()
    return regions


def region_lines(text: str) -> Iterator[tuple[int, int]]:
    """The first and the last line of each region in a printed module, counted from 1."""
    start, end = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if start and line == end:
            yield start, number
            start = 0
        elif not start and f" {_REGION} " in line:
            start, end = number, line[: len(line) - len(line.lstrip())] + "}"


def entry_of(executable: ExecutableOp) -> FuncOp:
    """The function of an executable."""
    return next(op for op in executable.walk() if isinstance(op, FuncOp))


def _put_region(call: DispatchOp, entry: FuncOp) -> None:
    block, values = Block(), _bound(call, entry)
    for op in entry.body.block.ops:
        block.add_op(_copied(op, values))
    region = DispatchRegionOp([result.type for result in call.results], list(call.result_dims), Region(block))
    region.location = call.location
    region.attributes |= call.attributes
    _before(call, region)
    _replace(call, region.results)


def _put_bare(call: DispatchOp, entry: FuncOp) -> None:
    values, results = _bound(call, entry), list[SSAValue]()
    for op in entry.body.block.ops:
        if isinstance(op, ReturnOp):
            results = [values.get(value, value) for value in op.operands]
        else:
            _before(call, _copied(op, values))
    _replace(call, results)


def _bound(call: DispatchOp, entry: FuncOp) -> dict[SSAValue, Any]:
    return dict(zip(entry.body.block.args, call.arguments, strict=True))


def _before(call: DispatchOp, op: Operation) -> None:
    block = call.parent
    assert block is not None
    block.insert_op_before(op, call)


def _replace(call: DispatchOp, results: Any) -> None:
    for old, new in zip(call.results, results, strict=True):
        old.replace_all_uses_with(new)
    call.detach()
    call.erase()


def _copied(op: Operation, values: dict[SSAValue, Any]) -> Operation:
    """A copy of an op of the entry function, its end as the end of a region."""
    if isinstance(op, ReturnOp):
        copy: Operation = RegionReturnOp([values.get(value, value) for value in op.operands])
    else:
        copy = op.clone(values)
    copy.location = op.location
    return copy
