"""record-dispatches: write down every dispatch of the program, with its members, work and traffic. Changes nothing in the IR."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from fuseline.analysis.arms import Component, components
from fuseline.analysis.cost import flops, num_bytes
from fuseline.analysis.dispatch_view import MEMBERS_ATTRIBUTE, DispatchView, root_of
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind, splat_value
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Dim, add, to_text, upper_bound
from fuseline.ir.flow import DispatchOp, ExecutableOp
from fuseline.ir.provenance import provenance
from fuseline.passes.dispatch.outline_executables import entry_of
from fuseline.passes.fusion.profit import launch_ns
from fuseline.report.records import ArmRecord, Decision, DispatchRecord, FusionNodeRecord, MemberRecord

Role = Literal["root", "prologue", "epilogue", "member"]


@dataclass(frozen=True)
class RecordDispatchesPass(ModulePass):
    """Has no options."""

    name = "record-dispatches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        assert isinstance(ctx, CompilerContext)
        views = {exe.sym_name.data: DispatchView(entry_of(exe)) for exe in op.ops if isinstance(exe, ExecutableOp)}
        ctx.records.dispatches.clear()
        for function in op.ops:
            if isinstance(function, FuncOp) and function.body.blocks:
                _record_function(ctx, function, views)
                _record_undispatched(ctx, function)
        _name_decisions(ctx)


def _record_function(ctx: CompilerContext, function: FuncOp, views: dict[str, DispatchView]) -> None:
    shapes = ShapeAnalysis(ctx.symbols)
    for call in function.body.block.ops:
        if isinstance(call, DispatchOp):
            number = len(ctx.records.dispatches)
            ctx.records.dispatches.append(_record(ctx, call, views[call.executable], shapes, number))


def _record_undispatched(ctx: CompilerContext, function: FuncOp) -> None:
    """Source nodes whose ops need no dispatch: constants, and reshapes that only rename the dimensions of a buffer."""
    placed = {node for dispatch in ctx.records.dispatches for member in dispatch.members for node in member.nodes}
    for op in function.body.block.ops:
        for node in provenance(op):
            if node not in placed:
                ctx.records.eliminated.setdefault(node, "outline-executables")


def _record(ctx: CompilerContext, call: DispatchOp, view: DispatchView, shapes: ShapeAnalysis, number: int) -> DispatchRecord:
    root, parts = view.root, components(view)
    members = [op for op in view.members if kind(op) is not Kind.RESHAPE]
    extents = StructuredOp(root).loops(view.shapes) if is_generic(root) else ()
    names = _names(call, members)
    arms = [_arm(part, names) for part in parts] if len(parts) > 1 else []
    work = _number(_sum(flops(op, view.shapes) for op in members))
    read = _number(_sum(num_bytes(value, shapes) for value in dict.fromkeys(call.arguments)))
    written = _number(_sum(num_bytes(value, shapes) for value in call.res))
    return DispatchRecord(
        name=f"{number:03d}_{kind(root).value if root is not None else 'empty'}",
        executable=call.executable,
        root=_label(arms) if arms else (kind(root).value if root is not None else ""),
        members=_members(ctx, members, names, [root_of([op for op in part.members if op in names]) for part in parts]),
        loops=tuple(to_text(extent) for extent in extents),
        flops=work,
        bytes_read=read,
        bytes_written=written,
        arms=arms,
        predicted_ns=round(launch_ns(work, read + written, ctx.target.threads)),
    )


def _names(call: DispatchOp, ops: list[Operation]) -> dict[Operation, str]:
    """The fusion graph's id of each member; its kind where the dispatch was not formed by fusion."""
    attribute = call.attributes.get(MEMBERS_ATTRIBUTE)
    names = [name.data for name in attribute if isinstance(name, StringAttr)] if isinstance(attribute, ArrayAttr) else []
    return dict(zip(ops, names if len(names) == len(ops) else [kind(op).value for op in ops], strict=True))


def _arm(part: Component, names: dict[Operation, str]) -> ArmRecord:
    members = [op for op in part.members if op in names]
    root = root_of(members)
    stored = "fill" if splat_value(part.outputs[0].value) is not None else "copy"
    return ArmRecord(root=kind(root).value if root is not None else stored, members=tuple(names[op] for op in members))


def _label(arms: list[ArmRecord]) -> str:
    counts = Counter(arm.root for arm in arms)
    return " + ".join(root if count == 1 else f"{root} x{count}" for root, count in counts.items())


def _members(ctx: CompilerContext, ops: list[Operation], names: dict[Operation, str], roots: Sequence[Operation | None]) -> list[MemberRecord]:
    at = max((i for i, op in enumerate(ops) if op in roots), default=len(ops))
    records: list[MemberRecord] = []
    for i, op in enumerate(ops):
        role: Role = "root" if op in roots else ("prologue" if i < at else "epilogue")
        known = ctx.records.fusion_nodes.get(names[op], FusionNodeRecord(kind=kind(op).value))
        records.append(MemberRecord(id=names[op], kind=kind(op).value, role=role, nodes=known.nodes))
    return records


def _sum(values: Iterable[Dim]) -> Dim:
    total: Dim = 0
    for value in values:
        total = add(total, value)
    return total


def _number(dim: Dim) -> int:
    """The upper bound; what stands for an unbounded size is 0, and tables print the symbol instead."""
    return upper_bound(dim) or 0


def _name_decisions(ctx: CompilerContext) -> None:
    """Put the name of the dispatch into the record of every edge that fused."""
    home = {member.id: record.name for record in ctx.records.dispatches for member in record.members}

    def named(decision: Decision) -> Decision:
        return msgspec.structs.replace(decision, dispatch=home.get(decision.producer, "")) if decision.verdict == "fused" else decision

    ctx.records.decisions[:] = [named(decision) for decision in ctx.records.decisions]


EXPORT = RecordDispatchesPass
