"""canonicalize-executables: what does not change code has one form, so that code that is equal is equal text.

From level `exact` on. In elementwise bodies the operands of commutative ops come in the order of `value_digests`,
constants last, and ops right before the first that needs them; inputs of an op come in the order in which its body
reads them, and arguments of an executable in that of their first readers.

    f(x, b) { ins(x, b): %b + relu(%x) }
    g(x, b) { ins(b, x): relu(%x) + %b }   =>   both { ins(x, b): relu(%x) + %b }
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import linalg
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from fuseline.analysis.structured import StructuredOp, is_generic
from fuseline.dispatch.executable_entry import entry_of
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, members_of
from fuseline.dispatch.loops_attribute import with_operands_moved
from fuseline.ir import flow
from fuseline.ir.build import shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.fast.direct import (
    append,
    body_of,
    detach,
    last_of,
    operands_of,
    ops_of,
    permute_arguments,
    set_operands,
)
from fuseline.ir.fast.nesting import ops_inside
from fuseline.ir.scalar_ops import COMMUTATIVE
from fuseline.passes.dedup.levels import checked, contains
from fuseline.passes.dedup.scalar_operands import calls_of
from fuseline.passes.dedup.value_digests import ValueDigests


@dataclass(frozen=True)
class CanonicalizeExecutablesPass(ModulePass):
    """`level`: one of `levels.LEVELS`."""

    name = "canonicalize-executables"
    level: str = "exact"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Order the body and the arguments of every executable, and the operands of its calls. Raises FuselineError:
        E0304 for an unknown level."""
        del ctx
        if not contains(checked(self.level, self.name), "exact"):
            return
        calls = calls_of(op)
        for executable in (one for one in op.ops if isinstance(one, flow.ExecutableOp)):
            entry = entry_of(executable)
            _order_bodies(entry)
            _order_arguments(entry, calls.get(executable.sym_name.data, ()))


def _order_bodies(entry: FuncOp) -> None:
    members = [op for op in ops_of(body_of(entry)) if is_generic(op) and not StructuredOp(op).reduction]
    digests = ValueDigests(entry) if members else None
    orders: dict[Operation, Sequence[int]] = {}
    for member in members:
        for op in ops_of(body_of(member)):
            if digests is not None and type(op) in COMMUTATIVE:
                _set(op, sorted(operands_of(op), key=digests.of))
        orders[member] = _order_inputs(member, _order_ops(body_of(member)))
    _say_moved(entry, orders)


def _say_moved(entry: FuncOp, orders: Mapping[Operation, Sequence[int]]) -> None:
    """What the loops of the entry say of operands is said of the numbers they have now."""
    said = entry.attributes.get(LOOPS_ATTRIBUTE)
    if isinstance(said, DictionaryAttr):
        numbered = {number: orders[op] for number, op in enumerate(members_of(body_of(entry))) if op in orders}
        entry.attributes[LOOPS_ATTRIBUTE] = with_operands_moved(said, numbered)


def _set(op: Operation, operands: Sequence[SSAValue]) -> None:
    if tuple(operands) != operands_of(op):
        set_operands(op, operands)


def _order_ops(body: Block) -> list[BlockArgument]:
    """Put every op right before the first that needs it; answers the arguments in the order they are read in."""
    end = last_of(body)
    assert end is not None
    ordered: dict[Operation, None] = {}
    read: dict[BlockArgument, None] = {}
    pending: list[Operation] = [end]
    while pending:
        op = pending[-1]
        missing = [source for source in _sources(op, body) if source not in ordered]
        if missing:
            pending += reversed(missing)
            continue
        pending.pop()
        ordered[op] = None
        read.update((value, None) for value in operands_of(op) if isinstance(value, BlockArgument))
    unused = [op for op in ops_of(body) if op not in ordered]
    if [*unused, *ordered] != ops_of(body):
        for op in (*unused, *ordered):
            detach(op)
            append(op, body)
    return list(read)


def _sources(op: Operation, body: Block) -> list[Operation]:
    return [value.op for value in operands_of(op) if isinstance(value, OpResult) and value.op.parent is body]


def _order_inputs(member: linalg.ops.GenericOp, read: Sequence[BlockArgument]) -> Sequence[int]:
    """Let the inputs come in the order in which the body reads them; answers the number that each operand had. Those of
    symbolic sizes stay: sizes that the program only requires to be equal are spelled in several ways, and the first
    one's counts."""
    view = StructuredOp(member)
    count = view.input_count
    met = [argument.index for argument in read if argument.owner is view.body and argument.index < count]
    order = [*met, *(i for i in range(count) if i not in met), *range(count, len(view.maps))]
    if not _is_static(view):
        return range(len(order))
    if order != sorted(order):
        operands, maps = operands_of(member), view.maps
        set_operands(member, [operands[i] for i in order])
        member.properties["indexing_maps"] = attributes.affine_maps(tuple([maps[i] for i in order]))
        permute_arguments(view.body, order)
    return order


def _is_static(view: StructuredOp) -> bool:
    return all(DYNAMIC_INDEX not in _shape(value) for value in operands_of(view.op))


# arguments of executables ---------------------------------------------------------------------------------------------


def _order_arguments(entry: FuncOp, calls: Sequence[flow.DispatchOp]) -> None:
    """Let the tensors come in the order of their first readers, at the calls, too."""
    block = body_of(entry)
    tensors = [argument for argument in block.args if isinstance(argument.type, TensorType)]
    met = {id(value): None for op in ops_inside(entry) for value in operands_of(op)}
    ranks = {identity: rank for rank, identity in enumerate(met)}
    tensors.sort(key=lambda argument: ranks.get(id(argument), len(ranks)))
    order = [*(argument.index for argument in tensors), *range(len(tensors), len(block.args))]
    if order == sorted(order):
        return
    permute_arguments(block, order)
    types = [argument.type for argument in block.args]
    entry.properties["function_type"] = FunctionType.from_lists(types, list(entry.function_type.outputs.data))
    if entry.arg_attrs is not None:
        entry.properties["arg_attrs"] = ArrayAttr([entry.arg_attrs.data[i] for i in order])
    for call in calls:
        _permute_call(call, order)


def _permute_call(call: flow.DispatchOp, order: Sequence[int]) -> None:
    arguments, dims = list(call.arguments), list(call.argument_dims)
    mine = [[dims.pop(0) for size in _shape(value) if size == DYNAMIC_INDEX] for value in arguments]
    moved = [arguments[i] for i in order], [dim for i in order for dim in mine[i]]
    set_operands(call, [*call.workload, *moved[0], *moved[1], *call.result_dims])


def _shape(value: SSAValue) -> Sequence[int]:
    return shape_of(value) if isinstance(value.type, TensorType) else ()


EXPORT = CanonicalizeExecutablesPass
