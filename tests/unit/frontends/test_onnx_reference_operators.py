"""Operators that replace those of onnx.reference: what the standard says where its own differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuseline.interop.onnx_reference import ReferenceOperator
from tests.graphs.onnx_text import attributes_of, onnx_model


def _run(node: str, feeds: dict[str, Any], opset: int = 21) -> list[Any]:
    """The outputs `y`, `z` of a node that makes `y`, or `y, z`."""
    outputs = node.split(" = ", 1)[0]
    model = onnx_model(f"({', '.join(feeds)}) => ({outputs}) {{ {node} }}", opset=opset, ir_version=10)
    return ReferenceOperator(model).run(list(feeds.values()))


LOOP_BODY = """body (int64 trip, bool on, {state} state) => (bool more, {state} next, {state} row) {{
    next = Add(state, x)
    row = Identity(next)
    three = Constant<value_int = 2>()
    more = Less(trip, three)
}}"""
"""Adds `x`, read from around the loop, to its state; collects the state; goes on while the trip is below 3."""


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 1, 2)])
@pytest.mark.parametrize(("trips", "taken"), [(2, 2), (9, 3), (0, 0), (None, 3)])
def test_a_loop_stacks_what_it_collects(shape: tuple[int, ...], trips: int | None, taken: int) -> None:
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    body = LOOP_BODY.format(state=f"float{list(shape)}" if shape else "float")
    node = f'last, rows = Loop({"m" if trips is not None else chr(34) * 2}, "", s) <body = {body}>'
    feeds = {"s": x, "x": x} | ({} if trips is None else {"m": np.array(trips)})
    last, rows = _run(node, feeds)
    np.testing.assert_allclose(last, x * (1 + taken), rtol=1e-6)
    assert rows.shape == (taken, *shape) and rows.dtype == np.float32
    for i in range(taken):
        np.testing.assert_allclose(rows[i], x * (2 + i), rtol=1e-6)


def test_a_loop_that_is_false_at_once_runs_no_trip() -> None:
    node = f"last, rows = Loop(m, c, s) <body = {LOOP_BODY.format(state='float[2]')}>"
    x = np.ones(2, np.float32)
    last, rows = _run(node, {"m": np.array(5), "c": np.array(False), "s": x, "x": x})
    np.testing.assert_array_equal(last, x)
    assert rows.shape == (0, 2)


def _scan(inputs: str, **options: Any) -> str:
    nodes = "next = Add(sum, item) row = Identity(next)"
    body = f"body (float[4] sum, float[4] item) => (float[4] next, float[4] row) {{ {nodes} }}"
    return f"last, rows = Scan{attributes_of({'num_scan_inputs': 1, **options})[:-1]}, body = {body}>({inputs})"


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
    last, rows = _run(_scan("s, x", **options), {"s": np.zeros(4, np.float32), "x": x})
    walked = np.moveaxis(x, axis, 0)[:: -1 if back else 1]
    sums = walked.cumsum(0)
    np.testing.assert_allclose(last, sums[-1], rtol=1e-5)
    np.testing.assert_allclose(rows, np.stack(list(sums[:: -1 if out_back else 1]), out_axis), rtol=1e-5)


def test_a_scan_of_nothing_keeps_its_state() -> None:
    last, rows = _run(_scan("s, x"), {"s": np.ones(4, np.float32), "x": np.ones((0, 4), np.float32)})
    assert last.tolist() == [1] * 4 and rows.shape == (0, 4)


def test_the_old_scan_has_a_batch_and_lengths() -> None:
    x = np.random.default_rng(3).standard_normal((2, 3, 4)).astype(np.float32)
    last, rows = _run(_scan("n, s, x"), {"n": np.array([3, 2]), "s": np.zeros((2, 4), np.float32), "x": x}, opset=8)
    np.testing.assert_allclose(last, [x[0].sum(0), x[1, :2].sum(0)], rtol=1e-5)
    np.testing.assert_allclose(rows[0], x[0].cumsum(0), rtol=1e-5)
    np.testing.assert_allclose(rows[1], np.vstack([x[1, :2].cumsum(0), np.zeros((1, 4))]), rtol=1e-5)


def test_an_optional_is_its_value_or_none() -> None:
    x = np.ones(2, np.float32)
    assert _run("o = Optional(x)", {"x": x})[0].tolist() == [1, 1]
    assert _run("o = Optional<type: type_proto = float[2]>()", {}) == [None]
    assert not _run("y = OptionalHasElement(o)", {"o": None})[0]


@pytest.mark.parametrize("taken", [True, False])
def test_a_branch_may_give_an_empty_optional(taken: bool) -> None:
    full, empty = "f () => (o) { o = Optional(x) }", "e () => (o) { o = Optional<type: type_proto = float[2]>() }"
    node = f"y = If(c) <then_branch = {full}, else_branch = {empty}>"
    (found,) = _run(node, {"c": np.array(taken), "x": np.ones(2, np.float32)})
    assert (found is not None) == taken


def test_strings_come_in_object_arrays() -> None:
    (found,) = _run("y = StringConcat(x, x)", {"x": np.array(["a", "b"])})
    assert found.dtype == object and found.tolist() == ["aa", "bb"]


def test_global_norms() -> None:
    x = np.random.default_rng(4).standard_normal((2, 3, 4, 5)).astype(np.float32)
    for p in (1, 2, 3):
        (found,) = _run(f"y = GlobalLpPool<p = {p}>(x)", {"x": x})
        np.testing.assert_allclose(found, (np.abs(x) ** p).sum((2, 3), keepdims=True) ** (1 / p), rtol=1e-5)


def test_regions_agree_with_onnxruntime() -> None:
    ort = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(5)
    x = rng.standard_normal((2, 3, 12, 9)).astype(np.float32)
    corners = rng.uniform(0, 16, (6, 4)).astype(np.float32)
    rois = np.concatenate([rng.integers(0, 2, (6, 1)), corners[:, :2], corners[:, :2] + corners[:, 2:]], 1).astype(
        np.float32
    )
    node = "y = MaxRoiPool<pooled_shape = [3, 2], spatial_scale = 0.6>(x, rois)"
    text = f"(float[2, 3, 12, 9] x, float[6, 5] rois) => (float[6, 3, 3, 2] y) {{ {node} }}"
    model = onnx_model(text, opset=21, ir_version=10)
    wanted = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(
        None, {"x": x, "rois": rois}
    )[0]
    np.testing.assert_array_equal(_run(node, {"x": x, "rois": rois})[0], wanted)


def test_draws_follow_their_probabilities() -> None:
    logits = np.log(np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]], np.float32)) + 5
    (found,) = _run("y = Multinomial<sample_size = 4000, seed = 1.0>(x)", {"x": logits})
    assert found.shape == (2, 4000) and found.dtype == np.int32
    for row, wanted in zip(found, ([0.7, 0.2, 0.1], [0.1, 0.1, 0.8]), strict=True):
        np.testing.assert_allclose(np.bincount(row, minlength=3) / 4000, wanted, atol=0.04)


def _run_ml(op_type: str, feed: Any, **attributes: Any) -> Any:
    return _run(f"y = ai.onnx.ml.{op_type}{attributes_of(attributes)}(x)", {"x": feed})[0]


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
