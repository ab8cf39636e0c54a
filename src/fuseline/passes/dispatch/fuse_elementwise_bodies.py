"""fuse-elementwise-bodies: inside executables, an elementwise op becomes part of the one that alone reads it.

    %a = generic(%x, %bias) { addf }          %b = generic(%x, %bias) { addf, maximumf }
    %b = generic(%a)        { maximumf }  =>

What a dispatch computes, and how often, stays the same, and so do its root, its arms and the loops that its members
share; one op has the source nodes of both. What stays apart, and why, is said in `elementwise_pairs.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from fuseline.analysis.structured import is_generic
from fuseline.dispatch.executable_entry import entry_of
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE
from fuseline.dispatch.loops_attribute import from_attribute, to_attribute
from fuseline.dispatch.merged_members import MergedMembers
from fuseline.dispatch.view import MEMBERS_ATTRIBUTE, DispatchView
from fuseline.ir.fast.direct import erase, operands_of, ops_of
from fuseline.ir.flow import DispatchOp, ExecutableOp
from fuseline.ir.functions import functions
from fuseline.ir.rounds import rounds
from fuseline.passes.cleanup.elimination import is_dead
from fuseline.passes.dispatch.elementwise_pairs import Apart, ElementwisePairs, Generic
from fuseline.passes.dispatch.merged_body import merged


@dataclass(frozen=True)
class FuseElementwiseBodiesPass(ModulePass):
    """Has no options."""

    name = "fuse-elementwise-bodies"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Merge what can be merged in every executable, and name the members of each op at its calls. Raises
        FuselineError (E0302) for a dispatch whose loops are not those of its body."""
        del ctx
        executables = [one for one in op.ops if type(one) is ExecutableOp]
        found = {one.sym_name.data: _merge_all(entry_of(one)) for one in executables}
        changed = {name: groups for name, groups in found.items() if any(len(group) > 1 for group in groups)}
        for function in functions(op) if changed else ():
            for call in ops_of(function.body.block):
                if type(call) is DispatchOp and call.executable in changed:
                    _name_members(call, changed[call.executable])


def _merge_all(entry: FuncOp) -> list[list[int]]:
    """Merge the bodies of one entry function, producers before consumers. Which of its members each op stands for then,
    by number; nothing where it stays as it is."""
    body = entry.body.block
    consumers = [op for op in ops_of(body) if is_generic(op) and any(map(_maker, op.inputs))]
    if not consumers:
        return []
    shapes, members = DispatchView(entry).shapes, MergedMembers(body)
    attribute, node = entry.attributes.get(LOOPS_ATTRIBUTE), entry.sym_name.data
    said = from_attribute(attribute, shapes.symbols, node) if attribute is not None else None
    pairs = ElementwisePairs(shapes, body, said)
    if not sum(_merge_into(op, pairs, members) for op in consumers):
        return []
    if said is not None:
        entry.attributes[LOOPS_ATTRIBUTE] = to_attribute(members.loops(said, shapes, node))
    return members.groups


def _maker(value: SSAValue) -> Generic | None:
    return value.op if isinstance(value, OpResult) and is_generic(value.op) else None


def _merge_into(consumer: Generic, pairs: ElementwisePairs, members: MergedMembers) -> int:
    """Merge into `consumer` what it alone reads, one op after the other; answers how many."""
    for count in rounds("merging bodies", most=len(members.before)):
        found = _next(consumer, pairs)
        if found is None:
            return count
        producer, loops = found
        inits = [init.op for init in producer.outputs if isinstance(init, OpResult)]
        new = merged(producer, consumer, loops)
        pairs.merged(consumer, new)
        members.merged(producer, consumer, new, loops)
        _erase_dead(inits)
        consumer = new
    raise AssertionError("each round leaves one op less")


def _next(consumer: Generic, pairs: ElementwisePairs) -> tuple[Generic, tuple[int, ...]] | None:
    for producer in filter(None, map(_maker, consumer.inputs)):
        loops = pairs.loops(producer, consumer)
        if not isinstance(loops, Apart):
            return producer, loops
    return None


def _erase_dead(ops: Sequence[Operation]) -> None:
    """Erase those that nothing uses, and what only they read."""
    pending = list(ops)
    while pending:
        op = pending.pop()
        if op.parent is not None and is_dead(op):
            pending += [value.op for value in operands_of(op) if isinstance(value, OpResult)]
            erase(op)


def _name_members(call: DispatchOp, groups: Sequence[Sequence[int]]) -> None:
    """Where several members are one op now, their names are a list in the list."""
    names = call.attributes.get(MEMBERS_ATTRIBUTE)
    if isinstance(names, ArrayAttr) and len(names) == sum(map(len, groups)):
        call.attributes[MEMBERS_ATTRIBUTE] = ArrayAttr([_names([names.data[i] for i in group]) for group in groups])


def _names(group: Sequence[Attribute]) -> Attribute:
    return group[0] if len(group) == 1 else ArrayAttr(group)


EXPORT = FuseElementwiseBodiesPass
