"""Walks a model's graph and lowers every node: natively, through its function body, or as a host op.

node ──lowering──> ops        the function in ops/ for this operator and version
     └─function──> nodes      the body that the model or the ONNX standard defines
     └─host──────> call       on the host at run time, counted and named in the records
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.assumptions import Assumptions
from fuseline.frontends.onnx.check_types import check_inputs, check_output
from fuseline.frontends.onnx.constant_nodes import settled
from fuseline.frontends.onnx.dtypes import holds
from fuseline.frontends.onnx.folding import fold
from fuseline.frontends.onnx.foreign_operators import is_foreign
from fuseline.frontends.onnx.function_bodies import as_its_body_takes_it, function_body
from fuseline.frontends.onnx.host_models import HostNode, check_known
from fuseline.frontends.onnx.host_ops import HostOps, boxed_inputs
from fuseline.frontends.onnx.host_values import HostValue, KnownSequence, Value, content_of, known_value
from fuseline.frontends.onnx.main_arguments import MainArguments
from fuseline.frontends.onnx.main_function import main_function, record_eliminated
from fuseline.frontends.onnx.model_file import LoadedModel
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.node_importer import Frame
from fuseline.frontends.onnx.operator_sets import version_of
from fuseline.frontends.onnx.program import Program
from fuseline.frontends.onnx.quantizers import QUANTIZERS
from fuseline.frontends.onnx.registry import lowering_of, takes_sequences
from fuseline.frontends.onnx.sizes import ShapeOption
from fuseline.frontends.onnx.subgraphs import captured_names, resolved
from fuseline.frontends.onnx.target_refusals import require_taken
from fuseline.frontends.onnx.tensors import InvalidSubgraph, NoNativeLowering, Tensor, known
from fuseline.frontends.onnx.unreadable import unreadable
from fuseline.frontends.onnx.wide_halves import as_sequence, rounded
from fuseline.ir.constant_budget import words_of, words_to_make
from fuseline.ir.context import CompilerContext, new_context

Scope = dict[str, Value]


def import_model(loaded: LoadedModel, ctx: CompilerContext, shapes: Mapping[str, ShapeOption]) -> ModuleOp:
    """The module of a checked model; see `read_onnx`."""

    def readable(assumed: Mapping[ir.Node, bool]) -> bool:
        tried = new_context()
        tried.literal_broadcasts = ctx.literal_broadcasts
        try:
            Importer(loaded, tried, Assumptions(assumed)).run(shapes)
        except FuselineError:
            return False
        return True

    return Importer(loaded, ctx, Assumptions({}, readable)).run(shapes)


class Importer:
    """One import. `problems` collects everything unsupported, so that it is reported at once; `functions` are those of
    loops."""

    def __init__(self, loaded: LoadedModel, ctx: CompilerContext, assumptions: Assumptions) -> None:
        self.loaded, self.ctx, self.assumptions = loaded, ctx, assumptions
        self.program = Program(ctx)
        self.host = HostOps(self.program, ctx)
        self.functions: list[FuncOp] = []
        self.problems: list[FuselineError] = []

    def run(self, shapes: Mapping[str, ShapeOption]) -> ModuleOp:
        """Import the whole graph. Raises FuselineError: E0105 for an output or a value that nothing defines, a constant
        that cannot be read, or a call with too many inputs; the code of the first of several problems."""
        graph = self.loaded.model.graph
        self.arguments = MainArguments(self.loaded, self.program, self.ctx)
        scope = self.arguments.read(graph, shapes)
        self.problems += self.arguments.problems
        frame = Frame(scope, self.loaded.opsets)
        self._add_initializers(graph, scope)
        weights = [value.array for value in scope.values() if isinstance(value, Tensor) and value.array is not None]
        self.ctx.to_make = words_to_make(sum(words_of(array.size, array.dtype) for array in weights))
        for index, node in enumerate(graph):
            label = node.name or f"{node.op_type}_{index}"
            self.ctx.records.source_nodes.append(label)
            if node.op_type in QUANTIZERS:
                self.ctx.records.quantize_nodes.append(label)
            self._node(node, frame, label)
        self._raise_problems()
        main = main_function(graph, scope, self.host, self.arguments.attributes)
        record_eliminated(self.ctx.records, main)
        return ModuleOp([main, *self.host.declarations, *self.functions])

    # -- borders -------------------------------------------------------------------------------------------------------

    def _add_initializers(self, graph: ir.Graph, scope: Scope) -> None:
        for name, value in graph.initializers.items():
            if value.const_value is not None:
                scope[name] = self._constant(value.const_value, name)

    def _constant(self, tensor: ir.TensorProtocol, name: str) -> Value:
        try:
            return (
                known(np.asarray(tensor.numpy()), name=name)
                if holds(tensor.dtype)
                else known_value(content_of(tensor), name)
            )
        except (ValueError, TypeError, OSError) as error:
            raise FuselineError("E0105", f"the constant cannot be read: {error}", node=name) from error

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def _node(self, node: ir.Node, frame: Frame, label: str) -> None:
        inputs = [None if value is None else frame.scope.get(str(value.name)) for value in node.inputs]
        missing = [
            str(v.name) for v, t in zip(node.inputs, inputs, strict=True) if v is not None and v.name and t is None
        ]
        if missing:
            if not self.problems:  # after a problem, later nodes miss its outputs
                raise FuselineError("E0105", f"nothing defines {missing[0]!r}", node=label)
            return
        try:
            check_inputs(node.op_type, _domain(node), frame.opsets, inputs)
            outputs = self._outputs(node, label, inputs, resolved(node, frame.attributes), frame)
            for value, tensor in zip(node.outputs, outputs, strict=False):
                if tensor is not None:
                    check_output(value, tensor)
        except NoNativeLowering:  # inside a function or subgraph: the node around it may still run on the host
            raise
        except FuselineError as error:
            self.problems.append(
                error if error.node else FuselineError(error.code, error.message, node=label, hint=error.hint)
            )
            return
        except Exception as error:  # noqa: BLE001 - a lowering may meet anything in a model; here we still know the node
            attributes = resolved(node, frame.attributes)
            self.problems.append(unreadable(self._host_node(node, label, inputs, attributes, frame), error))
            return
        for value, tensor in zip(node.outputs, outputs, strict=False):
            if value.name and tensor is not None:
                frame.scope[str(value.name)] = tensor

    def _outputs(
        self, node: ir.Node, label: str, inputs: Sequence[Value | None], attributes: Mapping[str, ir.Attr], frame: Frame
    ) -> Sequence[Value | None]:
        domain = _domain(node)
        version = version_of(frame.opsets, domain, node.op_type)
        boxed = {number: value for number, value in enumerate(inputs) if isinstance(value, HostValue)}
        sequences = {number: value for number, value in boxed.items() if isinstance(value, KnownSequence)}
        if len(sequences) < len(boxed) or (boxed and not self._takes_sequences(node, domain, version)):
            return self._on_host(node, label, inputs, attributes, frame)
        tensors = [None if isinstance(value, HostValue) else value for value in inputs]
        scope, opsets, outer = frame.scope, frame.opsets, frame.attributes
        view = OnnxNode(
            self, self.program, node, label, tensors, attributes, version, (label,), scope, opsets, outer, sequences
        )  # fmt: skip
        return self._lower(view, domain, version, frame)

    def _takes_sequences(self, node: ir.Node, domain: str, version: int) -> bool:
        """Whether sequences that are known may stay such: not in the body of an operator, which asks for types."""
        local = (node.domain, node.op_type, node.overload) in self.loaded.model.functions
        return not local and takes_sequences(domain, node.op_type, version)

    def _lower(self, node: OnnxNode, domain: str, version: int, frame: Frame) -> Sequence[Value | None]:
        local = self.loaded.model.functions.get((node.source.domain, node.op_type, node.source.overload))
        if local is not None:
            return self._call_local(local, node.inputs, node.attributes, node.label)
        content = fold(node)
        if content is not None:
            return [content]
        refusal = NoNativeLowering("no-lowering", f"{node.op_type} has no native lowering")
        lowering = lowering_of(domain, node.op_type, version)
        if lowering is not None:
            mark, loops = self.program.mark(), len(self.functions)
            try:
                outputs = settled(node, as_sequence(lowering(node)), mark)
                require_taken(self.program, mark, self.functions[loops:])
                return outputs
            except NoNativeLowering as error:
                self.program.rollback(mark)
                refusal = error
        return self._fallback(node, domain, version, frame, refusal)

    def _fallback(
        self, node: OnnxNode, domain: str, version: int, frame: Frame, refusal: NoNativeLowering
    ) -> Sequence[Value | None]:
        alone = self._host_node(node.source, node.label, node.values, node.attributes, frame)
        if not is_foreign(domain):  # of those that are, onnxruntime is asked last
            check_known(alone)
        mark, known_problems, calls = self.program.mark(), len(self.problems), len(self.host.declarations)
        taken = as_its_body_takes_it(node, domain)
        try:
            body = function_body(taken, domain, version)
        except NoNativeLowering as error:
            body, refusal = None, error
        if body is not None:
            try:
                outputs = self._call(body[0], taken.inputs, node.attributes, node.label, body[1])
                if not self.host.loops_since(calls):
                    return rounded(node, domain, outputs)
            except NoNativeLowering:
                pass
            del self.problems[known_problems:]
        self.program.rollback(mark)
        check_known(alone)
        return self.host.run(alone, refusal)

    def _on_host(
        self, node: ir.Node, label: str, inputs: Sequence[Value | None], attributes: Mapping[str, ir.Attr], frame: Frame
    ) -> Sequence[Value | None]:
        """The outputs of a node with inputs that only the host can handle."""
        local = self.loaded.model.functions.get((node.domain, node.op_type, node.overload))
        if local is not None:
            return self._call_local(local, inputs, attributes, label)
        alone = self._host_node(node, label, inputs, attributes, frame)
        check_known(alone)
        return self.host.run(alone, boxed_inputs(alone))

    def _host_node(
        self, node: ir.Node, label: str, inputs: Sequence[Value | None], attributes: Mapping[str, ir.Attr], frame: Frame
    ) -> HostNode:
        captured = {name: frame.scope[name] for name in captured_names(attributes) if name in frame.scope}
        domain, functions = _domain(node), list(self.loaded.model.functions.values())
        return HostNode(node, label, inputs, attributes, domain, frame.opsets, captured, frame.attributes, functions)

    def _call_local(
        self, function: ir.Function, inputs: Sequence[Value | None], given: Mapping[str, ir.Attr], label: str
    ) -> Sequence[Value | None]:
        """The outputs of a function of the model; none after a problem inside."""
        try:
            return self._call(function, inputs, given, label, dict(function.opset_imports))
        except NoNativeLowering as error:
            if self.problems:
                return []
            raise FuselineError("E0105", f"function {function.name}: {error.detail}", node=label) from error

    def _call(
        self,
        function: ir.Function,
        inputs: Sequence[Value | None],
        given: Mapping[str, ir.Attr],
        label: str,
        opsets: Mapping[str, int],
    ) -> Sequence[Value | None]:
        """The outputs of a function body with a node's inputs and attributes."""
        if len(inputs) > len(function.inputs):
            raise FuselineError(
                "E0105",
                f"{len(inputs)} inputs for function {function.name}, which has {len(function.inputs)}",
                node=label,
            )
        scope: Scope = {str(v.name): t for v, t in zip(function.inputs, inputs, strict=False) if t is not None}
        attributes = {name: attr for name, attr in function.attributes.items() if attr.value is not None}
        frame = Frame(scope, opsets, {**attributes, **given}, label)
        for inner in function:
            self._node(inner, frame, label)
        missing = [str(v.name) for v in function.outputs if str(v.name) not in scope]
        if missing:
            raise NoNativeLowering("function-body", f"{missing[0]} is not computed")
        return [scope[str(value.name)] for value in function.outputs]

    def inline(self, graph: ir.Graph, around: Frame) -> list[Value]:
        """The outputs of a subgraph of a node that sees `around`; see `OnnxNode.inline`. Raises FuselineError: E0105,
        as `run` does."""
        scope: Scope = dict(around.scope)
        self._add_initializers(graph, scope)
        frame = Frame(scope, around.opsets or self.loaded.opsets, around.attributes, around.label)
        known_problems = len(self.problems)
        for inner in graph:
            self._node(inner, frame, frame.label)
        if len(self.problems) > known_problems:
            first = self.problems[known_problems]
            del self.problems[known_problems:]
            raise InvalidSubgraph(first)
        missing = [str(v.name) for v in graph.outputs if str(v.name) not in scope]
        if missing:
            raise NoNativeLowering("subgraph", f"nothing defines the output {missing[0]!r}")
        return [scope[str(value.name)] for value in graph.outputs]

    def _raise_problems(self) -> None:
        if not self.problems:
            return
        first, rest = self.problems[0], self.problems[1:]
        if not rest:
            raise first
        listed = "; ".join(f"[{error.node}] {error.message}" for error in self.problems)
        raise FuselineError(first.code, f"{len(self.problems)} problems: {listed}", node=first.node, hint=first.hint)


def _domain(node: ir.Node) -> str:
    return "" if node.domain == "ai.onnx" else node.domain
