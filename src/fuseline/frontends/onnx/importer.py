"""Walks a model's nodes in order and appends what each lowers to.

    node ──fold──> known sizes       ──lowering──> structured ops      ──function body──> its nodes in turn      ──host op──> func.call
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import onnx
import onnx_ir as ir
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, Region

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import dtypes, folding, functions, host
from fuseline.frontends.onnx.model_file import LoadedModel
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.program import Program
from fuseline.frontends.onnx.registry import lowering_of
from fuseline.frontends.onnx.sizes import InputSizes, ShapeOption, graph_inputs
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known
from fuseline.ir.build import DYNAMIC_INDEX, shape_of, tensor_type
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import to_text
from fuseline.ir.provenance import nodes_in
from fuseline.report.records import HostOpRecord

ELIMINATED_BY = "read-onnx"


@dataclass(frozen=True)
class Scope:
    """Where nodes are read from: operator sets, attributes bound by the calling node, and the source node all ops count for."""

    opsets: Mapping[str, int]
    attributes: Mapping[str, ir.Attr] = field(default_factory=dict[str, ir.Attr])
    label: str | None = None
    inside_function: bool = False


class Importer:
    """Translates one model; see `import_model`."""

    def __init__(self, loaded: LoadedModel, ctx: CompilerContext) -> None:
        self.loaded, self.ctx = loaded, ctx
        self.program = Program(ctx)
        self.environment: dict[ir.Value, Tensor | None] = {}
        self.problems: list[FuselineError] = []
        self.host_declarations: list[Operation] = []
        self._labels: set[str] = set()

    # -- the whole -------------------------------------------------------------------------------------------------------------

    def run(self, shapes: Mapping[str, ShapeOption]) -> ModuleOp:
        """The module; raises FuselineError for all that is unsupported at once."""
        graph = self.loaded.model.graph
        arguments = self._arguments(graph_inputs(graph), shapes)
        self.import_nodes(graph, Scope(self.loaded.opsets))
        results = self._results(graph.outputs)
        self._raise_problems()
        function = self._function(arguments, graph.outputs, results)
        self._record_eliminated()
        return ModuleOp([*self.host_declarations, function])

    def _arguments(self, inputs: Sequence[ir.Value], shapes: Mapping[str, ShapeOption]) -> list[tuple[ir.Value, Tensor]]:
        sizes = InputSizes(inputs, shapes)
        arguments: list[tuple[ir.Value, Tensor]] = []
        for value in inputs:
            if not isinstance(value.type, ir.TensorType) or not dtypes.holds(value.dtype):
                self.problems.append(FuselineError("E0106", f"input of type {value.type} cannot be a tensor here", node=value.name))
                self.environment[value] = None
                continue
            dtype = dtypes.from_onnx(value.type.dtype)
            dims = sizes.of(value)
            argument = self.program.block.insert_arg(tensor_type(dtypes.mlir_element(dtype), dims), len(self.program.block.args))
            argument.name_hint = self.program.unique(str(value.name))
            t = self.environment[value] = Tensor(dtype, dims, value=argument, name=str(value.name))
            self.program.bind_symbols(argument, dims)
            arguments.append((value, t))
        self.ctx.symbols |= {name: size for name, size in sizes.symbols.items() if not isinstance(size, int)}
        return arguments

    def _results(self, outputs: Sequence[ir.Value]) -> list[Tensor]:
        found: list[Tensor] = []
        for value in outputs:
            t = self.lookup(value)
            if t is None and not self.problems:
                raise FuselineError("E0105", "no node makes this output", node=value.name)
            if t is not None:
                found.append(t)
        return found

    def _function(self, arguments: Sequence[tuple[ir.Value, Tensor]], outputs: Sequence[ir.Value], results: Sequence[Tensor]) -> FuncOp:
        from fuseline.ir.build import Emitter

        emit = Emitter.at_end(self.program.block)
        values = [self.program.ssa(t, emit) for t in results]
        emit.add(ReturnOp(*values))
        types = (list(self.program.block.arg_types), [value.type for value in values])
        return FuncOp(
            "main",
            types,
            Region(self.program.block),
            arg_attrs=ArrayAttr([_argument_attributes(str(v.name), t) for v, t in arguments]),
            res_attrs=ArrayAttr([DictionaryAttr(_named(str(v.name), t)) for v, t in zip(outputs, results, strict=True)]),
        )

    def _raise_problems(self) -> None:
        if not self.problems:
            return
        first = self.problems[0]
        if len(self.problems) == 1:
            raise first
        lines = [f"{p.node}: {p.message}" if p.node else p.message for p in self.problems]
        raise FuselineError(first.code, f"{len(lines)} things of this model are unsupported: " + "; ".join(lines), node=first.node, hint=first.hint)

    def _record_eliminated(self) -> None:
        locations = {op.location for op in self.program.block.ops}
        present = {node for location in locations for node in nodes_in(location)}
        for node in self.ctx.records.source_nodes:
            if node not in present:
                self.ctx.records.eliminated.setdefault(node, ELIMINATED_BY)

    # -- nodes -----------------------------------------------------------------------------------------------------------------

    def lookup(self, value: ir.Value) -> Tensor | None:
        """The tensor behind a value of the model; None after an unsupported node."""
        if value in self.environment:
            return self.environment[value]
        if value.const_value is not None and value.producer() is None:
            t = self.environment[value] = constant_tensor(value.const_value, str(value.name))
            return t
        reader = next((use.node for use in value.uses()), None)
        where = f" by {reader.name or reader.op_type}" if reader is not None else ""
        raise FuselineError("E0105", f"value {value.name!r} is used{where} before any node makes it", node=value.name)

    def import_nodes(self, graph: ir.Graph | ir.Function, scope: Scope) -> None:
        """Translate all nodes of a graph into the program."""
        for index, source in enumerate(graph):
            label = scope.label or self._label(source, index)
            try:
                self._import_node(source, label, scope)
            except FuselineError as error:
                if scope.inside_function:
                    raise
                self._fail(source, error, label)

    def _label(self, source: ir.Node, index: int) -> str:
        label = source.name or f"{source.op_type}_{index}"
        while label in self._labels:
            label += "_"
        self._labels.add(label)
        self.ctx.records.source_nodes.append(label)
        return label

    def _fail(self, source: ir.Node, error: FuselineError, label: str) -> None:
        if error.node is None:
            error = FuselineError(error.code, error.message, node=label, hint=error.hint)
        self.problems.append(error)
        for value in source.outputs:
            self.environment[value] = None

    def _import_node(self, source: ir.Node, label: str, scope: Scope) -> None:
        inputs = [self.lookup(value) if value is not None else None for value in source.inputs]
        if any(value is not None and t is None for value, t in zip(source.inputs, inputs, strict=True)) and self._poisoned(source):
            return
        opset = scope.opsets.get(source.domain, 1)
        node = OnnxNode(self, self.program, source, label, inputs, functions.bound_attributes(source, scope.attributes), opset, (label,))
        outputs = self.lower(node, scope)
        for value, t in zip(source.outputs, outputs, strict=False):
            if t is not None and not t.name:
                t.name = str(value.name)
            self.environment[value] = t

    def _poisoned(self, source: ir.Node) -> bool:
        """Pass a failure on where an input comes from an unsupported node (and not merely from an omitted output)."""
        failed = any(value is not None and self.environment.get(value, True) is None for value in source.inputs)
        if failed and self.problems:
            for value in source.outputs:
                self.environment[value] = None
        return failed and bool(self.problems)

    def lower(self, node: OnnxNode, scope: Scope) -> Sequence[Tensor | None]:
        """The outputs of one node: known content, structured ops, its expanded function body, or a host op."""
        folded = folding.fold(node)
        if folded is not None:
            return [folded]
        mark = self.program.mark()
        reason = NoNativeLowering("no-lowering", node.op_type)
        for attempt in (_lower_natively, functions.expand):
            try:
                outputs = attempt(node)
            except NoNativeLowering as refusal:
                reason = refusal
                outputs = None
            if outputs is not None:
                return outputs
            self.program.rollback(mark)
            node.__dict__.pop("emit", None)
        if scope.inside_function:
            raise reason
        return self._host(node, reason)

    def _host(self, node: OnnxNode, reason: NoNativeLowering) -> Sequence[Tensor | None]:
        _check_known(node, self.loaded)
        outputs = host.emit_call(node, reason)
        self.ctx.records.host_ops.append(HostOpRecord(node=node.label, op_type=node.op_type, reason=str(reason)))
        return outputs

    def inline(self, graph: ir.Graph, node: OnnxNode) -> list[Tensor | None]:
        """Translate a subgraph of `node` in place; its outputs."""
        scope = Scope(self.loaded.opsets, {}, node.label, inside_function=True)
        self.import_nodes(graph, scope)
        return [self.lookup(value) for value in graph.outputs]


def _lower_natively(node: OnnxNode) -> Sequence[Tensor | None] | None:
    lowering = lowering_of(node.source.domain, node.op_type, node.opset)
    if lowering is None:
        return None
    found = lowering(node)
    return [found] if isinstance(found, Tensor) else list(found)


def _check_known(node: OnnxNode, loaded: LoadedModel) -> None:
    """Raise FuselineError (E0103) for an operator that nobody defines."""
    domain = node.source.domain
    if (domain, node.op_type, node.source.overload) in loaded.model.functions or onnx.defs.has(node.op_type, node.opset, domain):
        return
    where = f"domain {domain!r}, operator set {node.opset}" if domain else f"operator set {node.opset}"
    raise FuselineError("E0103", f"operator {node.op_type} is unknown ({where})", node=node.label, hint="export with standard ONNX operators")


def constant_tensor(value: ir.TensorProtocol, name: str) -> Tensor:
    """An initializer as a tensor; its array is a view of the file's bytes where possible."""
    if value.dtype == ir.DataType.STRING:
        raise FuselineError("E0106", "string tensors are unsupported", node=name)
    t = known(value.numpy(), name=name)
    return t


def _named(name: str, t: Tensor) -> dict[str, Attribute]:
    attributes: dict[str, Attribute] = {"fuseline.name": StringAttr(name)}
    if t.dtype.kind == "u":
        attributes["fuseline.dtype"] = StringAttr(t.dtype.name)
    return attributes


def _argument_attributes(name: str, t: Tensor) -> DictionaryAttr:
    attributes = _named(name, t)
    assert t.value is not None
    if DYNAMIC_INDEX in shape_of(t.value):
        attributes["fuseline.dims"] = ArrayAttr([StringAttr(to_text(size)) for size in t.dims])
    return DictionaryAttr(attributes)


def import_model(loaded: LoadedModel, ctx: CompilerContext, shapes: Mapping[str, ShapeOption]) -> ModuleOp:
    """The module of a checked model; see `fuseline.frontends.onnx.read_onnx`."""
    ctx.records.model = ctx.records.model or loaded.name
    return Importer(loaded, ctx).run(shapes)
