"""onnxruntime's own operators, spelled out in standard ones: the same numbers as onnxruntime's, and nothing on the
host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto

import fuseline
from fuseline.errors import FuselineError
from fuseline.frontends.onnx.contrib import in_standard_operators
from tests.draws import RNG
from tests.graphs.onnx_text import call, declared, onnx_model

ort = pytest.importorskip("onnxruntime")
Array = NDArray[Any]
Input = Array | np.generic | str
SCALE, ZERO, OUT_SCALE, OUT_ZERO = np.float32(0.05), np.uint8(120), np.float32(0.04), np.uint8(100)


def model(op_type: str, fed: dict[str, Array], inputs: Sequence[Input], **attributes: Any) -> onnx.ModelProto:
    """One node; strings name what is fed, arrays are constants."""
    names = [value if isinstance(value, str) else f"c{i}" for i, value in enumerate(inputs)]
    weights = {name: value for name, value in zip(names, inputs, strict=True) if not isinstance(value, str)}
    node = call(f"com.microsoft.{op_type}", *names, name="node", **attributes)
    imports = {"": 17, "com.microsoft": 1}
    return onnx_model(f"({declared(fed)}) => (y) {{ {node} }}", weights, imports=imports)


def agree(op_type: str, fed: dict[str, Array], inputs: Sequence[Input], **attributes: Any) -> None:
    proto = model(op_type, fed, inputs, **attributes)
    (expected,) = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, fed)
    program = fuseline.compile(proto, target="interpreter")
    ours = program.run(fed)["y"]
    assert program.stats["host_ops"] == 0
    assert (ours.dtype, ours.shape) == (expected.dtype, expected.shape)
    tolerance = (
        1 if expected.dtype.kind in "iu" else 2e-5 * max(1.0, float(np.abs(expected).max()))
    )  # onnxruntime's fused kernels round once less
    np.testing.assert_allclose(ours.astype(np.float64), expected.astype(np.float64), rtol=1e-5, atol=tolerance)


def bytes_of(*shape: int) -> Array:
    return RNG.integers(60, 190, shape).astype(np.uint8)


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("op_type", ["QLinearAdd", "QLinearMul"])
def test_pairs(op_type: str):
    fed = {"a": bytes_of(2, 5), "b": bytes_of(5)}
    agree(op_type, fed, ["a", SCALE, ZERO, "b", np.float32(0.02), np.uint8(130), OUT_SCALE, OUT_ZERO])


@pytest.mark.parametrize(
    ("op_type", "shape", "attributes"),
    [
        ("QLinearSigmoid", (2, 5), {}),
        ("QLinearLeakyRelu", (2, 5), {"alpha": 0.2}),
        ("QLinearGlobalAveragePool", (2, 3, 4, 5), {}),
        ("QLinearAveragePool", (2, 3, 6, 7), {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}),
        ("QLinearSoftmax", (2, 5), {"axis": -1, "opset": 13}),
    ],
)
def test_singles(op_type: str, shape: tuple[int, ...], attributes: dict[str, Any]):
    scale, zero = (
        (np.float32(1 / 256), np.uint8(0)) if op_type in ("QLinearSigmoid", "QLinearSoftmax") else (OUT_SCALE, OUT_ZERO)
    )
    agree(op_type, {"x": bytes_of(*shape)}, ["x", SCALE, ZERO, scale, zero], **attributes)


def test_concat():
    fed = {"a": bytes_of(2, 3), "b": bytes_of(2, 4)}
    agree("QLinearConcat", fed, [OUT_SCALE, OUT_ZERO, "a", SCALE, ZERO, "b", np.float32(0.02), np.uint8(130)], axis=1)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("quantized", [True, False])
@pytest.mark.parametrize("transposed", [0, 1])
def test_gemm_with_a_scale_per_column(bias: bool, quantized: bool, transposed: int):
    weight = RNG.integers(-60, 60, (4, 6)).astype(np.int8)
    scales, zeros = RNG.uniform(0.01, 0.03, 4).astype(np.float32), np.zeros(4, np.int8)
    inputs: list[Input] = ["a", SCALE, ZERO, weight if transposed else weight.T.copy(), scales, zeros]
    inputs.append(RNG.integers(-500, 500, 4).astype(np.int32) if bias else "")
    agree(
        "QGemm",
        {"a": bytes_of(3, 6)},
        [*inputs, *((np.float32(0.2), OUT_ZERO) if quantized else ())],
        transB=transposed,
    )


@pytest.mark.parametrize("bias", [True, False])
def test_integer_products(bias: bool):
    b, scale, zero = bytes_of(6, 4), np.float32(0.02), np.uint8(128)
    agree(
        "MatMulIntegerToFloat",
        {"a": bytes_of(2, 3, 6)},
        ["a", b, SCALE, scale, ZERO, zero, *([normal(4)] if bias else [])],
    )
    agree("DynamicQuantizeMatMul", {"a": normal(3, 6)}, ["a", b, scale, zero, *([normal(4)] if bias else [])])


@pytest.mark.parametrize("op_type", ["Gelu", "BiasGelu", "FastGelu", "QuickGelu"])
def test_gelus(op_type: str):
    agree(op_type, {"x": normal(3, 8)}, ["x", *([normal(8)] if op_type in ("BiasGelu", "FastGelu") else [])])


@pytest.mark.parametrize("op_type", ["Gelu", "BiasGelu", "FastGelu", "QuickGelu"])
def test_gelus_of_halves(op_type: str):
    x = normal(3, 8).astype(np.float16)
    proto = model(
        op_type, {"x": x}, ["x", *([normal(8).astype(np.float16)] if op_type in ("BiasGelu", "FastGelu") else [])]
    )
    halves, wide = fuseline.compile(proto, threads=1)(x), fuseline.compile(proto, target="interpreter")(x)
    assert np.asarray(halves).dtype == np.float16
    np.testing.assert_allclose(halves, wide, rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize(
    ("activation", "parameters"), [("Relu", []), ("LeakyRelu", [0.1]), ("HardSigmoid", [0.2, 0.4])]
)
def test_a_fused_convolution(activation: str, parameters: list[float]):
    attributes = (
        {"activation": activation, "activation_params": parameters} if parameters else {"activation": activation}
    )
    agree("FusedConv", {"x": normal(1, 3, 6, 6)}, ["x", normal(4, 3, 3, 3), normal(4)], pads=[1, 1, 1, 1], **attributes)


@pytest.mark.parametrize(
    ("op_type", "attributes"),
    [
        ("FusedConv", {"activation": "Erf"}),
        ("QLinearOther", {}),
    ],
)
def test_what_is_not_spelled_out_is_refused_by_name(op_type: str, attributes: dict[str, Any]):
    proto = model(op_type, {"x": bytes_of(1, 2, 3, 3)}, ["x", SCALE, ZERO, OUT_SCALE, OUT_ZERO], **attributes)
    with pytest.raises(FuselineError, match=op_type) as raised:
        fuseline.compile(proto, target="interpreter")
    assert raised.value.code == "E0103"


def test_the_model_given_is_left_as_it_was():
    proto = model("QLinearSigmoid", {"x": bytes_of(2)}, ["x", SCALE, ZERO, OUT_SCALE, OUT_ZERO])
    before = proto.SerializeToString()
    spelled = in_standard_operators(proto, {"": 13})
    assert spelled is not proto and proto.SerializeToString() == before
    assert in_standard_operators(spelled, {"": 13}) is spelled
    assert spelled.graph.node[-1].name == "node"
    assert all(node.domain != "com.microsoft" for node in spelled.graph.node)
    assert TensorProto.UINT8 == spelled.graph.input[0].type.tensor_type.elem_type


def test_the_bodies_of_what_only_onnxruntime_runs_are_left_to_it():
    inner = "decoder () => (y) { y = com.microsoft.DequantizeLinear(x, s) }"
    search = f"z = com.microsoft.BeamSearch<decoder = {inner}>(ids)"
    branch = f"w = If<then_branch = {inner}, else_branch = {inner}>(yes)"
    spelled = in_standard_operators(onnx_model(f"() => () {{ {search}  {branch} }}"), {"": 13})
    (kept,), (first, second) = ([a.g for a in node.attribute] for node in spelled.graph.node)
    assert [node.op_type for node in kept.node] == ["DequantizeLinear"] and kept.node[0].domain == "com.microsoft"
    assert all(node.domain == "" for graph in (first, second) for node in graph.node)
