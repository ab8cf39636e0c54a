"""record-dispatches: write down every dispatch of the program, with its members, work and traffic. Changes nothing in
the IR."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from fuseline.analysis.cost import flops, num_bytes
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind, splat_value
from fuseline.dispatch.arms import Subgrid, subgrids
from fuseline.dispatch.executable_entry import entry_of
from fuseline.dispatch.naming import shape_label, what_it_does
from fuseline.dispatch.view import MEMBERS_ATTRIBUTE, DispatchView, root_of
from fuseline.dispatch.work import work_of
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Dim, sum_of, to_text, upper_bound
from fuseline.ir.flow import DispatchOp, ExecutableOp
from fuseline.ir.functions import functions
from fuseline.ir.provenance import provenance
from fuseline.ir.target_description import TargetDescription
from fuseline.ir.work_costs import predicted_ns, share_of
from fuseline.report.records import (
    ArmRecord,
    Decision,
    DispatchRecord,
    FusionNodeRecord,
    MemberRecord,
    SharingDecision,
)

Role = Literal["root", "prologue", "epilogue", "member"]

_TRAFFIC = ("constant_bytes", "bytes", "constant_far", "far", "vector_bytes", "vector_far")
"""Kinds of work that say nothing of whether there is enough of it for several threads."""


@dataclass(frozen=True)
class RecordDispatchesPass(ModulePass):
    """Has no options."""

    name = "record-dispatches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Write `ctx.records.dispatches` anew, and the names of the dispatches into the decisions."""
        assert isinstance(ctx, CompilerContext)
        codes = {
            exe.sym_name.data: _Code.of(DispatchView(entry_of(exe)), ctx.target)
            for exe in op.ops
            if isinstance(exe, ExecutableOp)
        }
        ctx.records.dispatches.clear()
        ctx.records.generic_ops_after = 0
        found = list(functions(op))
        for function in found:
            _record_function(ctx, function, codes)
        for function in found:
            _record_undispatched(ctx, function)
        _name_decisions(ctx)
        _record_compared(ctx, found)


def _record_compared(ctx: CompilerContext, bodies: Sequence[FuncOp]) -> None:
    """What was found about dispatches that look alike, by their names; whether they share code the target decides."""
    calls = [op for function in bodies for op in function.body.block.ops if isinstance(op, DispatchOp)]
    names = {call: record.name for call, record in zip(calls, ctx.records.dispatches, strict=True)}
    if not ctx.compared:  # a text that was emitted may say what was found
        known = {*names.values()}
        ctx.records.sharing[:] = [one for one in ctx.records.sharing if {one.first, one.second} <= known]
        return
    found = [(names[one.first], names[one.second], one) for one in ctx.compared if {one.first, one.second} <= {*names}]
    ctx.records.sharing[:] = [
        SharingDecision(verdict="apart", first=first, second=second, code=one.code, detail=one.detail, ns=one.ns)
        for first, second, one in found
    ]


def _record_function(ctx: CompilerContext, function: FuncOp, codes: dict[str, _Code]) -> None:
    shapes = ShapeAnalysis(ctx.symbols)
    for call in function.body.block.ops:
        if isinstance(call, DispatchOp):
            number = len(ctx.records.dispatches)
            ctx.records.generic_ops_after += codes[call.executable].generics
            ctx.records.dispatches.append(_record(ctx, call, codes[call.executable], shapes, number))


def _record_undispatched(ctx: CompilerContext, function: FuncOp) -> None:
    """Source nodes whose ops need no dispatch: constants, and reshapes that only rename the dimensions of a buffer."""
    placed = {node for dispatch in ctx.records.dispatches for member in dispatch.members for node in member.nodes}
    placed |= {host.node for host in ctx.records.host_ops}
    for op in function.body.block.ops:
        for node in provenance(op):
            if node not in placed:
                ctx.records.eliminated.setdefault(node, "outline-executables")


@dataclass(frozen=True)
class _Code:
    """What is the same for every dispatch of one executable. Members are numbered; `arms` are the kind of the root and
    the members of each."""

    kinds: tuple[str, ...]
    does: str
    root: str
    roots: frozenset[int]
    arms: tuple[tuple[str, tuple[int, ...]], ...]
    loops: tuple[str, ...]
    flops: int
    work: dict[str, float]
    generics: int

    @classmethod
    def of(cls, view: DispatchView, target: TargetDescription) -> _Code:
        """The facts of one executable's code."""
        grids = subgrids(view)
        members = [op for op in view.members if kind(op) is not Kind.RESHAPE]
        at = {op: i for i, op in enumerate(members)}
        mine = [[op for op in subgrid.members if op in at] for subgrid in grids]
        roots = [root_of(ops) for ops in mine]
        root = view.root if len(grids) == 1 else roots[0]  # the dearest arm's
        extents = StructuredOp(root).loops(view.shapes) if is_generic(root) else ()
        arms = [_arm(subgrid, ops, at) for subgrid, ops in zip(grids, mine, strict=True)] if len(grids) > 1 else []
        return cls(
            kinds=tuple(kind(op).value for op in members),
            does=what_it_does(mine[0] if arms and root is not None else members, root),
            root=kind(root).value if root is not None else "",
            roots=frozenset(at[op] for op in roots if op is not None and op in at),
            arms=tuple(arms),
            loops=tuple(to_text(extent) for extent in extents),
            flops=_number(sum_of(flops(op, view.shapes) for op in members)),
            work=work_of(view, target),
            generics=sum(map(is_generic, members)),
        )


def _arm(subgrid: Subgrid, members: list[Operation], at: dict[Operation, int]) -> tuple[str, tuple[int, ...]]:
    root = root_of(members)
    stored = "fill" if splat_value(subgrid.outputs[0].value) is not None else "copy"
    return kind(root).value if root is not None else stored, tuple(at[op] for op in members)


def _record(ctx: CompilerContext, call: DispatchOp, code: _Code, shapes: ShapeAnalysis, number: int) -> DispatchRecord:
    names = _names(call, code)
    read = _number(sum_of(num_bytes(value, shapes) for value in dict.fromkeys(call.arguments)))
    written = _number(sum_of(num_bytes(value, shapes) for value in call.res))
    share = _share(ctx.target, code)
    return DispatchRecord(
        name=f"{number:03d}_{_told(ctx, code, names)}",
        shape=shape_label(call.res[0], shapes) if call.res else "",
        executable=call.executable,
        root=_label(code) if code.arms else code.root,
        members=_members(ctx, code, names),
        loops=code.loops,
        flops=code.flops,
        bytes_read=read,
        bytes_written=written,
        arms=[
            ArmRecord(root=root, members=tuple(name for i in members for name in names[i]))
            for root, members in code.arms
        ],
        work=code.work,
        share=share,
        predicted_ns=round(predicted_ns(code.work, ctx.target.work_costs, share)),
    )


def _share(target: TargetDescription, code: _Code) -> float:
    """What of a dispatch its busiest thread is taken to do, before there is a kernel that says so."""
    computed = sum(amount for kind, amount in code.work.items() if kind not in _TRAFFIC)
    return share_of(target.threads if computed > 2 * target.costs.serial_elements else 1, None)


def _told(ctx: CompilerContext, code: _Code, names: Sequence[Sequence[str]]) -> str:
    """What a dispatch does: where its root is made in one walk and not as it is written, that."""
    known = (ctx.records.fusion_nodes.get(name) for i in sorted(code.roots, reverse=True) for name in names[i])
    idiom = next((node.idiom for node in known if node is not None and node.idiom), "")
    return idiom if idiom and not code.arms and code.does == Kind.REDUCTION.value else code.does


def _names(call: DispatchOp, code: _Code) -> list[tuple[str, ...]]:
    """The fusion graph's ids of each member, several where that stands for several; its kind where the dispatch was not
    formed by fusion."""
    attribute = call.attributes.get(MEMBERS_ATTRIBUTE)
    names = [_ids(name) for name in attribute] if isinstance(attribute, ArrayAttr) else []
    return names if len(names) == len(code.kinds) else [(one,) for one in code.kinds]


def _ids(attribute: Attribute) -> tuple[str, ...]:
    named = attribute if isinstance(attribute, ArrayAttr) else (attribute,)
    return tuple(name.data for name in named if isinstance(name, StringAttr))


def _label(code: _Code) -> str:
    counts = Counter(root for root, _ in code.arms)
    return " + ".join(root if count == 1 else f"{root} x{count}" for root, count in counts.items())


def _members(ctx: CompilerContext, code: _Code, names: Sequence[Sequence[str]]) -> list[MemberRecord]:
    last = max(code.roots, default=len(names))
    records: list[MemberRecord] = []
    for i, (ids, what) in enumerate(zip(names, code.kinds, strict=True)):
        for number, name in enumerate(ids, 1):
            is_root = i in code.roots and number == len(ids)
            role: Role = "root" if is_root else ("prologue" if i <= last else "epilogue")
            known = ctx.records.fusion_nodes.get(name, FusionNodeRecord(kind=what))
            records.append(MemberRecord(id=name, kind=what, role=role, nodes=known.nodes))
    return records


def _number(dim: Dim) -> int:
    """The upper bound; what stands for an unbounded size is 0, and tables print the symbol instead."""
    return upper_bound(dim) or 0


def _name_decisions(ctx: CompilerContext) -> None:
    """Put the name of the dispatch into the record of every edge that fused."""
    home = {member.id: record.name for record in ctx.records.dispatches for member in record.members}

    def named(decision: Decision) -> Decision:
        return (
            msgspec.structs.replace(decision, dispatch=home.get(decision.producer, ""))
            if decision.verdict == "fused"
            else decision
        )

    ctx.records.decisions[:] = [named(decision) for decision in ctx.records.decisions]


EXPORT = RecordDispatchesPass
