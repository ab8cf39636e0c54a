"""Scatter at known places and columns of windows without overlap are native; the rest runs on the host with NumPy's loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import fuseline
from fuseline.errors import FuselineError

Array = NDArray[Any]
RNG = np.random.default_rng(17)


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def model(op_type: str, feeds: dict[str, Array], constants: dict[str, Array], order: str, symbolic: dict[str, list[int | str]], **attributes: Any):
    node = helper.make_node(op_type, order.split(), ["y"], name="scatter", **attributes)
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), symbolic.get(name, list(x.shape))) for name, x in feeds.items()
    ]
    assert all(value.type.tensor_type.elem_type in (TensorProto.FLOAT, TensorProto.INT64) for value in inputs)
    weights = [numpy_helper.from_array(x, name) for name, x in constants.items()]
    graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def check(
    op_type: str, feeds: dict[str, Array], constants: dict[str, Array], order: str, host_ops: int = 0, **options: Any
) -> fuseline.CompiledModel:
    """The node on both targets against onnx's own implementation."""
    proto = model(op_type, feeds, constants, order, options.pop("symbolic", {}), **options)
    reference: Any = ReferenceEvaluator(proto)
    (expected,) = reference.run(None, feeds)
    program = fuseline.compile(proto, threads=1)
    assert program.stats["host_ops"] == host_ops
    for target in (program, fuseline.compile(proto, target="interpreter")):
        np.testing.assert_allclose(target.run(feeds)["y"], expected, rtol=1e-6)
    return program


SCATTER_ND = {
    "single elements": ((5, 4), [[0, 1], [4, -1], [2, 2]]),
    "rows in any order": ((6, 4), [[4], [0], [3]]),
    "one row twice": ((6, 4), [[4], [1], [4]]),
    "one run of rows": ((7, 3), [[2], [3], [4]]),
    "all rows": ((3, 5), [[0], [1], [2]]),
    "a block of two axes": ((4, 3, 5), [[[1, 0], [1, 1]], [[1, 2], [2, 0]]]),
    "nothing": ((4, 3), np.zeros((0, 1))),
}


@pytest.mark.parametrize("name", SCATTER_ND)
def test_scatter_nd(name: str):
    shape, places = SCATTER_ND[name]
    indices = np.asarray(places, np.int64)
    updates = floats(*indices.shape[:-1], *shape[indices.shape[-1] :])
    check("ScatterND", {"x": floats(*shape), "u": updates}, {"i": indices}, "x i u")


def test_a_run_of_rows_is_a_concat():
    indices = np.array([[2], [3]], np.int64)
    program = check("ScatterND", {"x": floats(6, 8), "u": floats(2, 8)}, {"i": indices}, "x i u")
    assert program.stats["dispatches"] <= 1


def test_rows_of_unknown_length():
    indices = np.array([[3], [0]], np.int64)
    check("ScatterND", {"x": floats(5, 7), "u": floats(2, 7)}, {"i": indices}, "x i u", symbolic={"x": [5, "n"], "u": [2, "n"]})


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scatter_elements(axis: int):
    indices = RNG.permutation(4)[None, :3].repeat(2, 0).astype(np.int64) - 1 if axis else np.array([[3, -1, 0], [1, 2, 2]], np.int64)
    check("ScatterElements", {"x": floats(4, 4), "u": floats(2, 3)}, {"i": indices}, "x i u", axis=axis)


def test_places_outside_are_refused():
    proto = model("ScatterND", {"x": floats(3, 2), "u": floats(1, 2)}, {"i": np.array([[3]], np.int64)}, "x i u", {})
    with pytest.raises(FuselineError, match="E0107 .scatter.: ScatterND writes outside"):
        fuseline.compile(proto)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("op_type", ["ScatterND", "ScatterElements"])
def test_computed_places_run_on_the_host(op_type: str, reduction: str):
    indices = np.array([[0, 1], [2, 1], [0, 1]], np.int64)
    updates = floats(3) if op_type == "ScatterND" else floats(3, 2)
    if reduction == "none":
        indices = indices[:2]
        updates = updates[:2]
    check(op_type, {"x": floats(4, 3), "i": indices, "u": updates}, {}, "x i u", host_ops=1, reduction=reduction)


COLUMNS = {"image": np.array([6, 8], np.int64), "block": np.array([2, 4], np.int64)}


def test_windows_that_tile_the_image():
    check("Col2Im", {"x": floats(2, 3 * 8, 6)}, COLUMNS, "x image block", strides=[2, 4])


@pytest.mark.parametrize(
    "attributes", [{"strides": [1, 4]}, {"strides": [2, 4], "pads": [1, 0, 1, 0]}, {"dilations": [2, 1], "strides": [2, 2]}], ids=str
)
def test_windows_that_overlap_run_on_the_host(attributes: dict[str, list[int]]):
    pads = attributes.get("pads", [0] * 4)
    spans = [(2 - 1) * attributes.get("dilations", [1, 1])[0] + 1, (4 - 1) * attributes.get("dilations", [1, 1])[1] + 1]
    counts = [(size + pads[i] + pads[2 + i] - span) // attributes["strides"][i] + 1 for i, (size, span) in enumerate(zip((6, 8), spans, strict=True))]
    check("Col2Im", {"x": floats(2, 3 * 8, counts[0] * counts[1])}, COLUMNS, "x image block", host_ops=1, **attributes)
