"""Resizing images of unknown size: one program for all, equal to onnxruntime, or to the reference where that is closer
to the standard."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import fuseline
from fuseline.runtime.artifact import artifact_bytes
from tests.graphs.onnx_text import attributes_of, onnx_model

SIZES = ((8, 12), (7, 5), (13, 1), (2, 30))


def model(
    scales: tuple[float, float] | None, *, dims: tuple[int | str, int | str] = ("h", "w"), **attributes: Any
) -> onnx.ModelProto:
    """`[1, 3, h, w]` resized by `scales`, or to the size of a second input."""
    x, given = f"float[1, 3, {dims[0]}, {dims[1]}] x", attributes_of(attributes)
    if scales is None:
        text = (
            f'({x}, float[1, 3, p, q] like) => (y) {{ size = Shape(like) [resize] y = Resize{given}(x, "", "", size) }}'
        )
        return onnx_model(text, opset=19)
    held = np.array([1, 1, *scales], np.float32)
    return onnx_model(f'({x}) => (y) {{ [resize] y = Resize{given}(x, "", scales) }}', opset=19, scales=held)


def check(proto: onnx.ModelProto, *, to: tuple[int, int] | None = None) -> None:
    """One compile, every size, both targets."""
    program, oracle = fuseline.compile(proto, threads=1), fuseline.compile(proto, target="interpreter")
    assert program.stats["host_ops"] == 0
    peer = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(3)
    for size in SIZES:
        feeds = {"x": rng.standard_normal((1, 3, *size)).astype(np.float32)}
        if to is not None:
            feeds["like"] = np.zeros((1, 3, *to), np.float32)
        expected: Any = peer.run(None, feeds)[0]
        for found in (program.run(feeds)["y"], oracle.run(feeds)["y"]):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("coordinates", ["asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners"])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_interpolation(mode: str, coordinates: str):
    check(model((2, 3), mode=mode, coordinate_transformation_mode=coordinates))
    check(model(None, mode=mode, coordinate_transformation_mode=coordinates), to=(9, 14))


@pytest.mark.parametrize("rounding", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
def test_nearest(rounding: str):
    check(model((2, 2), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode=rounding))
    check(model(None, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode=rounding), to=(11, 6))


@pytest.mark.parametrize("scales", [(0.5, 0.5), (1.5, 1.0), (0.6, 2.0)])
def test_scales_that_are_fractions(scales: tuple[float, float]):
    check(model(scales, mode="linear", coordinate_transformation_mode="asymmetric"))


def test_a_symmetric_half_pixel():
    """onnxruntime rounds differently here; the reference follows the standard."""
    from onnx.reference import ReferenceEvaluator

    proto = model((1.7, 2), mode="linear", coordinate_transformation_mode="half_pixel_symmetric")
    x = np.random.default_rng(5).standard_normal((1, 3, 10, 10)).astype(np.float32)
    reference: Any = ReferenceEvaluator(proto)
    (expected,) = reference.run(None, {"x": x})
    np.testing.assert_allclose(fuseline.compile(proto, threads=1)(x), expected, rtol=1e-4, atol=1e-5)


def test_only_one_axis_is_unknown():
    proto = model((2, 3), dims=(8, "w"), mode="linear", coordinate_transformation_mode="half_pixel")
    x = np.random.default_rng(6).standard_normal((1, 3, 8, 5)).astype(np.float32)
    peer: Any = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})[
        0
    ]
    np.testing.assert_allclose(fuseline.compile(proto, threads=1)(x), peer, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("scales", "attributes"),
    [
        ((0.5, 0.5), {"mode": "linear", "antialias": 1}),
        ((2, 2), {"mode": "cubic", "exclude_outside": 1}),
        ((0.7, 0.7), {"mode": "linear"}),
        (None, {"mode": "linear", "keep_aspect_ratio_policy": "not_larger"}),
    ],
    ids=["antialias", "exclude outside", "a scale just below a fraction", "aspect ratio"],
)
def test_what_has_no_table_runs_on_the_host(scales: tuple[float, float] | None, attributes: dict[str, Any]):
    record = fuseline.compile(model(scales, **attributes), target="null").record
    assert [host.reason.split(":")[0] for host in record.host_ops] == ["symbolic-resize"]


def test_sizes_of_sizes_of_sizes():
    """Each size has the one before it twice: what a compile takes must not double with each level."""
    levels = " ".join(f'y{i + 1} = Resize<mode = "nearest">(y{i}, "", s)' for i in range(22))
    scales = np.array([1, 1, 1.2, 1], np.float32)
    proto = onnx_model(f"(float[1, 1, h, 3] y0) => (y22) {{ {levels} }}", opset=19, s=scales)
    feeds = {"y0": np.random.default_rng(22).standard_normal((1, 1, 7, 3)).astype(np.float32)}
    program = fuseline.compile(proto, threads=1)
    assert len(artifact_bytes(program.session.artifact)) < 1 << 20 and program.stats["host_ops"] == 0
    (found,) = program.run(feeds).values()
    np.testing.assert_array_equal(found, ort.InferenceSession(proto.SerializeToString()).run(None, feeds)[0])
