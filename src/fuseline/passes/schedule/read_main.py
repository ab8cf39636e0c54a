"""`@main` after outlining as a graph of steps over buffers: which step reads and writes which memory.

A view is a free alias of a contiguous buffer, or of a part of one. A result of `@main` lies in its output buffer from
the start, wherever that is possible:

    %r = flow.dispatch ..; %e = expand_shape %r; return %e     =>   the dispatch writes the output
    return %argument, return %constant, return %r twice        =>   one copy step

A concat here is memory: those who make its parts write them there, what is not made by a dispatch is copied
(`program/concat_places.py`).
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, func, linalg, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    DictionaryAttr,
    IndexType,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from fuseline.analysis.evaluation.constants import dense_array
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.views import is_view, view_offset
from fuseline.errors import FuselineError
from fuseline.ir.build import numpy_dtype
from fuseline.ir.context import CompilerContext, SizeRequirement
from fuseline.ir.dim import Dim, add, lower_bound, mul, product
from fuseline.ir.flow import DispatchOp, ExecutableOp, HostType
from fuseline.ir.provenance import provenance
from fuseline.passes.schedule.main_graph import Buffer, MainGraph, Node, TensorUse, dtype_name, element_bytes
from fuseline.passes.schedule.place_loops import LoopPlacer
from fuseline.passes.schedule.read_loops import read_loop
from fuseline.program.concat_places import ConcatPlaces
from fuseline.program.schedule import INDEX_TYPE, Boundary

Symbols: TypeAlias = Mapping[str, func.FuncOp | ExecutableOp]
"""What the module declares, by name."""

HOST_EXECUTOR = "onnx"
"""Who runs host operators that name nobody else (`fuseline.runtime.host`)."""


def main_function(module: ModuleOp) -> func.FuncOp:
    """The program's function: `@main`, or the only function with a body. Raises FuselineError (E0305) where there is
    neither."""
    bodies = [op for op in module.ops if isinstance(op, func.FuncOp) and len(op.body.blocks) == 1]
    named = [op for op in bodies if op.sym_name.data == "main"] or bodies
    if len(named) != 1:
        raise FuselineError("E0305", "the module has no function @main with one block")
    return named[0]


def read_main(ctx: CompilerContext, module: ModuleOp) -> MainGraph:
    """The graph of `@main`. Raises FuselineError (E0305) for an op that is no dispatch, reshape, constant, host call,
    size or tensor of sizes."""
    symbols = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, func.FuncOp | ExecutableOp)}
    return _Reader(ctx, main_function(module), symbols, MainGraph(shapes=ShapeAnalysis(ctx.symbols))).read()


class _Reader:
    """Reads one function into `graph`: `@main`, or the body of a loop."""

    def __init__(
        self, ctx: CompilerContext, function: func.FuncOp, symbols: Symbols, graph: MainGraph, *, is_body: bool = False
    ) -> None:
        self.ctx, self.main, self.symbols, self.graph, self.is_body = ctx, function, symbols, graph, is_body
        self.buffers: dict[SSAValue, Buffer] = {}
        self.resources: dict[str, int] = {}
        self.aliases: dict[SSAValue, SSAValue] = {}
        self.offsets: dict[SSAValue, Dim] = {}
        self.starts: dict[SSAValue, Dim] = {}
        self.copied_parts: dict[Operation, list[tuple[SSAValue, Dim]]] = {}
        self.copies: list[tuple[SSAValue, Buffer]] = []
        self.size_names: dict[tuple[str, str], Sequence[str]] = {}

    def read(self) -> MainGraph:
        block = self.main.body.block
        for argument in block.args:
            if isinstance(argument.type, TensorType):
                self._input(argument)
            elif (
                isinstance(argument.type, IndexType) and not self.is_body
            ):  # a body shares the sizes of the loop's surroundings
                self._index(argument)
            elif isinstance(argument.type, HostType):
                slot = self._new_slot(argument)
                self.graph.inputs.append(self._held(self.main.arg_attrs, argument.index, f"arg{argument.index}", slot))
        self._find_aliases(block)
        self._outputs(block)
        self._place_concats(block)
        for op in block.ops:
            self._operation(op)
        for source, buffer in self.copies:
            use = self._use(source)
            target = TensorUse(buffer, use.dims, use.dtype)
            self.graph.nodes.append(Node(None, (use,), (target,), label="copy"))
        return self.graph

    # borders ----------------------------------------------------------------------------------------------------------

    def _input(self, argument: BlockArgument) -> None:
        index, name = len(self.graph.inputs), self._input_name(argument)
        dtype = dtype_name(_tensor(argument), _attribute(self.main.arg_attrs, argument.index, "fuseline.dtype"))
        self.graph.inputs.append(Boundary(name, dtype, self.graph.shapes.dims(argument)))
        self.buffers[argument] = Buffer("input", index, 0)

    def _index(self, argument: BlockArgument) -> None:
        """A number that sizes depend on: no memory, only what it is called."""
        self.graph.inputs.append(
            Boundary(self._input_name(argument), "int64", (self.graph.shapes.index(argument),), type=INDEX_TYPE)
        )

    def _input_name(self, argument: BlockArgument) -> str:
        return (
            _attribute(self.main.arg_attrs, argument.index, "fuseline.name")
            or argument.name_hint
            or f"arg{argument.index}"
        )

    def _find_aliases(self, block: Block) -> None:
        for op in block.ops:
            if is_view(op):
                value = op.operands[0]
                self.aliases[op.results[0]] = self._root(value)
                self.offsets[op.results[0]] = add(self.offsets.get(value, 0), view_offset(op))

    def _root(self, value: SSAValue) -> SSAValue:
        return self.aliases.get(value, value)

    def _outputs(self, block: Block) -> None:
        """Give each returned value its output buffer, or note a copy for what cannot be computed there."""
        terminator = block.last_op
        for index, value in enumerate(terminator.operands if terminator is not None else ()):
            if isinstance(value.type, HostType):
                self.graph.outputs.append(self._held(self.main.res_attrs, index, f"result{index}", self._buffer(value)))
                continue
            name = _attribute(self.main.res_attrs, index, "fuseline.name") or f"result{index}"
            dtype = dtype_name(_tensor(value), _attribute(self.main.res_attrs, index, "fuseline.dtype"))
            self.graph.outputs.append(Boundary(name, dtype, self.graph.shapes.dims(value)))
            buffer = Buffer("output", index, 0)
            root = self._root(value)
            if root in self.buffers or not isinstance(
                root.owner, DispatchOp | func.CallOp | tensor.FromElementsOp | tensor.ConcatOp
            ):
                self.copies.append((value, buffer))
            else:
                self.buffers[root] = buffer

    def _place_concats(self, block: Block) -> None:
        """Give the parts of concats their places, those of outer concats first."""
        places = ConcatPlaces(block, self.graph.shapes)
        found = {op: places.claim(op) for op in block.ops if isinstance(op, tensor.ConcatOp)}
        for op, parts in reversed(found.items()):
            if parts is None:
                hint = "only a concat of contiguous parts can be, and of results of dispatches for the most part"
                raise FuselineError(
                    "E0305", f"{op.name} cannot be scheduled", node=", ".join(provenance(op)) or None, hint=hint
                )
            self._place_parts(op, parts)

    def _place_parts(self, op: tensor.ConcatOp, parts: Sequence[SSAValue | None]) -> None:
        """Each part lies behind the one before; `parts` are the values that are computed there, None for those that are
        copied."""
        buffer, start = self._buffer(op.result), self.starts.get(op.result, 0)
        copied = self.copied_parts[op] = list[tuple[SSAValue, Dim]]()
        for part, made in zip(op.inputs, parts, strict=True):
            if made is None:
                copied.append((part, start))
            else:
                self.buffers[made], self.starts[made] = buffer, start
            start = add(start, product(self.graph.shapes.dims(part)))

    def _held(self, attributes: Any, index: int, default: str, slot: Buffer) -> Boundary:
        """The border of a value that is held, as `fuseline.type`, `fuseline.dtype` and `fuseline.dims` describe it."""
        name, type_, dtype = (_attribute(attributes, index, f"fuseline.{key}") for key in ("name", "type", "dtype"))
        dims = tuple(self.graph.shapes.symbol(text) for text in _texts(attributes, index, "fuseline.dims"))
        return Boundary(name or default, dtype or "object", dims, slot.index, type_ or "any")

    def _new_slot(self, value: SSAValue) -> Buffer:
        buffer = self.buffers[value] = Buffer("held", self.graph.slots, 0)
        self.graph.slots += 1
        return buffer

    # operations -------------------------------------------------------------------------------------------------------

    def _operation(self, op: Operation) -> None:
        if type(op) is DispatchOp:
            self._dispatch(op)
        elif isinstance(op, func.CallOp):
            self._call(op)
        elif isinstance(op, tensor.FromElementsOp):
            self._sizes(op)
        elif isinstance(op, tensor.ConcatOp):
            self._copy_parts(op)
        elif not _computes_nothing(op):
            hint = "every tensor op must be inside a dispatch before scheduling"
            raise FuselineError(
                "E0305", f"{op.name} cannot be scheduled", node=", ".join(provenance(op)) or None, hint=hint
            )

    def _dispatch(self, op: DispatchOp) -> None:
        arguments = op.arguments
        reads = tuple([self._use(value) for value in arguments if isinstance(value.type, TensorType)])
        indices = [self.graph.shapes.index(value) for value in arguments if isinstance(value.type, IndexType)]
        sizes = tuple(zip(self._size_names(op, len(indices)), indices, strict=True))
        writes = tuple([self._use(value) for value in op.results])
        self.graph.nodes.append(Node(op, reads, writes, sizes, op.entry, provenance(op)))

    def _size_names(self, op: DispatchOp, count: int) -> Sequence[str]:
        """The names of the index arguments of what `op` calls, in order."""
        key = op.executable, op.entry
        if key not in self.size_names:
            executable = self.symbols.get(op.executable)
            self.size_names[key] = (
                tuple(_entry_size_names(executable, op.entry)) if isinstance(executable, ExecutableOp) else ()
            )
        names = self.size_names[key]
        if len(names) != count:
            raise FuselineError("E0305", f"@{op.entry} takes {len(names)} sizes, its dispatch passes {count}")
        return names

    def _copy_parts(self, op: tensor.ConcatOp) -> None:
        """Copy what is not computed in its place."""
        whole = self._use(op.result)
        for part, start in self.copied_parts[op]:
            source = self._use(part)
            target = TensorUse(whole.buffer, source.dims, source.dtype, mul(start, source.element_bytes))
            self.graph.nodes.append(Node(None, (source,), (target,), label="copy", nodes=provenance(op)))

    def _sizes(self, op: tensor.FromElementsOp) -> None:
        target = self._use(op.results[0])
        if target.dtype != "int64":
            raise FuselineError(
                "E0305", f"{op.name} of {target.dtype} cannot be scheduled", node=", ".join(provenance(op)) or None
            )
        values = tuple((str(i), self.graph.shapes.index(value)) for i, value in enumerate(op.operands))
        self.graph.nodes.append(Node(op, (), (target,), values, "sizes", provenance(op)))

    def _call(self, op: func.CallOp) -> None:
        callee = self.symbols.get(op.callee.root_reference.data)
        shape = read_loop(callee, self.symbols, self.graph.shapes) if isinstance(callee, func.FuncOp) else None
        if shape is None:
            self._host_call(op, callee)
            return
        body = MainGraph(constants=self.graph.constants, shapes=self.graph.shapes)
        reader = _Reader(self.ctx, shape.step, self.symbols, body, is_body=True)
        reader.resources = self.resources
        reader.read()
        reads, writes = (
            [self._use(value) for value in side if isinstance(value.type, TensorType)]
            for side in (op.arguments, op.res)
        )
        used = [value.first_use is not None for value in op.res]
        self.graph.nodes += LoopPlacer(shape, body, reads, writes, used).nodes(op)
        if (lower_bound(shape.trips) or 0) < 1:  # its last iteration makes the results: there must be one
            self.ctx.require(
                SizeRequirement(shape.trips, 1, ", ".join(provenance(op)) or op.callee.string_value(), at_least=True)
            )

    def _host_call(self, op: func.CallOp, callee: func.FuncOp | ExecutableOp | None) -> None:
        kind, text = (
            callee.attributes.get(f"fuseline.{key}") if callee is not None else None for key in ("host_op", "onnx_node")
        )
        if not isinstance(callee, func.FuncOp) or not isinstance(kind, StringAttr) or not isinstance(text, StringAttr):
            raise FuselineError(
                "E0305",
                f"call of {op.callee.string_value()}, which is no host operator",
                node=", ".join(provenance(op)) or None,
            )
        reads = tuple(
            self._use(v, _attribute(callee.arg_attrs, i, "fuseline.dtype")) for i, v in enumerate(op.arguments)
        )
        writes = tuple(self._use(v, _attribute(callee.res_attrs, i, "fuseline.dtype")) for i, v in enumerate(op.res))
        nodes = provenance(op)
        label = ", ".join(nodes) or kind.data
        executor = callee.attributes.get("fuseline.executor")
        name = executor.data if isinstance(executor, StringAttr) else HOST_EXECUTOR
        self.graph.nodes.append(Node(op, reads, writes, (), label, nodes, (name, base64.b64decode(text.data))))

    def _use(self, value: SSAValue, dtype: str | None = None) -> TensorUse:
        if isinstance(value.type, HostType):
            return TensorUse(self._buffer(value), (), "object")
        if isinstance(
            value.type, IndexType
        ):  # a number that a host operator tells: from there on a size like any other
            return TensorUse(self._new_slot(value), (self.graph.shapes.index(value),), "object")
        name = dtype_name(_tensor(value), dtype)
        offset = mul(add(self.starts.get(self._root(value), 0), self.offsets.get(value, 0)), element_bytes(name))
        return TensorUse(self._buffer(value), self.graph.shapes.dims(value), name, offset)

    def _buffer(self, value: SSAValue) -> Buffer:
        root = self._root(value)
        found = self.buffers.get(root)
        if found is None:
            found = self.buffers[root] = self._new_buffer(root)
        return found

    def _new_buffer(self, root: SSAValue) -> Buffer:
        if isinstance(root.type, HostType):
            return self._new_slot(root)
        if isinstance(root.owner, arith.ConstantOp):
            return self._constant(root.owner)
        if isinstance(root.owner, linalg.ops.FillOp):
            return self._filled(root.owner)
        size = mul(product(self.graph.shapes.dims(root)), element_bytes(dtype_name(_tensor(root))))
        return Buffer("arena", 0, size)

    def _constant(self, op: arith.ConstantOp) -> Buffer:
        value = op.value
        if isinstance(value, DenseResourceAttr):
            name = value.resource_handle.data
            if name not in self.resources:
                self.resources[name] = len(self.graph.constants)
                self.graph.constants.append(self._resource(name, op))
            return Buffer("constant", self.resources[name], 0)
        assert isinstance(value, DenseIntOrFPElementsAttr)
        array = np.ascontiguousarray(dense_array(value), np.dtype(dtype_name(_tensor(op.result))))
        self.graph.constants.append(array)
        return Buffer("constant", len(self.graph.constants) - 1, 0)

    def _filled(self, op: linalg.ops.FillOp) -> Buffer:
        """A fill that no dispatch took: one constant, as its sizes are fixed."""
        type_ = _tensor(op.results[0])
        value: Any = op.inputs[0].owner.value  # pyright: ignore[reportAttributeAccessIssue]
        self.graph.constants.append(np.full(type_.get_shape(), value.value.data, numpy_dtype(type_.get_element_type())))
        return Buffer("constant", len(self.graph.constants) - 1, 0)

    def _resource(self, name: str, op: Operation) -> NDArray[Any]:
        array = self.ctx.resources.get(name)
        if array is None:
            raise FuselineError("E0305", f"no data for dense_resource<{name}>", node=", ".join(provenance(op)) or None)
        return array


def _computes_nothing(op: Operation) -> bool:
    """Whether the op needs no step: views, constants, empties, the return, and index arithmetic, which sizes already
    express."""
    if isinstance(op, linalg.ops.FillOp):
        return (
            isinstance(op.inputs[0].owner, arith.ConstantOp) and DYNAMIC_INDEX not in _tensor(op.results[0]).get_shape()
        )
    if is_view(op) or isinstance(op, arith.ConstantOp | tensor.EmptyOp | tensor.DimOp | func.ReturnOp):
        return True
    return not any(isinstance(value.type, TensorType) for value in (*op.operands, *op.results))


def _tensor(value: SSAValue) -> TensorType[Attribute]:
    if not isinstance(value.type, TensorType):
        raise FuselineError(
            "E0305", f"a value of type {value.type} cannot be scheduled", hint="programs pass tensors and sizes only"
        )
    return value.type


def _attribute(attributes: Any, index: int, name: str) -> str | None:
    """A text attribute of argument or result `index`."""
    if attributes is None or index >= len(attributes.data):
        return None
    entry = attributes.data[index]
    found = entry.data.get(name) if isinstance(entry, DictionaryAttr) else None
    return found.data if isinstance(found, StringAttr) else None


def _texts(attributes: Any, index: int, name: str) -> list[str]:
    """A list of texts, attribute `name` of argument or result `index`."""
    entry = attributes.data[index] if attributes is not None and index < len(attributes.data) else None
    found = entry.data.get(name) if isinstance(entry, DictionaryAttr) else None
    return [item.data for item in found.data if isinstance(item, StringAttr)] if isinstance(found, ArrayAttr) else []


def _entry_size_names(executable: ExecutableOp, entry: str) -> Iterator[str]:
    for function in executable.body.walk():
        if isinstance(function, func.FuncOp) and function.sym_name.data == entry:
            for argument in function.body.block.args:
                if isinstance(argument.type, IndexType):
                    yield _attribute(function.arg_attrs, argument.index, "fuseline.name") or f"arg{argument.index}"
