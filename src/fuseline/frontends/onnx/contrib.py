"""Operators of onnxruntime's own domain `com.microsoft`, spelled out in standard ones before the model is read.

Quantisation tools write them (QLinearAdd, QGemm, ..). Their definitions: onnxruntime, docs/ContribOperators.md. What is
not in the table stays as it is: `contrib_bodies/` has the rules that ask for types or sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import helper, numpy_helper

from fuseline.frontends.onnx.foreign_operators import is_foreign
from fuseline.frontends.onnx.protos import inner_graphs, label_of, nodes, standard_domain

DOMAIN = "com.microsoft"


class Spelling:
    """Collects the standard nodes that one node stands for; intermediate values are named after it."""

    def __init__(self, node: onnx.NodeProto, label: str, opset: int) -> None:
        self.node, self.label, self.opset = node, label, opset
        self.nodes: list[onnx.NodeProto] = []
        self.attributes: dict[str, Any] = {
            attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute
        }

    def input(self, index: int) -> str:
        """The name of an input, empty where it is left out."""
        return self.node.input[index] if index < len(self.node.input) else ""

    def op(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """The name of the first output of a new node."""
        name = f"{self.label}/{op_type}_{len(self.nodes)}"
        given = list(inputs)
        while given and not given[-1]:
            given.pop()
        self.nodes.append(helper.make_node(op_type, given, [name], name=name, **attributes))
        return name

    def constant(self, value: float) -> str:
        """A scalar f32 constant."""
        return self.op("Constant", value=numpy_helper.from_array(np.asarray(value, np.float32)))

    def real(self, first: int, **attributes: Any) -> str:
        """The numbers behind the quantised input `first`, whose scale and zero point follow it."""
        return self.op("DequantizeLinear", *(self.input(first + i) for i in range(3)), **attributes)

    def quantized(self, value: str, first: int) -> str:
        """`value` with the scale and zero point of inputs `first` and `first + 1`."""
        return self.op("QuantizeLinear", value, self.input(first), self.input(first + 1))

    def kept(self, *names: str) -> dict[str, Any]:
        """Those of the node's attributes, where it has them."""
        return {name: self.attributes[name] for name in names if name in self.attributes}


Rule: TypeAlias = Callable[[Spelling], "str | None"]


def _quantized_pair(op_type: str) -> Rule:
    return lambda s: s.quantized(s.op(op_type, s.real(0), s.real(3)), 6)


def _quantized_single(op_type: str, *attributes: str) -> Rule:
    return lambda s: s.quantized(s.op(op_type, s.real(0), **s.kept(*attributes)), 3)


def _quantized_pooling(op_type: str, *attributes: str) -> Rule:
    return lambda s: None if s.attributes.get("channels_last") else _quantized_single(op_type, *attributes)(s)


def _quantized_softmax(s: Spelling) -> str | None:
    """Along one axis since operator set 13; before, all axes from it on are one, which is not spelled out."""
    return _quantized_single("Softmax", "axis")(s) if s.attributes.get("opset", s.opset) >= 13 else None


def _quantized_concat(s: Spelling) -> str:
    parts = [s.real(first) for first in range(2, len(s.node.input), 3)]
    return s.quantized(s.op("Concat", *parts, **s.kept("axis")), 0)


def _quantized_gemm(s: Spelling) -> str:
    """The bias is in units of both scales; without a scale for the result it stays real."""
    columns = 0 if s.attributes.get("transB") else 1
    bias = (
        s.op("Mul", s.op("Mul", s.op("Cast", s.input(6), to=onnx.TensorProto.FLOAT), s.input(1)), s.input(4))
        if s.input(6)
        else ""
    )
    product = s.op("Gemm", s.real(0), s.real(3, axis=columns), **s.kept("transA", "transB", "alpha"))
    if bias:
        product = s.op("Add", product, s.op("Mul", bias, s.constant(s.attributes.get("alpha", 1.0))))
    return s.quantized(product, 7) if s.input(7) else product


def _integer_product(s: Spelling, a: str, a_zero: str, b: str, b_zero: str, scale: str, bias: str) -> str:
    real = s.op("Cast", s.op("MatMulInteger", a, b, a_zero, b_zero), to=onnx.TensorProto.FLOAT)
    scaled = s.op("Mul", real, scale)
    return s.op("Add", scaled, bias) if bias else scaled


def _matmul_integer_to_float(s: Spelling) -> str:
    scale = s.op("Mul", s.input(2), s.input(3))
    return _integer_product(s, s.input(0), s.input(4), s.input(1), s.input(5), scale, s.input(6))


def _dynamic_matmul(s: Spelling) -> str:
    quantized, scale, zero = (f"{s.label}/{suffix}" for suffix in ("quantized", "scale", "zero"))
    s.nodes.append(helper.make_node("DynamicQuantizeLinear", [s.input(0)], [quantized, scale, zero], name=quantized))
    return _integer_product(s, quantized, zero, s.input(1), s.input(3), s.op("Mul", scale, s.input(2)), s.input(4))


_POOLING = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
_RULES: dict[str, Rule] = {
    "QLinearAdd": _quantized_pair("Add"),
    "QLinearMul": _quantized_pair("Mul"),
    "QLinearSigmoid": _quantized_single("Sigmoid"),
    "QLinearLeakyRelu": _quantized_single("LeakyRelu", "alpha"),
    "QLinearGlobalAveragePool": _quantized_pooling("GlobalAveragePool"),
    "QLinearAveragePool": _quantized_pooling("AveragePool", *_POOLING),
    "QLinearSoftmax": _quantized_softmax,
    "QLinearConcat": _quantized_concat,
    "QGemm": _quantized_gemm,
    "MatMulIntegerToFloat": _matmul_integer_to_float,
    "DynamicQuantizeMatMul": _dynamic_matmul,
    "DequantizeLinear": lambda s: s.real(0, **s.kept("axis")),
    "QuantizeLinear": lambda s: s.op("QuantizeLinear", *s.node.input, **s.kept("axis")),
}


def in_standard_operators(proto: onnx.ModelProto, opsets: Mapping[str, int]) -> onnx.ModelProto:
    """The model with the operators of the table spelled out; the same object where it has none of them, else a copy.
    The bodies of onnxruntime's own operators (BeamSearch, ..) stay as they are: it runs them."""
    if not any(_rule(node) for node in nodes(proto)):
        return proto
    out = onnx.ModelProto()
    out.CopyFrom(proto)
    inner = (*out.graph.node, *(node for function in out.functions for node in function.node))
    for graph in [out.graph, *_read_graphs(inner)]:
        _spell_out(graph.node, opsets[""])
    for function in out.functions:
        imported = [item.version for item in function.opset_import if not standard_domain(item.domain)]
        if not imported and any(_rule(node) for node in function.node):
            imported = [opsets[""]]
            function.opset_import.append(helper.make_opsetid("", opsets[""]))
        _spell_out(function.node, *imported[:1] or [opsets[""]])
    return out


def _read_graphs(given: Iterable[onnx.NodeProto]) -> Iterator[onnx.GraphProto]:
    """The graphs inside of nodes, but for those of operators that only onnxruntime has."""
    for node in given:
        for graph in () if is_foreign(node.domain) else inner_graphs(node):
            yield graph
            yield from _read_graphs(graph.node)


def _spell_out(given: Any, opset: int) -> None:
    """Replace the nodes of a graph or function (a repeated field) that are in the table."""
    if any(_rule(node) for node in given):
        new = [item for index, node in enumerate(given) for item in _spelled_out(node, index, opset)]
        del given[:]
        given.extend(new)


def _rule(node: onnx.NodeProto) -> Rule | None:
    return _RULES.get(node.op_type) if node.domain == DOMAIN else None


def _spelled_out(node: onnx.NodeProto, index: int, opset: int) -> Sequence[onnx.NodeProto]:
    rule = _rule(node)
    if rule is None:
        return [node]
    spelling = Spelling(node, label_of(node, index), opset)
    if rule(spelling) is None:
        return [node]
    last = spelling.nodes[-1]
    last.output[0], last.name = node.output[0], spelling.label
    return spelling.nodes
