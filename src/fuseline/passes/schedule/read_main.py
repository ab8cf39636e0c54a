"""`@main` after outlining as a schedule: which step reads and writes which memory, each step in a wave of its own, no
transient placed yet.

A view is a free alias of a contiguous buffer, or of a part of one. A result of `@main` lies in its output buffer from
the start, wherever that is possible:

    %r = flow.dispatch ..; %e = expand_shape %r; return %e     =>   the dispatch writes the output
    return %argument, return %constant, return %r twice        =>   one copy step

A concat here is memory: those who make its parts write them there, what is not made by a dispatch is copied
(`program/concat_in_place.py`).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from xdsl.dialects import func, linalg, tensor
from xdsl.dialects.builtin import IndexType, ModuleOp, StringAttr, TensorType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from fuseline import executors
from fuseline.analysis.shapes import ShapeAnalysis, static_numbers
from fuseline.buffers import BufferRef, TensorSpec
from fuseline.errors import FuselineError
from fuseline.ir import dim as d
from fuseline.ir.context import CompilerContext
from fuseline.ir.declared_types import operand_dtypes, result_dtypes
from fuseline.ir.flow import DispatchOp, ExecutableOp, HostType
from fuseline.ir.operand_code import code_of
from fuseline.ir.provenance import node_names, provenance
from fuseline.passes.schedule.insert_steps import insert_steps
from fuseline.passes.schedule.main_border import Described, arguments_of, results_of, spec_of
from fuseline.passes.schedule.main_buffers import MainBuffers, Storage, tensor_type
from fuseline.passes.schedule.main_calls import computes_nothing, entry_size_names, main_function
from fuseline.passes.schedule.place_loops import LoopBody, LoopPlacer
from fuseline.passes.schedule.read_loops import read_loop
from fuseline.program.concat_in_place import ConcatsInPlace
from fuseline.program.fills import is_fill_step, is_insert_step, is_needed
from fuseline.program.schedule import Schedule
from fuseline.program.steps import CopyStep, DispatchStep, FillStep, HostStep, SizesStep, Step, changed, extents_of
from fuseline.scalar_code import ScalarCode
from fuseline.size_requirement import SizeRequirement

Symbols: TypeAlias = Mapping[str, func.FuncOp | ExecutableOp]
"""What the module declares, by name."""


class MainRead(NamedTuple):
    """A program in program order, and the op that each of its steps was read from (None for a copy)."""

    schedule: Schedule
    ops: list[Operation | None]


def read_main(ctx: CompilerContext, module: ModuleOp) -> MainRead:
    """The steps of `@main`. Raises FuselineError (E0305) for an op that is no dispatch, reshape, constant, host call,
    size or tensor of sizes."""
    symbols = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, func.FuncOp | ExecutableOp)}
    storage = Storage(ctx)
    reader = _Reader(main_function(module), symbols, storage, ShapeAnalysis(ctx.symbols), is_body=False).read()
    schedule = Schedule(
        inputs=tuple(reader.inputs),
        outputs=tuple(reader.outputs),
        steps=tuple(changed(step, wave=number) for number, step in enumerate(reader.steps)),
        constants=tuple(storage.constants),
        arena_bytes=0,
        symbols={symbol.name: (symbol.lo, symbol.hi) for symbol in reader.symbols_used()},
        requirements=tuple(ctx.requirements.values()),
        slots=storage.slots,
        transients=tuple(storage.transients),
    )
    return MainRead(schedule, reader.ops)


class _Reader:
    """Reads one function into steps: `@main`, or the body of a loop."""

    def __init__(
        self, function: func.FuncOp, symbols: Symbols, storage: Storage, shapes: ShapeAnalysis, *, is_body: bool
    ) -> None:
        self.main, self.symbols, self.storage, self.shapes, self.is_body = function, symbols, storage, shapes, is_body
        self.buffers = MainBuffers(function.body.block, shapes, storage)
        self.inputs: list[TensorSpec] = []
        self.outputs: list[TensorSpec] = []
        self.steps: list[Step] = []
        self.ops: list[Operation | None] = []
        self.copied_parts: dict[Operation, list[tuple[SSAValue, BufferRef]]] = {}
        self.copied_results: list[tuple[SSAValue, BufferRef]] = []
        self.size_names: dict[tuple[str, str], Sequence[str]] = {}

    def read(self) -> _Reader:
        block = self.main.body.block
        for argument, said in zip(block.args, arguments_of(self.main), strict=True):
            self._argument(argument, said)
        self._outputs(block)
        self._claim_concats(block)
        for op in block.ops:
            self._operation(op)
        self._copy(self.copied_results)
        return self

    def symbols_used(self) -> set[d.Symbol]:
        """Every size that the border or a step speaks of."""
        sizes = [size for spec in (*self.inputs, *self.outputs) for size in spec.dims]
        for step in self.steps:
            sizes += [
                *extents_of(step),
                *(size for operand in (*step.operands, *step.results) for size in operand.dims),
            ]
        return {symbol for size in sizes for symbol in d.symbols(size)}

    def _add(self, step: Step, op: Operation | None) -> None:
        self.steps.append(step)
        self.ops.append(op)

    # borders ----------------------------------------------------------------------------------------------------------

    def _argument(self, argument: BlockArgument, said: Described) -> None:
        default, slot = f"arg{argument.index}", None
        if isinstance(argument.type, HostType):
            slot = self.buffers.ref(argument)
        elif isinstance(argument.type, TensorType):
            self.buffers.put(argument, BufferRef("input", len(self.inputs)))
        elif not isinstance(argument.type, IndexType) or self.is_body:
            return  # a body shares the sizes of the loop's surroundings
        named = default if slot is not None else argument.name_hint or default
        self.inputs.append(spec_of(argument, said, named, self.shapes, slot))

    def _outputs(self, block: Block) -> None:
        """Give each returned value its output buffer, or note a copy for what cannot be computed there."""
        returned = block.last_op.operands if block.last_op is not None else ()
        for index, (value, said) in enumerate(zip(returned, results_of(self.main), strict=False)):
            slot = self.buffers.ref(value) if isinstance(value.type, HostType) else None
            if slot is None:
                self._output(value, BufferRef("output", index))
            self.outputs.append(spec_of(value, said, f"result{index}", self.shapes, slot))

    def _output(self, value: SSAValue, output: BufferRef) -> None:
        tensor_type(value)  # a number is no output
        root = self.buffers.root(value)
        made = isinstance(root.owner, DispatchOp | func.CallOp | tensor.FromElementsOp | tensor.ConcatOp)
        if (made or is_fill_step(root.owner) or is_insert_step(root.owner, self.shapes)) and not self.buffers.has(root):
            self.buffers.put(root, output)
        else:
            self.copied_results.append((value, output))

    # concats ----------------------------------------------------------------------------------------------------------

    def _claim_concats(self, block: Block) -> None:
        """Give the parts of concats their places, those of outer concats first."""
        places = ConcatsInPlace(block, self.shapes)
        found = {op: places.claim(op) for op in block.ops if isinstance(op, tensor.ConcatOp)}
        for op, parts in reversed(found.items()):
            if parts is None:
                hint = "only a concat of contiguous parts can be, and of results of dispatches for the most part"
                raise FuselineError("E0305", f"{op.name} cannot be scheduled", node=node_names(op), hint=hint)
            self.copied_parts[op] = self.buffers.put_parts(op.result, op.inputs, parts)

    def _copy(self, wanted: Sequence[tuple[SSAValue, BufferRef]]) -> None:
        for value, ref in wanted:
            source = self.buffers.operand(value)
            if 0 not in source.dims:
                self._add(CopyStep(source, source._replace(buffer=ref), 0), None)

    # operations -------------------------------------------------------------------------------------------------------

    def _operation(self, op: Operation) -> None:
        if type(op) is DispatchOp:
            self._dispatch(op)
        elif isinstance(op, func.CallOp):
            self._call(op)
        elif isinstance(op, tensor.FromElementsOp):
            self._sizes(op)
        elif isinstance(op, tensor.ConcatOp):
            self._copy(self.copied_parts[op])
        elif is_fill_step(op):
            self._fill(op)
        elif is_insert_step(op, self.shapes):
            self._insert(op)
        elif not computes_nothing(op):
            hint = "every tensor op must be inside a dispatch before scheduling"
            raise FuselineError("E0305", f"{op.name} cannot be scheduled", node=node_names(op), hint=hint)

    def _dispatch(self, op: DispatchOp) -> None:
        arguments = op.arguments
        reads = tuple([self.buffers.operand(value) for value in arguments if isinstance(value.type, TensorType)])
        indices = [self.shapes.index(value) for value in arguments if isinstance(value.type, IndexType)]
        sizes = tuple(zip(self._size_names(op, len(indices)), indices, strict=True))
        writes = tuple([self.buffers.operand(value) for value in op.results])
        self._add(DispatchStep(op.executable, op.entry, reads, writes, sizes, 0, op.entry, provenance(op)), op)

    def _size_names(self, op: DispatchOp, count: int) -> Sequence[str]:
        """The names of the index arguments of what `op` calls, in order."""
        key = op.executable, op.entry
        if key not in self.size_names:
            executable = self.symbols.get(op.executable)
            self.size_names[key] = (
                tuple(entry_size_names(executable, op.entry)) if isinstance(executable, ExecutableOp) else ()
            )
        names = self.size_names[key]
        if len(names) != count:
            raise FuselineError("E0305", f"@{op.entry} takes {len(names)} sizes, its dispatch passes {count}")
        return names

    def _sizes(self, op: tensor.FromElementsOp) -> None:
        target = self.buffers.operand(op.results[0])
        if target.dtype != "int64":
            raise FuselineError("E0305", f"{op.name} of {target.dtype} cannot be scheduled", node=node_names(op))
        self._add(SizesStep(tuple(self.shapes.index(value) for value in op.operands), target, 0), op)

    def _fill(self, op: linalg.ops.FillOp) -> None:
        """A step, unless nobody reads it, or it is small and known: then whoever does reads a constant."""
        (filled,) = op.results
        if is_needed(filled) and self.buffers.ref(filled).segment != "constant":
            self._add(FillStep(self.buffers.element(op.inputs[0]), self.buffers.operand(filled), 0), op)

    def _insert(self, op: tensor.InsertSliceOp) -> None:
        """A fill of its own, and what is put into it."""
        assert is_fill_step(op.dest.owner)
        element = self.buffers.element(op.dest.owner.inputs[0])
        offsets = self.shapes.mixed(static_numbers(op, "static_offsets"), op.offsets)
        for step in insert_steps(self.buffers.operand(op.source), element, self.buffers.operand(op.result), offsets):
            self._add(step, None if isinstance(step, FillStep) else op)

    def _call(self, op: func.CallOp) -> None:
        callee = self.symbols.get(op.callee.root_reference.data)
        shape = read_loop(callee, self.symbols, self.shapes) if isinstance(callee, func.FuncOp) else None
        if shape is None:
            self._host_call(op, callee)
            return
        body = _Reader(shape.step, self.symbols, self.storage, self.shapes, is_body=True).read()
        reads, writes = (
            [self.buffers.operand(value) for value in side if isinstance(value.type, TensorType)]
            for side in (op.arguments, op.res)
        )
        used = [value.first_use is not None for value in op.res]
        loop, copies = LoopPlacer(shape, LoopBody(body.steps, body.outputs), reads, writes, used, self.storage).steps(
            op
        )
        self._add(loop, op)
        for copy in copies:
            self._add(copy, None)
        if (d.lower_bound(shape.trips) or 0) < 1:  # its last iteration makes the results: there must be one
            node = node_names(op) or op.callee.string_value()
            self.storage.ctx.require(SizeRequirement(shape.trips, 1, node, relation="at_least"))

    def _host_call(self, op: func.CallOp, callee: func.FuncOp | ExecutableOp | None) -> None:
        kind, text = (
            callee.attributes.get(f"fuseline.{key}") if callee is not None else None for key in ("host_op", "onnx_node")
        )
        if not isinstance(callee, func.FuncOp) or not isinstance(kind, StringAttr) or not isinstance(text, StringAttr):
            raise FuselineError(
                "E0305",
                f"call of {op.callee.string_value()}, which is no host operator",
                node=node_names(op),
            )
        code = self._operand_code(op, callee)
        given = zip(op.arguments, operand_dtypes(callee), strict=True)
        read = [entry for entry in given if code is None or not isinstance(entry[0].type, IndexType)]
        reads, writes = (
            tuple(self.buffers.operand(value, name) for value, name in side)
            for side in (read, zip(op.res, result_dtypes(callee), strict=True))
        )
        nodes = provenance(op)
        label = ", ".join(nodes) or kind.data
        executor = callee.attributes.get("fuseline.executor")
        name = executor.data if isinstance(executor, StringAttr) else executors.ONNX
        self._add(HostStep(name, base64.b64decode(text.data), reads, writes, 0, label, nodes=nodes, code=code), op)

    def _operand_code(self, op: func.CallOp, callee: func.FuncOp) -> ScalarCode | None:
        """What the step computes of its operands; the index values among them are its sizes."""
        code = code_of(callee)
        indices = [value for value in op.arguments if isinstance(value.type, IndexType)]
        return None if code is None else code._replace(sizes=tuple(self.shapes.index(value) for value in indices))
