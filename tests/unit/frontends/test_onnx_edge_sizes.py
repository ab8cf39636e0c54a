"""Sizes at the edge: free ones that turn out 0 or 1, sums over a size that only one operand tells, axes of one element,
sizes as data."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import fuseline
from fuseline.errors import FuselineError
from tests.one_node import by_onnxruntime, element_of

Array = NDArray[Any]
RNG = np.random.default_rng(21)
Inputs = dict[str, tuple[list[int | str], Array]]


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def bytes_of(dtype: Any, *shape: int) -> Array:
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


def model(
    nodes: list[onnx.NodeProto], inputs: Inputs, weights: dict[str, Array], outputs: str = "y", opset: int = 18
) -> onnx.ModelProto:
    given = [helper.make_tensor_value_info(name, element_of(array), dims) for name, (dims, array) in inputs.items()]
    held = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "g", given, [onnx.ValueInfoProto(name=name) for name in outputs.split()], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def agree(proto: onnx.ModelProto, feeds: dict[str, Array], target: str, rtol: float = 1e-5) -> fuseline.CompiledModel:
    """Compile, run and compare with onnxruntime."""
    program = fuseline.compile(proto, target=target, threads=1)
    for found, wanted in zip(program.run(feeds).values(), by_onnxruntime(proto, feeds), strict=True):
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol)
    return program


def product(op_type: str, steps: int, left: Any, right: Any) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A product of integers whose number of steps only the constant tells."""
    x, w, scale = bytes_of(left, 3, steps), bytes_of(right, steps, 17), np.float32(0.02)
    weights: dict[str, Any] = {
        "w": w,
        "s": scale,
        "zx": left(3),
        "zw": right(-2 if right == np.int8 else 2),
        "zy": left(1),
    }
    names = ["x", "w", "zx", "zw"] if op_type == "MatMulInteger" else ["x", "s", "zx", "w", "s", "zw", "s", "zy"]
    used = {name: weights[name] for name in dict.fromkeys(names) if name != "x"}
    return model([helper.make_node(op_type, names, ["y"])], {"x": (["m", "k"], x)}, used), {"x": x}


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
    proto = model([helper.make_node("ConvInteger", ["x", "w"], ["y"])], {"x": (["n", "c", "h", "v"], x)}, {"w": w})
    agree(proto, {"x": x}, "cpu")


ATTENTION = [
    *(helper.make_node("MatMul", ["x", f"w{part}"], [part]) for part in "qkv"),
    *(helper.make_node("Reshape", [part, "split"], [f"{part}s"]) for part in "qkv"),
    *(
        helper.make_node("Transpose", [f"{part}s"], [f"{part}t"], perm=[0, 2, 3, 1] if part == "k" else [0, 2, 1, 3])
        for part in "qkv"
    ),
    helper.make_node("MatMul", ["qt", "kt"], ["scores"]),
    helper.make_node("Softmax", ["scores"], ["shares"]),
    helper.make_node("MatMul", ["shares", "vt"], ["context"]),
    helper.make_node("Transpose", ["context"], ["back"], perm=[0, 2, 1, 3]),
    helper.make_node("Reshape", ["back", "join"], ["y"]),
]
IMAGES = [
    helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2]),
    helper.make_node("Relu", ["c"], ["r"]),
    helper.make_node("MaxPool", ["r"], ["m"], kernel_shape=[2, 2]),
    helper.make_node("GlobalAveragePool", ["m"], ["y"]),
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
        [helper.make_node(op_type, ["x"], ["y"], kernel_shape=[2, 2], **form)],
        {"x": ([2, 3, 0, 7], normal(2, 3, 0, 7))},
        {},
    )
    (found,) = fuseline.compile(proto, threads=1).run({"x": normal(2, 3, 0, 7)}).values()
    assert found.shape[:3] == (2, 3, 0) and found.shape[3] > 0


def test_a_loop_without_steps_is_refused_by_name():
    """An empty batch is fine, an empty sequence has no last state."""
    nodes = [helper.make_node("LSTM", ["x", "w", "r"], ["o", "y"], name="lstm", hidden_size=4)]
    proto = model(
        nodes, {"x": (["length", "batch", 3], normal(5, 2, 3))}, {"w": normal(1, 16, 3), "r": normal(1, 16, 4)}
    )
    program = fuseline.compile(proto, threads=1)
    assert program.stats["host_ops"] == 0
    assert program.run({"x": normal(5, 0, 3)})["y"].shape == (1, 0, 4)
    with pytest.raises(FuselineError, match="E0203 .lstm.: .*at least 1"):
        program.run({"x": normal(0, 2, 3)})


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("element", ["INT32", "INT8", "UINT8", "UINT64", "FLOAT", "DOUBLE", "FLOAT16"])
def test_sizes_as_numbers_of_every_type(element: str, target: str):
    kind = TensorProto.DataType.Value(element)
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Cast", ["s"], ["y"], to=kind)]
    nodes.append(helper.make_node("TopK", ["y", "one"], ["t", "i"]))
    x = normal(7, 5)
    proto = model(
        nodes,
        {"x": (["a", "b"], x)},
        {"one": np.array([1])},
        "y i",
        opset=24 if element not in ("INT8", "UINT8", "FLOAT16") else 18,
    )
    program = fuseline.compile(proto, target=target, threads=1)
    found = program.run({"x": x})
    assert found["y"].tolist() == [7, 5] and found["i"].tolist() == [0]
    assert found["y"].dtype == helper.tensor_dtype_to_np_dtype(kind)


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("equation", ["ab,be->a", "ab,be->", "ab,be->b", "ab,be->ae", "be,ab->a"])
@pytest.mark.parametrize("shape", [(3, 1), (1, 2), (1, 1)])
def test_letters_of_one_element(shape: tuple[int, int], equation: str, target: str):
    x, w = normal(2, 3), normal(*shape)
    names = ["w", "x"] if equation.startswith("be") else ["x", "w"]
    agree(
        model([helper.make_node("Einsum", names, ["y"], equation=equation)], {"x": ([2, 3], x)}, {"w": w}),
        {"x": x},
        target,
    )


OPTIONS: list[dict[str, Any]] = [{}, {"exclusive": 1}, {"exclusive": 1, "reverse": 1}]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("size", [1, 3])
def test_sums_so_far_of_one_element(size: int, options: dict[str, Any]):
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["r"], axes=[0], keepdims=1),
        helper.make_node("CumSum", ["r", "axis"], ["y"], **options),
    ]
    x = normal(size)
    agree(model(nodes, {"x": ([size], x)}, {"axis": np.array(0)}, opset=13), {"x": x}, "cpu")


def test_a_declared_size_that_is_wrong_is_no_obstacle():
    """Nothing reads the output, so nothing rests on what the model says of it."""
    sizes = np.array([2, 3, 4])
    proto = model([helper.make_node("ConstantOfShape", ["x"], ["y"])], {"x": ([3], sizes)}, {})
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 3, 2]))
    assert fuseline.compile(proto, threads=1).run({"x": sizes})["y"].shape == (2, 3, 4)


@pytest.mark.parametrize("k", [0, 2, -4, 9])
@pytest.mark.parametrize("shape", [(5, 7), (0, 3), (6, 1)])
def test_a_diagonal_of_any_size(shape: tuple[int, int], k: int):
    """It is computed where it is read, as one too large for a constant is."""
    x = normal(*shape)
    program = agree(
        model([helper.make_node("EyeLike", ["x"], ["y"], k=k)], {"x": (["n", "m"], x)}, {}), {"x": x}, "cpu"
    )
    assert program.stats["host_ops"] == 0
