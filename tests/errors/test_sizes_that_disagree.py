"""Feeds whose sizes contradict what the model's operators take for granted are refused by name, before anything is
read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.errors import FuselineError
from tests.draws import RNG
from tests.graphs.onnx_text import call, declared, onnx_model

Array = NDArray[Any]


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def model(nodes: list[str], inputs: dict[str, list[int | str]], **weights: Array) -> onnx.ModelProto:
    """A model whose output is `y`."""
    return onnx_model(f"({declared(inputs)}) => (y) {{ {'  '.join(nodes)} }}", weights)


def node(op_type: str, *inputs: str, to: str = "y", **attributes: Any) -> str:
    """A node called like its operator."""
    return call(op_type, *inputs, results=to, name=op_type, **attributes)


PYRAMID = [
    node("Conv", "x", "w", to="small", auto_pad="SAME_UPPER", strides=[2, 2]),
    node(
        "Resize",
        "small",
        "",
        "scales",
        to="large",
        mode="nearest",
        nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    ),
    node("Add", "large", "x"),
]
CASES = {
    "Gemm": (model([node("Gemm", "x", "w")], {"x": ["n", "k"]}, w=floats(16, 4)), [(3, 16)], [(3, 5)]),
    "MatMul": (model([node("MatMul", "x", "w")], {"x": ["n", "k"]}, w=floats(16, 4)), [(3, 16)], [(3, 17)]),
    "Conv": (
        model([node("Conv", "x", "w")], {"x": [1, "c", "h", "w_"]}, w=floats(4, 3, 3, 3)),
        [(1, 3, 8, 8)],
        [(1, 2, 8, 8)],
    ),
    "Concat": (
        model([node("Concat", "x", "z", axis=1)], {"x": ["n", "k"], "z": ["m", "l"]}),
        [(3, 5), (3, 2)],
        [(3, 5), (2, 2)],
    ),
    "Reshape": (model([node("Reshape", "x", "to")], {"x": ["n", "k"]}, to=np.array([4, 6])), [(3, 8)], [(3, 5)]),
    "InstanceNormalization": (
        model([node("InstanceNormalization", "x", "w", "w")], {"x": [1, "c", "h"]}, w=floats(4)),
        [(1, 4, 3)],
        [(1, 5, 3)],
    ),
    "Add": (
        model(PYRAMID, {"x": [1, 3, "h", "w_"]}, w=floats(3, 3, 3, 3), scales=np.array([1, 1, 2, 2], np.float32)),
        [(1, 3, 8, 6)],
        [(1, 3, 7, 6)],
    ),
}


def feeds(proto: onnx.ModelProto, shapes: list[tuple[int, ...]]) -> dict[str, Array]:
    return {value.name: floats(*shape) for value, shape in zip(proto.graph.input, shapes, strict=True)}


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("name", CASES)
def test_the_node_is_named(name: str, target: str):
    proto, right, wrong = CASES[name]
    program = fuseline.compile(proto, target=target, threads=1)
    assert program.stats["host_ops"] == 0
    fine = program.run(feeds(proto, right))
    assert all(np.isfinite(array).all() for array in fine.values())
    with pytest.raises(FuselineError, match=f"E0203 .{name}.: sizes .* must be equal"):
        program.run(feeds(proto, wrong))


def test_an_artifact_remembers(tmp_path: Path):
    proto, right, wrong = CASES["Gemm"]
    fuseline.compile(proto, threads=1).save(tmp_path / "gemm.fuse")
    loaded = fuseline.load(tmp_path / "gemm.fuse")
    loaded.run(feeds(proto, right))
    with pytest.raises(FuselineError, match="E0203"):
        loaded.run(feeds(proto, wrong))


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_a_size_that_only_the_run_tells(target: str):
    """How many columns are chosen is known after the first operator; the concat wants as many as `z` has."""
    chosen = [node("Compress", "x", "yes", to="some", axis=1), node("Concat", "some", "z", axis=0)]
    proto = model(chosen, {"x": [1, 6], "z": [2, "n"]}, yes=np.array([1, 0, 1, 1, 0, 0], bool))
    program = fuseline.compile(proto, target=target, threads=1)
    assert program.run(feeds(proto, [(1, 6), (2, 3)]))["y"].shape == (3, 3)
    with pytest.raises(FuselineError, match="E0203 .Concat.: sizes"):
        program.run(feeds(proto, [(1, 6), (2, 4)]))


@pytest.mark.parametrize("axis", [0, 1])
def test_an_empty_part_of_a_concat_agrees_with_the_others_too(axis: int):
    proto = model([node("Concat", "x", "z", axis=axis)], {"x": ["n", "k"], "z": ["m", "l"]})
    program = fuseline.compile(proto, target="interpreter")
    empty = (0, 3) if axis == 0 else (2, 0)
    np.testing.assert_array_equal(program.run(given := feeds(proto, [(2, 3), empty]))["y"], given["x"])
    with pytest.raises(FuselineError, match="E0203 .Concat"):
        program.run(feeds(proto, [(2, 3), (0, 5)]))


@pytest.mark.parametrize(
    ("nodes", "inputs"),
    [
        ([node("MatMul", "x", "z")], {"x": [3, 5], "z": [6, 2]}),
        ([node("Concat", "x", "z", axis=0)], {"x": ["n", "k"], "z": ["n", 2], "v": ["k"]}),
    ],
    ids=["numbers", "a size that is too large"],
)
def test_sizes_that_never_agree_are_refused_by_the_compiler(nodes: list[str], inputs: dict[str, list[int | str]]):
    shapes = {"k": (3, 9)} if "v" in inputs else None
    with pytest.raises(FuselineError, match="E0107 .(MatMul|Concat).*must be equal"):
        fuseline.compile(model(nodes, inputs), shapes=shapes, target="null")
