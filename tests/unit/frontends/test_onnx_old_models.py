"""Models as others still run them: operators that the standard dropped or has had only since, and operator sets that
the model does not name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.errors import FuselineError
from tests.draws import RNG
from tests.graphs.onnx_text import declared, onnx_model
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
    nodes = "n = LayerNormalization(x, s)  y = Unsqueeze<axes = [1]>(n)"
    proto = onnx_model(f"(float[3, 4] x) => (float[] y) {{ {nodes} }}", opset=11, s=normal(4))
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


IMPORTS = {
    "only another domain": ({"com.microsoft": 1}, "y = Relu(x)"),
    "the default domain by its long name": ({"ai.onnx": 13}, "y = ai.onnx.Relu(x)"),
    "ai.onnx.ml is missing": ({"": 13}, "y = ai.onnx.ml.Scaler<offset = [0.5], scale = [2.0]>(x)"),
    "only ai.onnx.ml": ({"ai.onnx.ml": 2}, "y = Relu(x)"),
    "an operator of com.microsoft": ({"com.microsoft": 1}, "y = com.microsoft.FastGelu(x)"),
}


@pytest.mark.parametrize("name", IMPORTS)
def test_operator_sets_that_the_model_does_not_import(name: str):
    imports, node = IMPORTS[name]
    proto = onnx_model(f"(float[3, 4] x) => (float[3, 4] y) {{ {node} }}", imports=imports)
    feeds = {"x": normal(3, 4)}
    np.testing.assert_allclose(
        fuseline.compile(proto, threads=1).run(feeds)["y"], by_onnxruntime(proto, feeds)[0], rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("size", [-1, None, "None", "?", "", "unknown"])
def test_free_sizes_are_free_each_by_itself(size: int | str | None):
    """`Det` runs on the host, so that the declared sizes of its output count, too."""
    shape = [size] * 3
    inputs, y = declared({"x": shape, "z": shape}), declared({"y": [size]})
    proto = onnx_model(f"({inputs}) => ({y}) {{ s = Add(x, z)  y = Det(s) }}", opset=13)
    feeds = {"x": normal(4, 3, 3), "z": normal(4, 3, 3)}
    for target in ("cpu", "interpreter"):
        found = fuseline.compile(proto, target=target, threads=1).run(feeds)["y"]
        np.testing.assert_allclose(found, np.linalg.det(feeds["x"] + feeds["z"]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["no type", "no shape"])
def test_an_input_that_is_an_output_keeps_its_sizes(kind: str):
    again = "x" if kind == "no type" else "float[] x"
    proto = onnx_model(f"(float[2, 3] x) => (y, {again}) {{ y = MatMul(x, w) }}", opset=13, w=normal(3, 4))
    program = fuseline.compile(proto, threads=1)
    assert program.stats["host_ops"] == 0
    given = normal(2, 3)
    np.testing.assert_array_equal(program.run({"x": given})["x"], given)
