"""Models as others still run them: operators that the standard dropped or has had only since, and operator sets that
the model does not name."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper

import fuseline
from fuseline.errors import FuselineError
from tests.draws import RNG
from tests.one_node import by_onnxruntime, feeds_of, one_node

Array = NDArray[Any]


def normal(*shape: int, dtype: type = np.float32) -> Array:
    return RNG.standard_normal(shape).astype(dtype)


IMAGE = normal(2, 3, 5, 7)
CASES: dict[str, tuple[str, int, list[Array], dict[str, Any]]] = {
    "Affine": ("Affine", 7, [normal(3, 5)], {"alpha": 1.7, "beta": -0.3}),
    "Affine by default": ("Affine", 7, [normal(3, 5)], {}),
    "Scale": ("Scale", 7, [normal(3, 5)], {"scale": -2.5}),
    "ParametricSoftplus": ("ParametricSoftplus", 7, [normal(3, 5)], {"alpha": 1.5, "beta": -0.7}),
    "ScaledTanh": ("ScaledTanh", 7, [normal(3, 5)], {"alpha": 1.5, "beta": 0.7}),
    "ThresholdedRelu": ("ThresholdedRelu", 7, [normal(3, 5)], {"alpha": 0.3}),
    "ImageScaler": ("ImageScaler", 7, [IMAGE], {"scale": 0.7, "bias": [0.1, -0.2, 0.3]}),
    "Crop a border": ("Crop", 7, [IMAGE], {"border": [1, 0, 2, 1]}),
    "Crop to a size": ("Crop", 7, [IMAGE], {"border": [2, 1, 0, 0], "scale": [3, 4]}),
    "Crop to nothing": ("Crop", 7, [IMAGE], {"border": [3, 2, 4, 3]}),
    "MeanVarianceNormalization": ("MeanVarianceNormalization", 7, [IMAGE], {}),
    "MeanVarianceNormalization across channels": ("MeanVarianceNormalization", 8, [IMAGE], {"across_channels": 1}),
    "MeanVarianceNormalization, only the mean": ("MeanVarianceNormalization", 8, [IMAGE], {"normalize_variance": 0}),
    "SimplifiedLayerNormalization": ("SimplifiedLayerNormalization", 12, [normal(4, 6), normal(6)], {"epsilon": 1e-3}),
    "SimplifiedLayerNormalization of an axis": ("SimplifiedLayerNormalization", 17, [IMAGE, normal(7)], {"axis": 3}),
    "LayerNormalization": ("LayerNormalization", 9, [normal(4, 6), normal(6), normal(6)], {"axis": -1}),
    "LayerNormalization of axes": ("LayerNormalization", 16, [IMAGE, normal(5, 7), normal(5, 7)], {"axis": 2}),
    "LayerNormalization without a bias": ("LayerNormalization", 13, [normal(4, 6), normal(6)], {}),
    "DynamicSlice": ("DynamicSlice", 7, [IMAGE, np.array([1, -3]), np.array([2, 1000]), np.array([1, 3])], {}),
}


@pytest.mark.parametrize("name", CASES)
def test_onnxruntime_agrees(name: str):
    op_type, opset, inputs, attributes = CASES[name]
    indices = range(1, len(inputs)) if op_type == "DynamicSlice" else ()
    proto = one_node(op_type, inputs, attributes, opset=opset, constants=indices)
    feeds = feeds_of(inputs, indices)
    (wanted,) = by_onnxruntime(proto, feeds)
    for target in ("cpu", "interpreter"):
        program = fuseline.compile(proto, target=target, threads=1)
        assert program.stats["host_ops"] == 0
        found = program.run(feeds)["o0"]
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(found, wanted, rtol=2e-6, atol=2e-6)


def test_a_scale_of_another_type_gives_the_result_its_type():
    inputs = [normal(4, 6, dtype=np.float16), normal(6), normal(6)]
    proto, feeds = one_node("LayerNormalization", inputs, opset=12), feeds_of(inputs)
    found = fuseline.compile(proto, threads=1).run(feeds)["o0"]
    assert found.dtype == np.float32
    wide = inputs[0].astype(np.float64)
    wanted = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5) * inputs[1] + inputs[2]
    np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


def test_an_early_operator_leaves_the_others_in_their_version():
    """Unsqueeze has its axes as an attribute before operator set 13."""
    nodes = [
        helper.make_node("LayerNormalization", ["x", "s"], ["n"]),
        helper.make_node("Unsqueeze", ["n"], ["y"], axes=[1]),
    ]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 4] if name == "x" else None) for name in "xy"]
    scale = onnx.numpy_helper.from_array(normal(4), "s")
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:], [scale])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)
    feeds = {"x": normal(3, 4)}
    np.testing.assert_allclose(
        fuseline.compile(proto, threads=1).run(feeds)["y"], by_onnxruntime(proto, feeds)[0], rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("op_type", ["LayerNormalization", "DynamicSlice"])
def test_of_unknown_rank_on_the_host(op_type: str):
    name = op_type
    _, opset, inputs, attributes = CASES[name]
    indices = range(1, len(inputs)) if op_type == "DynamicSlice" else ()
    proto = one_node(op_type, inputs, attributes, opset=opset, constants=indices, ranks=False)
    feeds = feeds_of(inputs, indices)
    found = fuseline.compile(proto, threads=1).run(feeds)["o0"]
    np.testing.assert_allclose(found, by_onnxruntime(proto, feeds)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("op_type", "attributes"),
    [
        ("ScaledTanh", {"alpha": 1.0}),
        ("ImageScaler", {"bias": [0.1, 0.2]}),
        ("Crop", {"border": [1, 2]}),
        ("Crop", {"border": [-1, 0, 0, 0]}),
        ("Crop", {"border": [1, 2, 0, 0], "scale": [1]}),
    ],
)
def test_attributes_that_do_not_fit(op_type: str, attributes: dict[str, Any]):
    with pytest.raises(FuselineError, match="E0105 .node.: "):
        fuseline.compile(one_node(op_type, [IMAGE], attributes, opset=7), target="null")


@pytest.mark.parametrize("border", [[0, 3, 0, 3], [5, 0, 3, 0]])
def test_a_border_that_is_larger_than_the_image(border: list[int]):
    proto = one_node("Crop", [IMAGE], {"border": border}, opset=7)
    with pytest.raises(FuselineError, match="E0(107|203).*node"):
        fuseline.compile(proto, threads=1)(IMAGE)


SCALER: dict[str, Any] = {"offset": [0.5], "scale": [2.0]}
IMPORTS: dict[str, tuple[list[onnx.OperatorSetIdProto], onnx.NodeProto]] = {
    "only another domain": ([helper.make_opsetid("com.microsoft", 1)], helper.make_node("Relu", ["x"], ["y"])),
    "the default domain by its long name": (
        [helper.make_opsetid("ai.onnx", 13)],
        helper.make_node("Relu", ["x"], ["y"], domain="ai.onnx"),
    ),
    "ai.onnx.ml is missing": (
        [helper.make_opsetid("", 13)],
        helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", **SCALER),
    ),
    "only ai.onnx.ml": ([helper.make_opsetid("ai.onnx.ml", 2)], helper.make_node("Relu", ["x"], ["y"])),
    "an operator of com.microsoft": (
        [helper.make_opsetid("com.microsoft", 1)],
        helper.make_node("FastGelu", ["x"], ["y"], domain="com.microsoft"),
    ),
}


@pytest.mark.parametrize("name", IMPORTS)
def test_operator_sets_that_the_model_does_not_import(name: str):
    imports, node = IMPORTS[name]
    x, y = (helper.make_tensor_value_info(text, TensorProto.FLOAT, [3, 4]) for text in "xy")
    proto = helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=imports, ir_version=8)
    feeds = {"x": normal(3, 4)}
    np.testing.assert_allclose(
        fuseline.compile(proto, threads=1).run(feeds)["y"], by_onnxruntime(proto, feeds)[0], rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("size", [-1, None, "None", "?", "", "unknown"])
def test_free_sizes_are_free_each_by_itself(size: int | str | None):
    """`Det` runs on the host, so that the declared sizes of its output count, too."""
    nodes = [helper.make_node("Add", ["x", "z"], ["s"]), helper.make_node("Det", ["s"], ["y"])]
    infos = [
        helper.make_tensor_value_info(text, TensorProto.FLOAT, [size, size, size] if text != "y" else [size])
        for text in "xzy"
    ]
    proto = helper.make_model(
        helper.make_graph(nodes, "g", infos[:2], infos[2:]), opset_imports=[helper.make_opsetid("", 13)], ir_version=8
    )
    feeds = {"x": normal(4, 3, 3), "z": normal(4, 3, 3)}
    for target in ("cpu", "interpreter"):
        found = fuseline.compile(proto, target=target, threads=1).run(feeds)["y"]
        np.testing.assert_allclose(found, np.linalg.det(feeds["x"] + feeds["z"]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["no type", "no shape"])
def test_an_input_that_is_an_output_keeps_its_sizes(kind: str):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    again = (
        onnx.ValueInfoProto(name="x")
        if kind == "no type"
        else helper.make_tensor_value_info("x", TensorProto.FLOAT, None)
    )
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [onnx.ValueInfoProto(name="y"), again]
    )
    graph.initializer.append(onnx.numpy_helper.from_array(normal(3, 4), "w"))
    program = fuseline.compile(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), threads=1
    )
    assert program.stats["host_ops"] == 0
    given = normal(2, 3)
    np.testing.assert_array_equal(program.run({"x": given})["x"], given)
