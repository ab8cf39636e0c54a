"""A `while` whose end only the run knows: the host repeats programs of its condition and of its body
(`ir/repeat.py`), which are StableHLO as they stand."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from fuseline.frontends.onnx.dtypes import is_unsigned
from fuseline.frontends.onnx.emission import result
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.frontends.stablehlo.hlo import Hlo
from fuseline.ir.declared_types import declare_dtypes
from fuseline.ir.dim_json import to_name
from fuseline.ir.hlo.ops import HloOp
from fuseline.ir.repeat import RepeatNode, declare_repeat
from fuseline.ir.text import print_module
from fuseline.report.records import HostOpRecord

_ALL = 1 << 62


def repeat_on_host(hlo: Hlo, why: str) -> list[Tensor]:
    """The states behind the last trip, which the host makes. Sizes stay what they are."""
    cond, body = (region.block for region in hlo.op.regions[:2])
    rest = _captured(hlo, [cond, body])
    asked, first = _text(hlo, cond, rest)
    made, second = _text(hlo, body, rest)
    count = len(hlo.inputs)
    forward = [["slot", number] for number in range(count)]
    header = {"counted": False, "states": count, "reads": {"before": first, "body": second}, "forward": forward}
    node = RepeatNode(header, {"before": asked, "body": made})
    return _called(hlo, node, [*hlo.inputs, *(hlo.scope.values[value] for value in rest)], why)


def _called(hlo: Hlo, node: RepeatNode, operands: Sequence[Tensor], why: str) -> list[Tensor]:
    """The call, counted among the operators of the host."""
    importer, states = hlo.importer, hlo.inputs
    values = [hlo.node.ssa(t) for t in operands]
    types = [value.type for value in values]
    name = f"host.While.{len(importer.host.declarations)}"
    declared = declare_repeat(name, "While", node, types, types[: len(states)])
    declare_dtypes(declared, [_dtype(t) for t in operands], [_dtype(t) for t in states])
    record = HostOpRecord(node=hlo.label, op_type="While", reason=why)
    importer.host.declarations.append(declared)
    importer.ctx.records.host_ops.append(record)
    importer.host.program.on_rollback(lambda: importer.host.declarations.remove(declared))
    importer.host.program.on_rollback(lambda: importer.ctx.records.host_ops.remove(record))
    call = hlo.node.emit.add(CallOp(name, values, types[: len(states)]))
    call.attributes["fuseline.dims"] = ArrayAttr(
        [ArrayAttr([StringAttr(to_name(dim)) for dim in t.dims]) for t in states]
    )
    return [result(value, t.dims, t.dtype) for value, t in zip(call.res, states, strict=True)]


def _dtype(t: Tensor) -> str:
    """The type that the IR has no word for; empty for others."""
    return t.dtype.name if is_unsigned(t.dtype) and t.dtype.kind != "b" else ""


def _captured(hlo: Hlo, blocks: Sequence[Block]) -> list[SSAValue]:
    """What the loop reads from outside, each once, constants of the text aside."""
    found: dict[SSAValue, None] = {}
    for block in blocks:
        for op in block.walk():
            for value in op.operands:
                if value in hlo.scope.values and not _is_constant(value):
                    found[value] = None
    return [*found]


def _is_constant(value: SSAValue) -> bool:
    return isinstance(value.owner, HloOp) and value.owner.name == "stablehlo.constant"


def _text(hlo: Hlo, block: Block, rest: Sequence[SSAValue]) -> tuple[str, list[int]]:
    """A program of a region, and the numbers of what it reads of the states and of `rest`."""
    inside = [op for op in block.walk()]
    used = {value for op in inside for value in op.operands}
    slots = {value: number for number, value in enumerate((*block.args, *rest)) if value in used}
    entry = Block(arg_types=[value.type for value in slots])
    values: dict[SSAValue, SSAValue] = dict(zip(slots, entry.args, strict=True))
    for op in _constants(hlo, inside):
        entry.add_op(_copied(op, values))
    last = block.last_op
    assert last is not None
    for op in block.ops:
        if op is not last:
            entry.add_op(_copied(op, values))
    entry.add_op(ReturnOp(*(values.get(value, value) for value in last.operands)))
    types = [value.type for value in slots], [value.type for value in last.operands]
    main = FuncOp("main", types, Region(entry))
    text = print_module(ModuleOp([main]), hlo.importer.ctx, locations=True, embed_limit=_ALL)
    return text, [*slots.values()]


def _constants(hlo: Hlo, ops: Sequence[Operation]) -> list[Operation]:
    """The constants outside of the loop that it reads."""
    read = [value for op in ops for value in op.operands if value in hlo.scope.values and _is_constant(value)]
    return [*dict.fromkeys(value.owner for value in read if isinstance(value.owner, Operation))]


def _copied(op: Operation, values: dict[SSAValue, SSAValue]) -> Operation:
    copy = op.clone(values)
    copy.location = op.location
    return copy
