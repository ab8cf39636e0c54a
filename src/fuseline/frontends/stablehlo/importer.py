"""Walks a StableHLO program and lowers every op, in order. Calls have been put in place of themselves (`calls.py`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, NameLoc, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.assumptions import Assumptions
from fuseline.frontends.onnx.constant_nodes import settled
from fuseline.frontends.onnx.dtypes import mlir_element
from fuseline.frontends.onnx.host_ops import HostOps
from fuseline.frontends.onnx.host_values import Value
from fuseline.frontends.onnx.main_arguments import with_dtype
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.node_importer import Frame
from fuseline.frontends.onnx.program import Program
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.frontends.stablehlo.fold_sizes import folded
from fuseline.frontends.stablehlo.hlo import OPSET, Hlo, Scope
from fuseline.frontends.stablehlo.labels import Labels
from fuseline.frontends.stablehlo.registry import lowering_of
from fuseline.frontends.stablehlo.types import UnreadableTypeError, tensor_type_of
from fuseline.ir.build import Emitter, tensor_type
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Dim, symbol, to_text
from fuseline.ir.dim_json import to_name
from fuseline.ir.hlo.ops import HloOp, HloReturnOp
from fuseline.ir.provenance import provenance
from fuseline.ir.text import text_location

_NO_NAME = re.compile(r"\W")
_MALFORMED = (IndexError, KeyError, TypeError, ValueError, AttributeError, AssertionError)
"""What lowerings let escape on an op without the operands, attributes or regions that it must have."""


class Importer:
    """One import. `functions` are those of loops; `host` is there for the ONNX frontend's helpers and stays empty."""

    def __init__(self, ctx: CompilerContext) -> None:
        self.ctx = ctx
        self.program = Program(ctx)
        self.assumptions = Assumptions({})
        self.host = HostOps(self.program, ctx)
        self.functions: list[FuncOp] = []
        self.labels = Labels()

    def run(self, main: FuncOp) -> ModuleOp:
        """The program of `main`. Raises FuselineError: E0306 for what has no form here, E0107 for sizes that do not
        fit."""
        attributes: list[dict[str, Attribute]] = []
        scope = Scope(self.program)
        names = argument_names(main)
        for argument, name in zip(main.args, names, strict=True):
            scope.values[argument] = self._argument(argument, name, main, attributes)
        outputs = self.block(main.body.block, scope)
        results = self._results(main, outputs)
        block = self.program.block
        types = ([argument.type for argument in block.args], [value.type for value in results[0]])
        function = FuncOp(
            "main",
            types,
            Region(block),
            arg_attrs=ArrayAttr([DictionaryAttr(item) for item in attributes]),
            res_attrs=ArrayAttr([DictionaryAttr(item) for item in results[1]]),
        )
        self._record_eliminated(function)
        return ModuleOp([function, *self.host.declarations, *self.functions])

    def inline(self, graph: ir.Graph, around: Frame) -> list[Value]:
        """The ONNX frontend's helpers meet no subgraphs here."""
        raise AssertionError(f"a subgraph {graph.name} in {around.label}")

    # -- borders -------------------------------------------------------------------------------------------------------

    def _argument(
        self, argument: BlockArgument, name: str, main: FuncOp, attributes: list[dict[str, Attribute]]
    ) -> Tensor:
        try:
            dtype, shape = tensor_type_of(argument.type)
        except UnreadableTypeError as error:
            raise FuselineError("E0306", f"argument {name}: {error}", node=text_location(main.location)) from error
        dims = tuple(size if size >= 0 else self._size(f"{name}_{axis}") for axis, size in enumerate(shape))
        value = self.program.block.insert_arg(tensor_type(mlir_element(dtype), dims), len(self.program.block.args))
        self.program.bind_symbols(value, dims)
        about: dict[str, Attribute] = {"fuseline.name": StringAttr(name)}
        if min(shape, default=0) < 0:
            about["fuseline.dims"] = ArrayAttr([StringAttr(to_name(dim)) for dim in dims])
        attributes.append(with_dtype(about, dtype))
        return Tensor(dtype, dims, value=value, name=name)

    def _size(self, stem: str) -> Dim:
        plain = _NO_NAME.sub("_", stem)
        name = plain
        while name in self.ctx.symbols:
            name += "_"
        self.ctx.symbols[name] = out = symbol(name)
        self.ctx.made_up_sizes.add(name)
        return out

    def _results(self, main: FuncOp, outputs: Sequence[Tensor]) -> tuple[list[SSAValue], list[dict[str, Attribute]]]:
        emit = Emitter.at_end(self.program.block)
        values = [self.program.ssa(t, emit) for t in outputs]
        emit.add(ReturnOp(*values))
        names = result_names(main, len(outputs))
        about = [with_dtype({"fuseline.name": StringAttr(n)}, t.dtype) for n, t in zip(names, outputs, strict=True)]
        return values, about

    def _record_eliminated(self, main: FuncOp) -> None:
        """Ops that left none behind: arithmetic on sizes, views, constants."""
        functions = [main, *self.functions]
        present = {node for function in functions for op in function.body.block.ops for node in provenance(op)}
        for node in self.ctx.records.source_nodes:
            if node not in present:
                self.ctx.records.eliminated.setdefault(node, "read-stablehlo")

    # -- ops -----------------------------------------------------------------------------------------------------------

    def block(self, block: Block, scope: Scope) -> list[Tensor]:
        """The operands of the block's last op, all before it lowered."""
        last = self.ops(block, scope)
        return [self.value(operand, scope, last) for operand in last.operands]

    def ops(self, block: Block, scope: Scope) -> Operation:
        """Lower all ops but the last, which is the answer. Raises FuselineError (E0302) for a block that returns
        nothing."""
        for op in block.ops:
            if isinstance(op, ReturnOp | HloReturnOp):
                return op
            found = scope.given.get(op)
            if found is None:
                self._op(op, scope)
            else:
                scope.values.update(zip(op.results, found, strict=False))
        raise FuselineError("E0302", "a block returns nothing")

    def value(self, value: SSAValue, scope: Scope, op: Operation) -> Tensor:
        """The tensor of a value. Raises FuselineError (E0306) for one that is no tensor."""
        found = scope.values.get(value)
        if found is None:
            raise FuselineError("E0306", f"{op.name}: reads a value that is no tensor", node=text_location(op.location))
        return found

    def _op(self, op: Operation, scope: Scope) -> None:
        lowering = lowering_of(op.name) if isinstance(op, HloOp) else None
        if lowering is None or not isinstance(op, HloOp):
            hint = "docs/mlir.md lists what is read"
            raise FuselineError("E0306", f"{op.name} is not read", node=text_location(op.location), hint=hint)
        label = self.labels.of(op)
        if op.name != "stablehlo.constant":
            self.ctx.records.source_nodes.append(label)
        hlo: Hlo | None = None
        try:
            inputs = [] if _ignores_operands(op) else [self.value(operand, scope, op) for operand in op.operands]
            hlo = Hlo(self, op, inputs, scope, label, self._node(op, label, inputs, scope.program))
            outputs = self._lowered(hlo, lowering)
        except (NoNativeLowering, UnreadableTypeError) as error:
            why = error.detail if isinstance(error, NoNativeLowering) else str(error)
            raise FuselineError("E0306", f"{op.name}: {why}", node=text_location(op.location) or label) from error
        except _MALFORMED as error:
            why = f"it has not the operands, attributes or regions of such an op ({type(error).__name__}: {error})"
            raise FuselineError("E0302", f"{op.name}: {why}", node=text_location(op.location) or label) from error
        except FuselineError as error:
            if error.node is None and hlo is not None:
                raise FuselineError(error.code, error.message, node=hlo.location, hint=error.hint) from error
            raise
        scope.values.update(zip(op.results, outputs, strict=False))

    def _node(self, op: HloOp, label: str, inputs: Sequence[Tensor], program: Program) -> OnnxNode:
        source = ir.Node("", op.name.rpartition(".")[2].capitalize(), [], num_outputs=1)
        return OnnxNode(self, program, source, label, list(inputs), {}, OPSET, (label,))

    def _lowered(self, hlo: Hlo, lowering: Any) -> Sequence[Tensor]:
        known = folded(hlo)
        if known is not None:
            return [known]
        mark = hlo.program.mark()
        found = lowering(hlo)
        outputs: list[Tensor] = [found] if isinstance(found, Tensor) else list(found)
        if not hlo.op.regions and not any(t.base is not None and t.value is None for t in outputs):
            outputs = [t for t in settled(hlo.node, outputs, mark) if isinstance(t, Tensor)]
        return [_as_declared(hlo, t, number) for number, t in enumerate(outputs)]


def _as_declared(hlo: Hlo, t: Tensor, number: int) -> Tensor:
    """A result with the sizes that its type says. Raises FuselineError (E0302) for one of another type."""
    if number >= len(hlo.op.results):
        raise FuselineError("E0302", f"{hlo.op.name} has {len(hlo.op.results)} results", node=hlo.location)
    dtype, shape = hlo.dtype(number), hlo.shape(number)
    sizes = zip(shape, t.dims, strict=False)
    if t.dtype != dtype or len(shape) != t.rank or any(a != b for a, b in sizes if a >= 0 and isinstance(b, int)):
        found = "x".join([*map(to_text, t.dims), t.dtype.name])
        why = f"result {number} is {found}, its type says {hlo.op.results[number].type}"
        raise FuselineError("E0302", f"{hlo.op.name}: {why}", node=hlo.location)
    return hlo.with_dims(t, hlo.dims(t.dims, number))


def _ignores_operands(op: HloOp) -> bool:
    """Whether operands need be no tensors: tokens."""
    return op.name in ("stablehlo.after_all", "stablehlo.create_token")


def argument_names(main: FuncOp) -> list[str]:
    """What the arguments are called: by the source where it says so of all of them, each differently; else as in the
    text."""
    named = [argument.location.desc.data if isinstance(argument.location, NameLoc) else "" for argument in main.args]
    if all(named) and len(set(named)) == len(named):
        return named
    return [argument.name_hint or f"arg{number}" for number, argument in enumerate(main.args)]


def result_names(main: FuncOp, count: int) -> list[str]:
    """What the results are called: `jax.result_info` where each has another one, else by their number."""
    about = main.res_attrs.data if main.res_attrs is not None else ()
    infos = [item.data.get("jax.result_info") for item in about]
    texts = [info.data for info in infos if isinstance(info, StringAttr)]
    if len(texts) == count and all(texts) and len(set(texts)) == count:
        return texts
    return [f"out{number}" for number in range(count)]
