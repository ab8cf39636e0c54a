"""A node as a model of its own: what a host operator runs, and what can be said of its outputs before it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from numpy.typing import NDArray
from onnx import TypeProto, helper, numpy_helper

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.foreign_operators import check_foreign, is_foreign
from fuseline.frontends.onnx.host_values import HostValue, KnownSequence, Value, sized_type, without_sizes
from fuseline.frontends.onnx.operator_sets import version_of
from fuseline.frontends.onnx.protos import standard_domain
from fuseline.frontends.onnx.subgraphs import has_subgraphs, inner_nodes, node_proto
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.ir.dim import Dim

EMBEDDED_ELEMENTS = 1024
"""Constants up to this size stand in the model, where shape inference sees them; larger ones are operands."""


_OLD_NAMES = {("", "Scatter"): ("ScatterElements", 11), ("", "DynamicSlice"): ("Slice", 10)}
"""Old names that onnx.reference does not know: what they are called now, and since which version."""

_FAILURES = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What a reference implementation raises for what it cannot compute."""


@dataclass(eq=False)
class HostNode:
    """A node that runs on the host. `inputs` are None where left out, `captured` are the values that its subgraphs
    read, by name."""

    source: ir.Node
    label: str
    inputs: Sequence[Value | None]
    attributes: Mapping[str, ir.Attr]
    domain: str
    opsets: Mapping[str, int]
    captured: Mapping[str, Value]
    outer: Mapping[str, ir.Attr]
    functions: Sequence[ir.Function] = ()

    @property
    def op_type(self) -> str:
        """The operator."""
        return self.source.op_type

    @property
    def version(self) -> int:
        """The version of its operator set."""
        return version_of(self.opsets, self.domain, self.op_type)

    @property
    def asked(self) -> list[int]:
        """The places of the outputs that the call computes: all that the node lists, without those that have no name
        where only onnxruntime knows the operator, whose kernels do other things when they are asked for more."""
        return [i for i, value in enumerate(self.source.outputs) if value.name or not is_foreign(self.domain)]

    @property
    def given(self) -> list[Value]:
        """The inputs that are not left out."""
        return [value for value in self.inputs if value is not None]

    def declared_type(self, index: int) -> TypeProto | None:
        """What the model says of output `index`, None where it says nothing."""
        value = self.source.outputs[index]
        return ir.serde.serialize_type(value.type) if value.type is not None else None


@dataclass(frozen=True, eq=False)
class HostModel:
    """The model, and the values that its graph inputs stand for, in order."""

    proto: onnx.ModelProto
    operands: Sequence[Value]
    sizes: Mapping[str, Dim]


def host_model(node: HostNode) -> HostModel:
    """`node` alone as a model: inputs @i0, @i1, .. (left-out ones stay empty), then captured values under their own
    names, outputs @o0, @o1, .. as far as they are `asked` for."""
    proto = node_proto(node.source, node.attributes, node.outer)
    opsets = {**node.opsets, node.domain: node.version}
    if (node.domain, node.op_type) in _OLD_NAMES:
        proto.op_type, opsets[node.domain] = _OLD_NAMES[node.domain, node.op_type]
    proto.input[:] = ["" if value is None else f"@i{i}" for i, value in enumerate(node.inputs)]
    proto.output[:] = [f"@o{i}" if i in node.asked else "" for i in range(len(node.source.outputs))]
    values = {f"@i{i}": value for i, value in enumerate(node.inputs) if value is not None} | dict(node.captured)
    constants = {name: content for name, value in values.items() if (content := embedded(value)) is not None}
    operands = {name: value for name, value in values.items() if name not in constants}
    sizes = _Sizes()
    graph = helper.make_graph(
        [proto],
        "host",
        [onnx.ValueInfoProto(name=name, type=sized_type(value, sizes.name)) for name, value in operands.items()],
        [_output_info(node, i) for i in node.asked],
        [initializer(content, name) for name, content in constants.items()],
    )
    functions = [ir.to_proto(function) for function in node.functions] if has_subgraphs(node.attributes) else []
    imports = [helper.make_opsetid(domain, version) for domain, version in ({"": 18} | opsets).items()]
    return HostModel(
        helper.make_model(graph, opset_imports=imports, functions=functions), list(operands.values()), sizes.by_name
    )


def constant_model(value: HostValue) -> HostModel:
    """A model that gives the known content of `value`."""
    assert value.content is not None
    node = helper.make_node("Constant", [], ["o0"], value=initializer(value.content, "o0"))
    graph = helper.make_graph([node], "host", [], [helper.make_value_info("o0", sized_type(value, str))])
    return HostModel(helper.make_model(graph), [], {})


def sequence_model(value: KnownSequence) -> HostModel:
    """A model that makes a sequence of its items, its inputs."""
    names, sizes = [f"@i{i}" for i in range(len(value.items))], _Sizes()
    element = value.type.sequence_type.elem_type.tensor_type.elem_type
    node = (
        helper.make_node("SequenceConstruct", names, ["@o0"])
        if names
        else helper.make_node("SequenceEmpty", [], ["@o0"], dtype=element)
    )
    given = [
        onnx.ValueInfoProto(name=name, type=sized_type(item, sizes.name))
        for name, item in zip(names, value.items, strict=True)
    ]
    graph = helper.make_graph([node], "host", given, [onnx.ValueInfoProto(name="@o0", type=value.type)])
    return HostModel(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), value.items, sizes.by_name)


def _output_info(node: HostNode, index: int) -> onnx.ValueInfoProto:
    """An output, with the type that the model declares where nothing but onnxruntime knows the operator: it does not
    infer each of its own."""
    declared = node.declared_type(index) if is_foreign(node.domain) else None
    return onnx.ValueInfoProto(name=f"@o{index}", type=None if declared is None else without_sizes(declared))


def embedded(value: Value) -> NDArray[Any] | None:
    """The content of a constant that stands in the model: small ones, and all that the IR has no element type for."""
    if isinstance(value, HostValue):
        return value.content
    return (
        value.array if value.is_constant and value.array is not None and value.array.size <= EMBEDDED_ELEMENTS else None
    )


def initializer(content: NDArray[Any], name: str) -> onnx.TensorProto:
    """A constant as a proto."""
    return numpy_helper.from_array(np.ascontiguousarray(content).reshape(content.shape), name)


class _Sizes:
    """Names for sizes that are no numbers: equal ones get the same."""

    def __init__(self) -> None:
        self.by_name: dict[str, Dim] = {}
        self._names: dict[Dim, str] = {}

    def name(self, dim: Dim) -> str:
        """The name of `dim` in this model."""
        found = self._names.setdefault(dim, f"size{len(self._names)}")
        self.by_name[found] = dim
        return found


# -- evaluation while reading ------------------------------------------------------------------------------------------


def evaluate(node: HostNode) -> list[Any] | None:
    """What the node computes, where all its inputs are known and it always computes the same; else None."""
    contents = [
        value.content if isinstance(value, HostValue) else value.array if value.is_constant else None
        for value in node.given
    ]
    if any(content is None for content in contents) or not _is_repeatable(node):
        return None
    from fuseline.frontends.onnx.reference import LOWERED, evaluator_with

    if (node.domain, node.op_type) in LOWERED:  # only its lowering is right, and does not take it
        return None
    model = host_model(node)
    feeds = {
        info.name: value.numbers()
        for info, value in zip(model.proto.graph.input, model.operands, strict=True)
        if isinstance(value, Tensor)
    }
    try:
        with np.errstate(all="ignore"):
            return list(evaluator_with((), model.proto).run(None, feeds))  # pyright: ignore[reportArgumentType] - a list, for names None
    except _FAILURES:  # what is wrong shows when the node runs
        return None


def _is_repeatable(node: HostNode) -> bool:
    if has_subgraphs(node.attributes) or not onnx.defs.has(node.op_type, node.version, node.domain):
        return False
    schema: Any = onnx.defs.get_schema(node.op_type, node.version, node.domain)
    return node.op_type != "Dropout" and not schema.non_deterministic


def check_known(node: HostNode) -> None:
    """Raise FuselineError (E0103) for an operator that neither the standard nor the model has, in a loop's body too: of
    the branches of an If a run may take the other one."""
    _check_known(node.domain, node.op_type, node.version, node.label)
    local = {(function.domain, function.name) for function in node.functions}
    for inner in inner_nodes(node.attributes) if node.op_type != "If" else ():
        domain = standard_domain(inner.domain)
        if (inner.domain, inner.op_type) not in local:
            _check_known(domain, inner.op_type, version_of(node.opsets, domain, inner.op_type), node.label)


def _check_known(domain: str, op_type: str, version: int, label: str) -> None:
    if (domain, op_type) in _OLD_NAMES or onnx.defs.has(op_type, version, domain):
        return
    if is_foreign(domain):
        return check_foreign(domain, op_type, label)
    name = f"{domain}.{op_type}" if domain else op_type
    raise FuselineError(
        "E0103",
        f"operator {name} (version {version}) is unknown",
        node=label,
        hint="export with standard ONNX operators",
    )
