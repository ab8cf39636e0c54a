"""Sizes at the edge: free ones that turn out 0 or 1, sums over a size that only one operand tells, axes of one element,
sizes as data."""

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
from tests.graphs.onnx_text import attributes_of, element_of, onnx_model
from tests.one_node import by_onnxruntime

Array = NDArray[Any]
Inputs = dict[str, tuple[list[int | str], Array]]


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def bytes_of(dtype: Any, *shape: int) -> Array:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


def model(
    nodes: list[str], inputs: Inputs, weights: dict[str, Array], outputs: str = "y", opset: int = 18
) -> onnx.ModelProto:
    given = [f"{element_of(array.dtype)}[{', '.join(map(str, dims))}] {name}" for name, (dims, array) in inputs.items()]
    text = f"({', '.join(given)}) => ({', '.join(outputs.split())}) {{ {' '.join(nodes)} }}"
    return onnx_model(text, weights, opset=opset)


def agree(proto: onnx.ModelProto, feeds: dict[str, Array], target: str, rtol: float = 1e-5) -> fuseline.CompiledModel:
    """Compile, run and compare with onnxruntime."""
    program = fuseline.compile(proto, target=target, threads=1)
    for found, wanted in zip(program.run(feeds).values(), by_onnxruntime(proto, feeds), strict=True):
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol)
    return program


def product(op_type: str, steps: int, left: Any, right: Any) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A product of integers whose number of steps only the constant tells. Signed weights have 7 bits: onnxruntime
    saturates sums of two products with larger ones on machines that have no instruction for them."""
    x, w, scale = bytes_of(left, 3, steps), bytes_of(right, steps, 17), np.float32(0.02)
    w = w // 2 if right == np.int8 else w
    weights: dict[str, Any] = {
        "w": w,
        "s": scale,
        "zx": left(3),
        "zw": right(-2 if right == np.int8 else 2),
        "zy": left(1),
    }
    names = ["x", "w", "zx", "zw"] if op_type == "MatMulInteger" else ["x", "s", "zx", "w", "s", "zw", "s", "zy"]
    used = {name: weights[name] for name in dict.fromkeys(names) if name != "x"}
    return model([f"y = {op_type}({', '.join(names)})"], {"x": (["m", "k"], x)}, used), {"x": x}


@pytest.mark.parametrize("steps", [1, 4, 5, 33])
@pytest.mark.parametrize(("left", "right"), [(np.uint8, np.int8), (np.int8, np.int8), (np.uint8, np.uint8)])
@pytest.mark.parametrize("op_type", ["MatMulInteger", "QLinearMatMul"])
def test_integer_products_of_a_free_number_of_steps(op_type: str, left: Any, right: Any, steps: int):
    proto, feeds = product(op_type, steps, left, right)
    agree(proto, feeds, "cpu", 1e-6 if op_type == "MatMulInteger" else 1)  # ties of a scaled sum may go either way
    with pytest.raises(FuselineError, match="E0203"):
        fuseline.compile(proto, threads=1).run({"x": bytes_of(left, 3, steps + 1)})


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_integer_convolutions_of_free_channels(channels: int):
    x, w = bytes_of(np.uint8, 1, channels, 6, 6), bytes_of(np.uint8, 4, channels, 3, 3)
    proto = model(["y = ConvInteger(x, w)"], {"x": (["n", "c", "h", "v"], x)}, {"w": w})
    agree(proto, {"x": x}, "cpu")


ATTENTION = [
    *(f"{part} = MatMul(x, w{part}) {part}s = Reshape({part}, split)" for part in "qkv"),
    "qt = Transpose<perm = [0, 2, 1, 3]>(qs)",
    "kt = Transpose<perm = [0, 2, 3, 1]>(ks)",
    "vt = Transpose<perm = [0, 2, 1, 3]>(vs)",
    "scores = MatMul(qt, kt)",
    "shares = Softmax(scores)",
    "context = MatMul(shares, vt)",
    "back = Transpose<perm = [0, 2, 1, 3]>(context)",
    "y = Reshape(back, join)",
]
IMAGES = [
    "c = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w)",
    "r = Relu(c)",
    "m = MaxPool<kernel_shape = [2, 2]>(r)",
    "y = GlobalAveragePool(m)",
]


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("shape", [(2, 5, 8), (0, 5, 8), (2, 0, 8), (1, 1, 8)])
def test_no_sequences_and_sequences_of_nothing(shape: tuple[int, ...], target: str):
    weights: dict[str, Array] = {f"w{part}": normal(8, 8) for part in "qkv"}
    weights |= {"split": np.array([0, 0, 2, 4]), "join": np.array([0, 0, 8])}
    x = normal(*shape)
    program = agree(model(ATTENTION, {"x": (["batch", "length", 8], x)}, weights), {"x": x}, target)
    assert program.stats["host_ops"] == 0


@pytest.mark.parametrize("batch", [0, 2])
def test_no_images(batch: int):
    x = normal(batch, 3, 9, 8)
    program = agree(model(IMAGES, {"x": (["batch", 3, "h", "v"], x)}, {"w": normal(4, 3, 3, 3)}), {"x": x}, "cpu")
    assert program.stats["host_ops"] == 0


@pytest.mark.parametrize(
    "form", [{"auto_pad": "SAME_LOWER"}, {"ceil_mode": 1, "strides": [2, 2]}, {"pads": [1, 1, 0, 2]}]
)
@pytest.mark.parametrize("op_type", ["AveragePool", "MaxPool"])
def test_windows_over_no_rows_are_none(op_type: str, form: dict[str, Any]):
    """Peers refuse it; the windows of a row are counted differently at its ends, and there are none of them."""
    proto = model(
        [f"y = {op_type}{attributes_of({'kernel_shape': [2, 2], **form})}(x)"],
        {"x": ([2, 3, 0, 7], normal(2, 3, 0, 7))},
        {},
    )
    (found,) = fuseline.compile(proto, threads=1).run({"x": normal(2, 3, 0, 7)}).values()
    assert found.shape[:3] == (2, 3, 0) and found.shape[3] > 0


def test_a_loop_without_steps_is_refused_by_name():
    """An empty batch is fine, an empty sequence has no last state."""
    nodes = ["[lstm] o, y = LSTM<hidden_size = 4>(x, w, r)"]
    proto = model(
        nodes, {"x": (["length", "batch", 3], normal(5, 2, 3))}, {"w": normal(1, 16, 3), "r": normal(1, 16, 4)}
    )
    program = fuseline.compile(proto, threads=1)
    assert program.stats["host_ops"] == 0
    assert program.run({"x": normal(5, 0, 3)})["y"].shape == (1, 0, 4)
    with pytest.raises(FuselineError, match="E0203 .lstm.: .*at least 1"):
        program.run({"x": normal(0, 2, 3)})


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("kind", ["INT32", "INT8", "UINT8", "UINT64", "FLOAT", "DOUBLE", "FLOAT16"])
def test_sizes_as_numbers_of_every_type(kind: str, target: str):
    number = TensorProto.DataType.Value(kind)
    nodes = ["s = Shape(x)", f"y = Cast<to = {number}>(s)"]
    nodes.append("t, i = TopK(y, one)")
    x = normal(7, 5)
    proto = model(
        nodes,
        {"x": (["a", "b"], x)},
        {"one": np.array([1])},
        "y i",
        opset=24 if kind not in ("INT8", "UINT8", "FLOAT16") else 18,
    )
    program = fuseline.compile(proto, target=target, threads=1)
    found = program.run({"x": x})
    assert found["y"].tolist() == [7, 5] and found["i"].tolist() == [0]
    assert found["y"].dtype == helper.tensor_dtype_to_np_dtype(number)


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("equation", ["ab,be->a", "ab,be->", "ab,be->b", "ab,be->ae", "be,ab->a"])
@pytest.mark.parametrize("shape", [(3, 1), (1, 2), (1, 1)])
def test_letters_of_one_element(shape: tuple[int, int], equation: str, target: str):
    x, w = normal(2, 3), normal(*shape)
    names = ["w", "x"] if equation.startswith("be") else ["x", "w"]
    agree(
        model([f'y = Einsum<equation = "{equation}">({", ".join(names)})'], {"x": ([2, 3], x)}, {"w": w}),
        {"x": x},
        target,
    )


OPTIONS: list[dict[str, Any]] = [{}, {"exclusive": 1}, {"exclusive": 1, "reverse": 1}]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("size", [1, 3])
def test_sums_so_far_of_one_element(size: int, options: dict[str, Any]):
    nodes = [
        "r = ReduceMax<axes = [0], keepdims = 1>(x)",
        f"y = CumSum{attributes_of(options)}(r, axis)",
    ]
    x = normal(size)
    agree(model(nodes, {"x": ([size], x)}, {"axis": np.array(0)}, opset=13), {"x": x}, "cpu")


def test_a_declared_size_that_is_wrong_is_no_obstacle():
    """Nothing reads the output, so nothing rests on what the model says of it."""
    sizes = np.array([2, 3, 4])
    proto = model(["y = ConstantOfShape(x)"], {"x": ([3], sizes)}, {})
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 3, 2]))
    assert fuseline.compile(proto, threads=1).run({"x": sizes})["y"].shape == (2, 3, 4)


@pytest.mark.parametrize("k", [0, 2, -4, 9])
@pytest.mark.parametrize("shape", [(5, 7), (0, 3), (6, 1)])
def test_a_diagonal_of_any_size(shape: tuple[int, int], k: int):
    """It is computed where it is read, as one too large for a constant is."""
    x = normal(*shape)
    program = agree(model([f"y = EyeLike<k = {k}>(x)"], {"x": (["n", "m"], x)}, {}), {"x": x}, "cpu")
    assert program.stats["host_ops"] == 0
