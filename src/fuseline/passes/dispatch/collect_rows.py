"""collect-rows: inside executables, an op that picks elements of a table which is evaluated where it is read picks them
of rows that are made whole, where that takes less.

    %y[k, j] = extract %t[%p[k], %q[j]]    =>    %r[k, c] = extract %t[%p[k], c]          a row per k, kept
                                                 %y[k, j] = extract %r[k, %q[j]]

When, and what for, is said in `fusion/collected_rows.py`. The loop `j` is inside of a workgroup then, as `c` is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from fuseline.analysis.indexing_maps import loops_of
from fuseline.analysis.structured import StructuredOp, captured_tensors, is_generic
from fuseline.analysis.walks import scalars_behind
from fuseline.dispatch.executable_entry import entry_of
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, FusedLoops, MemberLoops, Role, members_of
from fuseline.dispatch.loops_attribute import from_attribute, to_attribute
from fuseline.dispatch.member_classes import with_classes
from fuseline.dispatch.view import MEMBERS_ATTRIBUTE, DispatchView
from fuseline.ir.build import Emitter, dims_map, shape_of
from fuseline.ir.context import CompilerContext
from fuseline.ir.fast.build import block_with, region_with
from fuseline.ir.fast.create import create_generic, create_yield
from fuseline.ir.fast.direct import append, insert_before, ops_of, set_operands
from fuseline.ir.flow import DispatchOp, ExecutableOp
from fuseline.ir.functions import functions
from fuseline.ir.provenance import carry
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.collected_rows import CollectedRow, collected_row, is_worth_it


@dataclass(frozen=True)
class CollectRowsPass(ModulePass):
    """Has no options."""

    name = "collect-rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the entry of every executable, and name the members of its calls. Raises FuselineError (E0302) for a
        dispatch whose loops are not those of its body."""
        assert isinstance(ctx, CompilerContext)
        found = {one.sym_name.data: _rewrite(entry_of(one), ctx.target) for one in op.ops if type(one) is ExecutableOp}
        changed = {name: members for name, members in found.items() if members}
        for function in functions(op) if changed else ():
            for call in ops_of(function.body.block):
                if type(call) is DispatchOp and call.executable in changed:
                    _name_members(call, changed[call.executable])


def _rewrite(entry: FuncOp, target: TargetDescription) -> list[int]:
    """Collect rows in one entry function. The members that pick of one then, by the numbers that they have when all
    before them have theirs."""
    attribute = entry.attributes.get(LOOPS_ATTRIBUTE)
    pickers = [op for op in ops_of(entry.body.block) if is_generic(op) and captured_tensors(op)]
    if attribute is None or not pickers:
        return []
    body, shapes, changed = entry.body.block, DispatchView(entry).shapes, list[int]()
    for op in pickers:
        said, number = from_attribute(attribute, shapes.symbols, entry.sym_name.data), members_of(body).index(op)
        row = next(_rows(op, said, members_of(body), DispatchView(entry), target), None)
        if row is not None:
            _collect(row)
            loops = _with_row(said, number, row.lanes)
            attribute = to_attribute(with_classes(loops, body, DispatchView(entry).shapes, entry.sym_name.data))
            entry.attributes[LOOPS_ATTRIBUTE] = attribute
            changed.append(number)
    return changed


def _rows(
    op: linalg.ops.GenericOp,
    said: FusedLoops,
    members: Sequence[Operation],
    view: DispatchView,
    target: TargetDescription,
) -> Iterator[CollectedRow]:
    """The rows that `op`, which all loops of its grid belong to, had better collect."""
    roles = {one: loops.role for one, loops in zip(members, said.members, strict=True)}
    if roles[op] is not Role.PLACED or any(is_generic(one) and StructuredOp(one).reduction for one in members):
        return
    for table in captured_tensors(op):
        makers = set(_makers(table, roles))
        row = collected_row(op, table, makers, view.shapes, target.threads) if makers else None
        if row is not None and is_worth_it(row, makers, view.shapes, target.costs):
            yield row


def _makers(value: SSAValue, roles: dict[Operation, Role]) -> Iterator[Operation]:
    """What is evaluated where it is read to make `value`."""
    if isinstance(value, OpResult) and roles.get(value.op) is Role.INLINED:
        yield value.op
        for operand in (*value.op.operands, *(captured_tensors(value.op) if is_generic(value.op) else ())):
            yield from _makers(operand, roles)


def _with_row(said: FusedLoops, number: int, lanes: int) -> FusedLoops:
    """The loops where a row is made before member `number`, whose loop `lanes` is inside of a workgroup then."""
    mine = said.members[number]
    gone = mine.grid_loops[lanes]

    def left(member: MemberLoops) -> MemberLoops:
        if gone is None or member.arm != mine.arm:
            return member
        kept = [None if at == gone else at for at in member.grid_loops]
        return replace(member, grid_loops=tuple(at - (at > gone) if at is not None else None for at in kept))

    members = [left(member) for member in said.members]
    members.insert(number, members[number])
    grids = [
        tuple(extent for at, extent in enumerate(grid) if arm != mine.arm or at != gone)
        for arm, grid in enumerate(said.grids)
    ]
    along = tuple((member + (member >= number), operand) for member, operand in said.along)
    return replace(said, grids=tuple(grids), members=tuple(members), along=along, classes=())


# the rewriting --------------------------------------------------------------------------------------------------------


def _collect(row: CollectedRow) -> None:
    """Have the body pick its element of a row, which is made by an op before."""
    order = _order(row)
    rows = _made(row, order)
    indices = [row.extract.indices[row.axis] if loop == row.lanes else _index(row, loop) for loop in order]
    set_operands(row.extract, [rows, *indices])


def _order(row: CollectedRow) -> list[int]:
    """The loops of the op as the dimensions of its rows: as in its result, where `lanes` is the last."""
    return [loop for loop in loops_of(StructuredOp(row.op).output_maps[0].results) if loop is not None]


def _index(row: CollectedRow, loop: int) -> SSAValue:
    index = linalg.ops.IndexOp(loop)
    insert_before(index, row.extract)
    return index.result


def _made(row: CollectedRow, order: Sequence[int]) -> SSAValue:
    """The rows, one for each point of the other loops."""
    view, emit = StructuredOp(row.op), Emitter.before(row.op)
    others = [index for axis, index in enumerate(row.extract.indices) if axis != row.axis]
    needed = {scalar for index in others for scalar in scalars_behind(view, index)}
    reads = [i for i, argument in enumerate(view.body.args[: view.input_count]) if argument in needed]
    empty = emit.add(_room(row, order))
    maps = [*(view.input_maps[i] for i in reads), dims_map(view.rank, order)]
    body = region_with(_body(row, reads, needed))
    new = create_generic([view.inputs[i] for i in reads], [empty.results[0]], body, maps, view.iterators)
    emit.add(new)
    carry((row.op,), (empty, new))
    return new.results[0]


def _room(row: CollectedRow, order: Sequence[int]) -> tensor.EmptyOp:
    """Where rows lie: as the result, with the elements of a row in place of the innermost."""
    init = row.op.outputs[0].owner
    assert isinstance(init, tensor.EmptyOp)
    sizes = [*shape_of(init.results[0])[:-1], shape_of(row.extract.tensor)[row.axis]]
    unknown = [at for at, size in enumerate(shape_of(init.results[0])) if size < 0]
    dynamic = [size for size, at in zip(init.dynamic_sizes, unknown, strict=True) if at + 1 < len(order)]
    return tensor.EmptyOp(dynamic, TensorType(row.extract.result.type, sizes))


def _body(row: CollectedRow, reads: Sequence[int], needed: Collection[SSAValue]) -> Block:
    """A body that picks the element of the table whose place in its row the loop `lanes` counts; the other places are
    made as in the body of the op, of its inputs `reads`."""
    extract, arguments = row.extract, StructuredOp(row.op).body.args
    block = block_with([*(arguments[i].type for i in reads), extract.result.type])
    copies = dict[SSAValue, SSAValue](zip((arguments[i] for i in reads), block.args, strict=False))
    for inner in ops_of(StructuredOp(row.op).body):
        if any(result in needed for result in inner.results):
            append(inner.clone(copies), block)
    column = linalg.ops.IndexOp(row.lanes)
    places = [column.result if axis == row.axis else copies.get(i, i) for axis, i in enumerate(extract.indices)]
    picked = tensor.ExtractOp(extract.tensor, places, extract.result.type)
    for op in (column, picked, create_yield([picked.result])):
        append(op, block)
    return block


def _name_members(call: DispatchOp, pickers: Sequence[int]) -> None:
    """Rows have the names of the members that pick of them."""
    names = call.attributes.get(MEMBERS_ATTRIBUTE)
    found = list(names.data) if isinstance(names, ArrayAttr) else []
    for number in pickers if found else ():
        found.insert(number, found[number])
    if found:
        call.attributes[MEMBERS_ATTRIBUTE] = ArrayAttr(found)


EXPORT = CollectRowsPass
