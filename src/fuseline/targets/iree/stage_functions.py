"""A cut program as two modules: functions for IREE, and `@main` with calls of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from typing import Any, NamedTuple

from xdsl.dialects import tensor
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IndexType, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim_json import to_name
from fuseline.ir.flow import ExecutableOp
from fuseline.targets.iree.stages import Cut, Stage, cut, is_made_again

PREFIX = "iree."
"""What declarations of stages begin with."""


class StagedProgram(NamedTuple):
    """`native`: the stages with their executables and loops, for IREE. `host`: `@main` with a call of each, the first
    operands of which are still missing (`calls`, by stage)."""

    native: ModuleOp
    host: ModuleOp
    calls: Mapping[str, CallOp]


def staged(module: ModuleOp, ctx: CompilerContext) -> StagedProgram:
    """`module`, which is used up, in stages."""
    main = next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == "main")
    found = cut(module, main)
    shapes = ShapeAnalysis(ctx.symbols)
    sizes = {value: shapes.dims(value) for stage in found.stages for value in stage.outputs}
    dims = {value: ArrayAttr([StringAttr(to_name(dim)) for dim in dims]) for value, dims in sizes.items()}
    functions = [_Function(stage, main).made() for stage in found.stages]
    calls = _rebuilt(found, dims)
    native, host = list[Operation](), list[Operation]()
    for op in list(module.ops):
        op.detach()
        is_function = isinstance(op, FuncOp) and not op.is_declaration and op is not main
        (native if is_function or isinstance(op, ExecutableOp) else host).append(op)
    return StagedProgram(ModuleOp([*functions, *native]), ModuleOp(host), calls)


class _Function:
    """One stage as a function; its ops are moved there."""

    def __init__(self, stage: Stage, main: FuncOp) -> None:
        self.stage, self.main = stage, main
        self.block = Block(arg_types=[value.type for value in stage.inputs])
        self.inside: dict[SSAValue, SSAValue] = dict(zip(stage.inputs, self.block.args, strict=True))
        self.inside |= {value: value for op in stage.ops for value in op.results}

    def made(self) -> FuncOp:
        """The function; `@main` still reads what its ops made."""
        for op in self.stage.ops:
            self._bring(op)
            op.detach()
            self.block.add_op(op)
        self.block.add_op(ReturnOp(*self.stage.outputs))
        types = [value.type for value in self.stage.inputs], [value.type for value in self.stage.outputs]
        function = FuncOp(self.stage.name, types, Region(self.block), "public")
        function.arg_attrs = ArrayAttr([self._said(value) for value in self.stage.inputs])
        return function

    def _bring(self, op: Operation) -> None:
        """Let `op` and what is inside of it read values of the function."""
        for inner in op.walk():
            for position, value in enumerate(inner.operands):
                if not _is_within(value, op):
                    inner.operands[position] = self._value(value)

    def _value(self, value: SSAValue) -> SSAValue:
        """`value` in the function: its own, an argument, or what is made again."""
        if value not in self.inside:
            owner = value.owner
            assert isinstance(owner, Operation) and is_made_again(owner), f"{value} reaches no stage"
            copy = owner.clone()
            for position, operand in enumerate(owner.operands):
                copy.operands[position] = self._value(operand)
            self.block.add_op(copy)
            self.inside |= dict(zip(owner.results, copy.results, strict=True))
        return self.inside[value]

    def _said(self, value: SSAValue) -> DictionaryAttr:
        """What `@main` says of an argument of its own."""
        if not isinstance(value, BlockArgument) or self.main.arg_attrs is None:
            return DictionaryAttr({})
        return self.main.arg_attrs.data[value.index]


def _is_within(value: SSAValue, op: Operation) -> bool:
    """Whether a value is defined in a region of `op`."""
    owner: Any = value.owner
    while owner is not None:
        if owner is op:
            return True
        owner = owner.parent_op() if isinstance(owner, Block | Operation) else None
    return False


def _rebuilt(found: Cut, dims: Mapping[SSAValue, Attribute]) -> dict[str, CallOp]:
    """`@main` of the ops that are kept and of the calls, each behind what it reads; the calls by stage."""
    block = found.main.body.block
    for op in block.ops:
        op.detach()
    makers: dict[SSAValue, Stage] = {value: stage for stage in found.stages for value in stage.outputs}
    values: dict[SSAValue, SSAValue] = {}
    calls: dict[str, CallOp] = {}
    for item in _ordered(found, makers):
        if isinstance(item, Stage):
            calls[item.name] = _call(item, block, values, dims)
            values |= dict(zip(item.outputs, calls[item.name].res, strict=True))
            continue
        for position, value in enumerate(item.operands):
            item.operands[position] = values.get(value, value)
        block.add_op(item)
    return calls


def _ordered(found: Cut, makers: Mapping[SSAValue, Stage]) -> Sequence[Operation | Stage]:
    end = [op for op in found.kept if isinstance(op, ReturnOp)]
    graph: dict[Operation | Stage, list[Any]] = {}
    for op in (op for op in found.kept if op not in end):
        graph[op] = [makers.get(value, value.owner) for value in op.operands]
    for stage in found.stages:
        graph[stage] = [makers.get(value, value.owner) for value in stage.inputs]
    sorter = TopologicalSorter({item: [one for one in before if one in graph] for item, before in graph.items()})
    return [*sorter.static_order(), *end]


def _call(
    stage: Stage, block: Block, values: Mapping[SSAValue, SSAValue], dims: Mapping[SSAValue, Attribute]
) -> CallOp:
    """The call of a stage at the end of `block`; `values` are what the calls before it gave. An index value is handed
    over as a tensor of one element."""
    arguments: list[SSAValue] = []
    for value in [values.get(value, value) for value in stage.inputs]:
        if isinstance(value.type, IndexType):
            boxed = tensor.FromElementsOp.create(operands=[value], result_types=[TensorType(IndexType(), [1])])
            block.add_op(boxed)
            value = boxed.result
        arguments.append(value)
    call = CallOp(f"{PREFIX}{stage.name}", arguments, [value.type for value in stage.outputs])
    call.attributes["fuseline.dims"] = ArrayAttr([dims[value] for value in stage.outputs])
    block.add_op(call)
    return call
