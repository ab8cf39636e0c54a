"""Bodies of operators as nodes: equal to the operator, or none where they would not be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from fuseline.exports.onnx.bodies import Bodies, with_defaults
from fuseline.exports.onnx.value_types import value_types
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model


def _normal(*sizes: int) -> Any:
    return RNG.standard_normal(sizes).astype(np.float32)


def _body(model: onnx.ModelProto) -> list[onnx.NodeProto] | None:
    node = model.graph.node[0]
    node.name = node.name or "node"
    return Bodies(model, value_types(model)).of(node)


def _equal(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> None:
    nodes = _body(model)
    assert nodes is not None and len(nodes) > 1 and len({node.name for node in nodes}) == len(nodes)
    other = onnx.ModelProto()
    other.CopyFrom(model)
    del other.graph.node[:]
    other.graph.node.extend(nodes)
    onnx.checker.check_model(other, full_check=True)
    expected, found = (ReferenceEvaluator(one).run(None, dict(feeds)) for one in (model, other))
    for one, two in zip(expected, found, strict=True):
        np.testing.assert_allclose(np.asarray(two), np.asarray(one), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "opset"),
    [
        ("y = LayerNormalization<axis = 1, epsilon = 0.01>(x, s, b)", 17),
        ("y = LayerNormalization(x, s)", 18),
        ("y = Softmax<axis = 0>(x)", 13),
        ("y = LogSoftmax(x)", 18),
        ("y = HardSwish(x)", 14),
        ("y = Celu<alpha = 0.5>(x)", 12),
        ('y = Gelu<approximate = "tanh">(x)', 20),
        ("y = RMSNormalization(x, s)", 23),
    ],
)
def test_a_body_of_the_standard(text: str, opset: int):
    size = int(RNG.integers(3, 9))
    model = onnx_model(
        f"(float[5, {size}] x) => (float[5, {size}] y) {{ {text} }}",
        s=_normal(size),
        b=_normal(size),
        opset=opset,
        ir_version=10,
    )
    _equal(model, {"x": _normal(5, size)})


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("spatial", [1, 2])
def test_a_bias_behind_its_convolution(op: str, spatial: int):
    sizes = RNG.integers(5, 9, spatial).tolist()
    weight = _normal(*((6, 4) if op == "Conv" else (4, 6)), *[3] * spatial)
    shape, out = (f"[{', '.join(map(str, all_))}]" for all_ in ([2, 4, *sizes], ["n", "c", *"hw"[:spatial]]))
    model = onnx_model(f"(float{shape} x) => (float{out} y) {{ y = {op}(x, w, b) }}", w=weight, b=_normal(6))
    _equal(model, {"x": _normal(2, 4, *sizes)})


@pytest.mark.parametrize(
    ("text", "opset"),
    [
        ("y = Relu(x)", 13),  # the standard has a body since 18
        ("y = Conv(x, x)", 13),
        ("y = com.microsoft.Gelu(x)", 17),
        ("y = Conv(x, x, x)", 13),  # a filter that is computed: of unknown rank
    ],
)
def test_what_has_none(text: str, opset: int):
    assert _body(onnx_model(f"(float[4, 4] x) => (float[4, 4] y) {{ {text} }}", opset=opset)) is None


def test_a_body_of_another_operator_set_is_none():
    """ReduceMean has its axes as an attribute before 18, as an input since."""
    text = '<domain: "own", opset_import: ["" : 13]> f (a) => (b) { b = ReduceMean<axes = [0]>(a) }'
    for opset, fits in ((13, True), (17, True), (18, False)):
        head = f'<ir_version: 9, opset_import: ["" : {opset}, "own" : 1]>'
        model = onnx.parser.parse_model(f"{head} g (float[4] x) => (float[1] y) {{ y = own.f(x) }} {text}")
        bodies = Bodies(model, {})
        assert (bodies.of(model.graph.node[0]) is not None) == fits


def test_attributes_of_a_call_reach_graphs_inside():
    text = """<domain: "own", opset_import: ["" : 18]> f <alpha> (a, c) => (b)
        { b = If<then_branch = g () => (t) { t = LeakyRelu<alpha: float = @alpha>(a) },
                 else_branch = h () => (e) { e = Neg(a) }>(c) }"""
    model = onnx.parser.parse_model(f"""<ir_version: 9, opset_import: ["" : 18, "own" : 1]>
        m (float[4] x, bool k) => (float[4] y) {{ y = own.f<alpha = 0.5>(x, k) }} {text}""")
    model.graph.node[0].name = "call"
    nodes = Bodies(model, {}).of(model.graph.node[0])
    assert nodes is not None
    branch = next(attribute.g for attribute in nodes[0].attribute if attribute.name == "then_branch")
    assert branch.node[0].attribute[0].f == 0.5 and list(branch.node[0].input) == ["x"]


def test_default_attributes_are_written_out():
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"])
    with_defaults([node], {"": 13})
    with_defaults([node], {"": 13})
    assert [list(attribute.ints) for attribute in node.attribute] == [[0, 2, 3]]


@pytest.mark.parametrize(("element", "right"), [("float", True), ("float16", False), ("double", False)])
def test_a_body_that_is_written_for_other_types(element: str, right: bool):
    model = onnx_model(f"({element}[2, 3, 4, 5] x) => ({element}[2, 3, 4, 5] y) {{ y = MeanVarianceNormalization(x) }}")
    assert Bodies(model, value_types(model)).infers(model.graph.node[0]) == right
    assert Bodies(model, {}).infers(model.graph.node[0])


@pytest.mark.parametrize(
    "text", ["y = Relu(x)", "y = com.microsoft.Gelu(x)", "y = LayerNormalization(x, x)", "y = Cos(x)"]
)
def test_other_bodies_infer(text: str):
    model = onnx_model(f"(float16[4] x) => (float16[4] y) {{ {text} }}")
    assert Bodies(model, value_types(model)).infers(model.graph.node[0])
