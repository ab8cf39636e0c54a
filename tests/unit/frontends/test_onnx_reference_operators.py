"""Operators that replace those of onnx.reference: what the standard says where its own differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from fuseline.interop.onnx_reference import ReferenceOperator

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def _run(node: onnx.NodeProto, feeds: dict[str, Any], opset: int = 21) -> list[Any]:
    infos = [onnx.ValueInfoProto(name=name) for name in feeds]
    graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name=name) for name in node.output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return ReferenceOperator(model).run(list(feeds.values()))


def _info(name: str, element: int, shape: Sequence[int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, shape)


def _loop_body(shape: Sequence[int]) -> onnx.GraphProto:
    """Adds `x`, read from around the loop, to its state; collects the state; goes on while the trip is below 3."""
    nodes = [
        helper.make_node("Add", ["state", "x"], ["next"]),
        helper.make_node("Identity", ["next"], ["row"]),
        helper.make_node("Constant", [], ["three"], value_int=2),
        helper.make_node("Less", ["trip", "three"], ["more"]),
    ]
    inputs = [_info("trip", INT64, ()), _info("on", BOOL, ()), _info("state", FLOAT, shape)]
    return helper.make_graph(
        nodes, "body", inputs, [_info("more", BOOL, ()), _info("next", FLOAT, shape), _info("row", FLOAT, shape)]
    )


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 1, 2)])
@pytest.mark.parametrize(("trips", "taken"), [(2, 2), (9, 3), (0, 0), (None, 3)])
def test_a_loop_stacks_what_it_collects(shape: tuple[int, ...], trips: int | None, taken: int) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    node = helper.make_node("Loop", ["" if trips is None else "m", "", "s"], ["last", "rows"], body=_loop_body(shape))
    feeds = {"s": x, "x": x} | ({} if trips is None else {"m": np.array(trips)})
    last, rows = _run(node, feeds)
    np.testing.assert_allclose(last, x * (1 + taken), rtol=1e-6)
    assert rows.shape == (taken, *shape) and rows.dtype == np.float32
    for i in range(taken):
        np.testing.assert_allclose(rows[i], x * (2 + i), rtol=1e-6)


def test_a_loop_that_is_false_at_once_runs_no_trip() -> None:
    node = helper.make_node("Loop", ["m", "c", "s"], ["last", "rows"], body=_loop_body((2,)))
    x = np.ones(2, np.float32)
    last, rows = _run(node, {"m": np.array(5), "c": np.array(False), "s": x, "x": x})
    np.testing.assert_array_equal(last, x)
    assert rows.shape == (0, 2)


def _scan_body(size: int) -> onnx.GraphProto:
    nodes = [helper.make_node("Add", ["sum", "item"], ["next"]), helper.make_node("Identity", ["next"], ["row"])]
    infos = {name: _info(name, FLOAT, (size,)) for name in ("sum", "item", "next", "row")}
    return helper.make_graph(nodes, "body", [infos["sum"], infos["item"]], [infos["next"], infos["row"]])


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("back", [0, 1])
@pytest.mark.parametrize(("out_axis", "out_back"), [(0, 0), (1, 1), (-1, 0)])
def test_a_scan_follows_axes_and_directions(axis: int, back: int, out_axis: int, out_back: int) -> None:
    x = np.random.default_rng(2).standard_normal((4, 4)).astype(np.float32)
    options: dict[str, Any] = {
        "scan_input_axes": [axis],
        "scan_input_directions": [back],
        "scan_output_axes": [out_axis],
        "scan_output_directions": [out_back],
    }
    node = helper.make_node("Scan", ["s", "x"], ["last", "rows"], body=_scan_body(4), num_scan_inputs=1, **options)
    last, rows = _run(node, {"s": np.zeros(4, np.float32), "x": x})
    walked = np.moveaxis(x, axis, 0)[:: -1 if back else 1]
    sums = walked.cumsum(0)
    np.testing.assert_allclose(last, sums[-1], rtol=1e-5)
    np.testing.assert_allclose(rows, np.stack(list(sums[:: -1 if out_back else 1]), out_axis), rtol=1e-5)


def test_a_scan_of_nothing_keeps_its_state() -> None:
    node = helper.make_node("Scan", ["s", "x"], ["last", "rows"], body=_scan_body(4), num_scan_inputs=1)
    last, rows = _run(node, {"s": np.ones(4, np.float32), "x": np.ones((0, 4), np.float32)})
    assert last.tolist() == [1] * 4 and rows.shape == (0, 4)


def test_the_old_scan_has_a_batch_and_lengths() -> None:
    x = np.random.default_rng(3).standard_normal((2, 3, 4)).astype(np.float32)
    node = helper.make_node("Scan", ["n", "s", "x"], ["last", "rows"], body=_scan_body(4), num_scan_inputs=1)
    last, rows = _run(node, {"n": np.array([3, 2]), "s": np.zeros((2, 4), np.float32), "x": x}, opset=8)
    np.testing.assert_allclose(last, [x[0].sum(0), x[1, :2].sum(0)], rtol=1e-5)
    np.testing.assert_allclose(rows[0], x[0].cumsum(0), rtol=1e-5)
    np.testing.assert_allclose(rows[1], np.vstack([x[1, :2].cumsum(0), np.zeros((1, 4))]), rtol=1e-5)


def test_an_optional_is_its_value_or_none() -> None:
    x = np.ones(2, np.float32)
    assert _run(helper.make_node("Optional", ["x"], ["o"]), {"x": x})[0].tolist() == [1, 1]
    type_ = helper.make_tensor_type_proto(FLOAT, [2])
    assert _run(helper.make_node("Optional", [], ["o"], type=type_), {}) == [None]
    assert not _run(helper.make_node("OptionalHasElement", ["o"], ["y"]), {"o": None})[0]


@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_may_give_an_empty_optional(taken: bool) -> None:
    type_ = helper.make_tensor_type_proto(FLOAT, [2])
    given = [onnx.ValueInfoProto(name="o")]
    full = helper.make_graph([helper.make_node("Optional", ["x"], ["o"])], "full", [], given)
    empty = helper.make_graph([helper.make_node("Optional", [], ["o"], type=type_)], "empty", [], given)
    node = helper.make_node("If", ["c"], ["y"], then_branch=full, else_branch=empty)
    (found,) = _run(node, {"c": np.array(taken), "x": np.ones(2, np.float32)})
    assert (found is not None) == taken


def test_strings_come_in_object_arrays() -> None:
    (found,) = _run(helper.make_node("StringConcat", ["x", "x"], ["y"]), {"x": np.array(["a", "b"])})
    assert found.dtype == object and found.tolist() == ["aa", "bb"]


def test_global_norms() -> None:
    x = np.random.default_rng(4).standard_normal((2, 3, 4, 5)).astype(np.float32)
    for p in (1, 2, 3):
        (found,) = _run(helper.make_node("GlobalLpPool", ["x"], ["y"], p=p), {"x": x})
        np.testing.assert_allclose(found, (np.abs(x) ** p).sum((2, 3), keepdims=True) ** (1 / p), rtol=1e-5)


def test_regions_agree_with_onnxruntime() -> None:
    ort = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(5)
    x = rng.standard_normal((2, 3, 12, 9)).astype(np.float32)
    corners = rng.uniform(0, 16, (6, 4)).astype(np.float32)
    rois = np.concatenate([rng.integers(0, 2, (6, 1)), corners[:, :2], corners[:, :2] + corners[:, 2:]], 1).astype(
        np.float32
    )
    node = helper.make_node("MaxRoiPool", ["x", "rois"], ["y"], pooled_shape=[3, 2], spatial_scale=0.6)
    infos = [_info("x", FLOAT, x.shape), _info("rois", FLOAT, rois.shape)]
    graph = helper.make_graph([node], "g", infos, [_info("y", FLOAT, (6, 3, 3, 2))])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    wanted = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(
        None, {"x": x, "rois": rois}
    )[0]
    np.testing.assert_array_equal(_run(node, {"x": x, "rois": rois})[0], wanted)


def test_draws_follow_their_probabilities() -> None:
    logits = np.log(np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]], np.float32)) + 5
    (found,) = _run(helper.make_node("Multinomial", ["x"], ["y"], sample_size=4000, seed=1.0), {"x": logits})
    assert found.shape == (2, 4000) and found.dtype == np.int32
    for row, wanted in zip(found, ([0.7, 0.2, 0.1], [0.1, 0.1, 0.8]), strict=True):
        np.testing.assert_allclose(np.bincount(row, minlength=3) / 4000, wanted, atol=0.04)


def _run_ml(op_type: str, feed: Any, **attributes: Any) -> Any:
    node = helper.make_node(op_type, ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    graph = helper.make_graph([node], "g", [onnx.ValueInfoProto(name="x")], [onnx.ValueInfoProto(name="y")])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    return ReferenceOperator(helper.make_model(graph, opset_imports=opsets, ir_version=10)).run([feed])[0]


def test_maps_of_labels() -> None:
    x = np.array([[1, 2], [3, 4]], np.float32)
    assert _run_ml("ZipMap", x, classlabels_int64s=[7, 9]) == [{7: 1.0, 9: 2.0}, {7: 3.0, 9: 4.0}]
    assert _run_ml("ZipMap", x, classlabels_strings=["a", "b"])[1] == {"a": 3.0, "b": 4.0}
    assert _run_ml("CastMap", {2: 5.0, 0: 1.5}).tolist() == [[1.5, 5.0]]
    assert _run_ml("CastMap", {2: 5.0, 0: 1.5}, map_form="SPARSE", max_map=4, cast_to="TO_INT64").tolist() == [
        [1, 0, 5, 0]
    ]
    assert _run_ml(
        "CategoryMapper", np.array(["b", "z"], object), cats_strings=["a", "b"], cats_int64s=[3, 4]
    ).tolist() == [4, -1]
    assert _run_ml("CategoryMapper", np.array([3, 9]), cats_strings=["a", "b"], cats_int64s=[3, 4]).tolist() == [
        "a",
        "_Unused",
    ]
