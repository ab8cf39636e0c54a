"""Bodies that the standard defines for an operator, for one call of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from fuseline.frontends.onnx.function_bodies import MASK, as_its_body_takes_it, function_body
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from tests.graphs.custom_lowering import computed, read_with

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)


def _node(op_type: str, *inputs: Tensor | None, domain: str = "", outputs: str = "y", **attributes: Any) -> OnnxNode:
    names = ["" if t is None else f"x{i}" for i, t in enumerate(inputs)]
    source = ir.from_proto(helper.make_node(op_type, names, outputs.split(), domain=domain, **attributes))
    return OnnxNode(
        None,  # pyright: ignore[reportArgumentType]
        None,  # pyright: ignore[reportArgumentType]
        source,
        "node",
        list(inputs),
        source.attributes,
        18,
        opsets={"": 18, "other": 3},
    )


def _body(node: OnnxNode, version: int = 18, domain: str = "") -> tuple[ir.Function, Any]:
    found = function_body(node, domain, version)
    assert found is not None
    return found


X = Tensor(F32, (2, 6, 4))


def _computed(function: ir.Function, *arrays: Any) -> list[Any]:
    """What the reference evaluator makes of a body."""
    proto = ir.to_proto(function)
    given = {name: array for name, array in zip(proto.input, arrays, strict=False)}
    attributes = {
        name: attribute.value for name, attribute in function.attributes.items() if attribute.value is not None
    }
    return ReferenceEvaluator(proto).run(None, given, attributes=attributes)  # pyright: ignore


def test_a_body_that_every_call_has() -> None:
    function, opsets = _body(_node("Softplus", X))
    x = np.random.default_rng().standard_normal((2, 3)).astype(np.float32)
    np.testing.assert_allclose(_computed(function, x)[0], np.log1p(np.exp(x)), rtol=1e-5)
    assert opsets["other"] == 3 and opsets[""] <= 18


def test_a_body_for_the_types_of_a_call() -> None:
    function, opsets = _body(_node("GroupNormalization", X, X, X, num_groups=2), 21)
    assert {"Reshape", "ReduceMean"} <= {node.op_type for node in function} and opsets[""] >= 18


def test_a_body_of_the_version_in_force() -> None:
    """Up to 12 the mean took its axes as an attribute, and the body has squeezed them so."""
    for version in (13, 18):
        function, opsets = _body(_node("MeanVarianceNormalization", X), version)
        assert opsets[""] == version
        x = np.random.default_rng().standard_normal((2, 3, 4, 5)).astype(np.float32)
        centred = x - x.mean((0, 2, 3), keepdims=True)
        wanted = centred / np.sqrt((centred**2).mean((0, 2, 3), keepdims=True))
        np.testing.assert_allclose(_computed(function, x)[0], wanted, rtol=1e-4, atol=1e-4)


def test_attributes_have_their_defaults() -> None:
    function, _ = _body(_node("Celu", X))
    assert function.attributes["alpha"].value == 1.0
    function, _ = _body(_node("MeanVarianceNormalization", X))
    assert list(function.attributes["axes"].as_ints()) == [0, 2, 3]


@pytest.mark.parametrize(
    ("op_type", "version", "domain"),
    [
        ("Relu", 1, ""),  # bodies came later
        ("MatMul", 18, ""),
        ("AffineGrid", 20, ""),  # its body is wrong
        ("NoSuch", 18, ""),
        ("Softplus", 18, "com.example"),
        ("Scaler", 1, "ai.onnx.ml"),
    ],
)
def test_operators_without_one(op_type: str, version: int, domain: str) -> None:
    assert function_body(_node(op_type, X, domain=domain), domain, version) is None


def test_outputs_that_a_call_leaves_out() -> None:
    """The body for a call with one output lists the statistics, too."""
    norm = Tensor(F32, (4,))
    one, _ = _body(_node("LayerNormalization", X, norm, norm), 17)
    three, _ = _body(_node("LayerNormalization", X, norm, norm, outputs="y mean deviation"), 17)
    made = {value.name for node in one for value in node.outputs} | {value.name for value in one.inputs}
    assert all(value.name in made for value in one.outputs)
    assert len(three.outputs) == 3


def test_ours_for_operators_of_onnxruntime() -> None:
    node = _node("CDist", Tensor(F32, (2, 4)), Tensor(F32, (3, 4)), domain="com.microsoft")
    function, opsets = _body(node, 1, "com.microsoft")
    assert (function.domain, function.name, opsets) == ("com.microsoft", "CDist", {"": 21, "other": 3})
    assert function_body(_node("Tokenizer", X, domain="com.microsoft"), "com.microsoft", 1) is None
    strange = _node("CDist", X, X, domain="com.microsoft", metric="cosine")
    with pytest.raises(NoNativeLowering, match="unsupported-attribute: the metric cosine"):
        function_body(strange, "com.microsoft", 1)


QUERIES = "(float[1, 2, 3, 4] q, float[1, 2, 5, 4] k, float[1, 2, 5, 4] v, {} m) => (y) {{ y = test.Op (q, k, v, m) }}"


@pytest.mark.parametrize(
    ("mask", "dtype"), [("int32[3, 5]", F32), ("bool[3, 5]", np.dtype(bool)), ("float[3, 5]", F32)]
)
def test_a_mask_of_integers_is_made_numbers(mask: str, dtype: np.dtype[Any]) -> None:
    seen: list[Any] = []

    def lowering(node: OnnxNode) -> Any:
        node.source = ir.Node("", "Attention", node.source.inputs)
        changed = as_its_body_takes_it(node, "")
        seen.append([t.dtype for t in changed.present()])
        assert (changed is node) == (node[MASK].dtype == dtype)
        node.source = ir.Node("", "Other", node.source.inputs)
        assert as_its_body_takes_it(node, "") is node
        return changed[MASK]

    read_with(QUERIES.format(mask), lowering)
    assert seen == [[F32, F32, F32, dtype]]


def test_the_numbers_are_those_of_the_mask() -> None:
    def lowering(node: OnnxNode) -> Any:
        node.source = ir.Node("", "Attention", node.source.inputs)
        return as_its_body_takes_it(node, "")[MASK]

    rng = np.random.default_rng()
    q, k, v = (rng.standard_normal((1, 2, size, 4)).astype(np.float32) for size in (3, 5, 5))
    m = rng.integers(-5, 5, (3, 5)).astype(np.int32)
    np.testing.assert_array_equal(
        computed(QUERIES.format("int32[3, 5]"), lowering, q, k, v, m)[0], m.astype(np.float32)
    )
