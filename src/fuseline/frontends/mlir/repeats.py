"""Loops of `scf` whose end only the run knows, or that are too long to write out: the host repeats a program of what a
trip does.

    %r = scf.for %i = %lb to %ub step %s iter_args(%x = %a) { .. }    =>   func.call @host.For.<n>(%lb, %ub, %s, %a, ..)
    %r = scf.while (%x = %a) { .. scf.condition(%c) %v } do { .. }    =>   func.call @host.While.<n>(%a, ..)

Numbers cross as tensors without dimensions, indices as 64-bit integers. Sizes that a type leaves open are what each
trip makes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from xdsl.dialects import arith, func, scf, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from fuseline.analysis.shapes import DIMS_ATTRIBUTE
from fuseline.frontends.mlir.wrappers import unsupported
from fuseline.ir.build import Emitter
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import symbol
from fuseline.ir.fast.nesting import ops_inside
from fuseline.ir.provenance import node_names
from fuseline.ir.repeat import RepeatNode, declare_repeat
from fuseline.ir.text import print_module
from fuseline.report.records import HostOpRecord

_INLINE_BYTES = 256
"""Constants up to this size stand in the programs of a loop; larger ones are handed in."""

_ALL = 1 << 62


def repeat_on_host(module: ModuleOp, loop: scf.ForOp | scf.WhileOp, ctx: CompilerContext, why: str) -> None:
    """Let the host repeat what `loop` does. Raises FuselineError: E0306 for what no program of its own can do."""
    for op in ops_inside(loop):
        if isinstance(op, func.CallOp):
            raise unsupported(loop, f"a loop on the host calls @{op.callee.string_value()}")
        if isinstance(op, arith.ConstantOp) and not _is_small(op):
            op.detach()
            assert loop.parent is not None
            loop.parent.insert_op_before(op, loop)
    _Repeat(module, loop, ctx).put(why)


def _is_small(op: arith.ConstantOp) -> bool:
    value, type_ = op.value, op.result.type
    if isinstance(value, IntegerAttr | FloatAttr):
        return True
    if not isinstance(value, DenseIntOrFPElementsAttr) or not isinstance(type_, TensorType):
        return False
    return value.is_splat() or len(value.data.data) <= _INLINE_BYTES


class _Repeat:
    def __init__(self, module: ModuleOp, loop: scf.ForOp | scf.WhileOp, ctx: CompilerContext) -> None:
        self.module, self.loop, self.ctx = module, loop, ctx
        self.emit = Emitter.before(loop)
        self.captured = _captured(loop)
        self.kind = "For" if isinstance(loop, scf.ForOp) else "While"

    def put(self, why: str) -> None:
        """Put the call in the loop's place."""
        counted = isinstance(self.loop, scf.ForOp)
        states = list(self.loop.iter_args if isinstance(self.loop, scf.ForOp) else self.loop.arguments)
        node = self._counted(self.loop) if isinstance(self.loop, scf.ForOp) else self._while(self.loop)
        bounds = [self.loop.lb, self.loop.ub, self.loop.step] if isinstance(self.loop, scf.ForOp) else []
        operands = [self._boxed(value) for value in (*bounds, *states, *self.captured)]
        node = RepeatNode({"counted": counted, "states": len(states), **node.header}, node.texts)
        name = self._free_name()
        types = [_boxed_type(value.type) for value in self.loop.results]
        declared = declare_repeat(name, self.kind, node, [value.type for value in operands], types)
        self.module.body.block.add_op(declared)
        call = self.emit.add(func.CallOp(name, operands, types))
        call.location = self.loop.location
        call.attributes[DIMS_ATTRIBUTE] = ArrayAttr([self._sizes(name, i, one) for i, one in enumerate(types)])
        self._record(why)
        Rewriter.replace_op(
            self.loop, [], [self._opened(new, old) for new, old in zip(call.res, self.loop.results, strict=True)]
        )

    def _record(self, why: str) -> None:
        label = node_names(self.loop) or self.loop.name
        self.ctx.records.host_ops.append(HostOpRecord(node=label, op_type=self.kind, reason=why))

    def _free_name(self) -> str:
        names = {op.sym_name.data for op in self.module.ops if isinstance(op, func.FuncOp)}
        return next(name for number in range(len(names) + 1) if (name := f"host.{self.kind}.{number}") not in names)

    def _sizes(self, name: str, number: int, type_: TensorType[Any]) -> ArrayAttr[StringAttr]:
        """The sizes of a result: those that its type leaves open are symbols of their own."""
        sizes: list[StringAttr] = []
        for axis, size in enumerate(type_.get_shape()):
            text = str(size)
            if size == DYNAMIC_INDEX:
                text = f"{name.replace('.', '_').lower()}_{number}_{axis}"
                self.ctx.symbols[text] = symbol(text, 0)
            sizes.append(StringAttr(text))
        return ArrayAttr(sizes)

    # -- values --------------------------------------------------------------------------------------------------------

    def _boxed(self, value: SSAValue) -> SSAValue:
        """A value as a tensor."""
        if isinstance(value.type, TensorType):
            return value
        if isinstance(value.type, IndexType):
            value = self.emit.add(arith.IndexCastOp(value, i64)).result
        type_ = _boxed_type(value.type)
        return self.emit.add(tensor.FromElementsOp.create(operands=[value], result_types=[type_])).result

    def _opened(self, value: SSAValue, like: SSAValue) -> SSAValue:
        """A result as the loop had it."""
        if isinstance(like.type, TensorType):
            return value
        found: SSAValue = self.emit.add(tensor.ExtractOp(value, [], value.type.element_type)).result  # type: ignore[attr-defined]
        if isinstance(like.type, IndexType):
            found = self.emit.add(arith.IndexCastOp(found, like.type)).result
        return found

    # -- programs ------------------------------------------------------------------------------------------------------

    def _counted(self, loop: scf.ForOp) -> RepeatNode:
        block = loop.body.block
        end = block.last_op
        assert end is not None
        text, reads = self._text(block, end.operands)
        return RepeatNode({"reads": {"body": reads}}, {"body": text})

    def _while(self, loop: scf.WhileOp) -> RepeatNode:
        before, after = loop.before_region.block, loop.after_region.block
        asks, end = before.last_op, after.last_op
        if not isinstance(asks, scf.ConditionOp) or end is None:
            raise unsupported(loop, "its first region does not end with scf.condition")
        made = [value for value in asks.operands[1:] if not self._is_slot(value, before)]
        slots = self._slots(before)
        forward = [
            ["slot", slots[value]] if self._is_slot(value, before) else ["value", made.index(value)]
            for value in asks.operands[1:]
        ]
        first, first_reads = self._text(before, [asks.operands[0], *made])
        text, reads = self._text(after, end.operands)
        header = {"reads": {"before": first_reads, "body": reads}, "forward": forward}
        return RepeatNode(header, {"before": first, "body": text})

    def _slots(self, block: Block) -> dict[SSAValue, int]:
        """The numbers of what a program may read."""
        return {value: number for number, value in enumerate((*block.args, *self.captured))}

    def _is_slot(self, value: SSAValue, block: Block) -> bool:
        return value in self._slots(block)

    def _text(self, block: Block, answers: Iterable[SSAValue]) -> tuple[str, list[int]]:
        """A program that computes `answers` of a block, and the numbers of what it reads."""
        answers, slots = list(answers), self._slots(block)
        inside = [op for one in block.ops for op in (one, *ops_inside(one))]
        used = {value for op in inside for value in op.operands} | {*answers}
        read = [value for value in slots if value in used]
        entry = Block(arg_types=[value.type for value in read])
        values: dict[SSAValue, SSAValue] = dict(zip(read, entry.args, strict=True))
        for op in self._constants(inside, answers):
            entry.add_op(op.clone(values))
        for op in list(block.ops)[:-1]:
            copy = op.clone(values)
            copy.location = op.location
            entry.add_op(copy)
        entry.add_op(func.ReturnOp(*(values.get(value, value) for value in answers)))
        types = [value.type for value in read], [value.type for value in answers]
        main = func.FuncOp("main", types, Region(entry))
        main.location = self.loop.location
        module = ModuleOp([main])
        return print_module(module, self.ctx, locations=True, embed_limit=_ALL), [slots[value] for value in read]

    def _constants(self, ops: Sequence[Operation], answers: Sequence[SSAValue]) -> list[Operation]:
        """Small constants from outside that are read."""
        found: dict[Operation, None] = {}
        for value in (*(value for op in ops for value in op.operands), *answers):
            if _is_outside(value, self.loop) and _is_known(value):
                assert isinstance(value.owner, Operation)
                found[value.owner] = None
        return [*found]


def _boxed_type(type_: Attribute) -> TensorType[Any]:
    if isinstance(type_, TensorType):
        return type_
    return TensorType(i64 if isinstance(type_, IndexType) else type_, [])


def _captured(loop: Operation) -> list[SSAValue]:
    """What a loop reads from outside in its regions, each once, small constants aside."""
    found: dict[SSAValue, None] = {}
    for op in ops_inside(loop):
        for value in op.operands:
            if _is_outside(value, loop) and not _is_known(value):
                found[value] = None
    return [*found]


def _is_known(value: SSAValue) -> bool:
    owner = value.owner
    if isinstance(owner, tensor.EmptyOp):
        return not owner.operands
    return isinstance(owner, arith.ConstantOp) and _is_small(owner)


def _is_outside(value: SSAValue, loop: Operation) -> bool:
    """Whether a value is defined outside of `loop`."""
    around: Operation | None = value.owner.parent_op() if isinstance(value, BlockArgument) else value.owner  # type: ignore[union-attr]
    while around is not None:
        if around is loop:
            return False
        around = around.parent_op()
    return True
