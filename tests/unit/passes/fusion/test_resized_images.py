"""Interpolated images: the first step is kept by rows, and what reads an image evaluates no step again and again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.analysis.picked_rows import LEAST_ROWS
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

onnxruntime = pytest.importorskip("onnxruntime")

RESIZE = '  r = Resize<mode = "{mode}", coordinate_transformation_mode = "half_pixel">({image}, "", "", sizes)'
CONV = "  y = Conv<pads = [1, 1, 1, 1]>(r, k)"
PRODUCED = "  c = Conv(x, p)  a = Relu(c)"


def _resized(mode: str, *, produced: bool, read: bool) -> tuple[Any, np.ndarray]:
    """An image, of a convolution (`produced`), resized, and perhaps read by another convolution."""
    channels, size = 8 * int(RNG.integers(2, 5)), RNG.integers(9, 16, 2)
    larger = [1, channels, *(int(one + RNG.integers(5, 15)) for one in size)]
    weights: dict[str, Any] = {"sizes": np.array(larger, np.int64)}
    if read:
        weights["k"] = (RNG.standard_normal((16, channels, 3, 3)) / 16).astype(np.float32)
    if produced:
        weights["p"] = (RNG.standard_normal((channels, channels, 1, 1)) / 4).astype(np.float32)
    image = f"float[1, {channels}, {size[0]}, {size[1]}] x"
    resize = RESIZE.format(mode=mode, image="a" if produced else "x")
    body = (PRODUCED if produced else "") + (resize + CONV if read else resize.replace("r =", "y ="))
    return onnx_model(f"({image}) => (float[] y) {{ {body} }}", weights), RNG.standard_normal(
        (1, channels, *size)
    ).astype(np.float32)


@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize("produced", [False, True])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_steps_share_rows_and_no_convolution_evaluates_them(mode: str, produced: bool, read: bool):
    """Both steps are one dispatch, by rows, unless the second turns what it writes, where their price decides; no step
    joins the convolution that reads it."""
    model, x = _resized(mode, produced=produced, read=read)
    dispatches = fuseline.compile(model, target="null", threads=1).record.dispatches
    steps = [sum(member.kind == "gather" for member in d.members) for d in dispatches]
    turned = produced and not read  # by a convolution channels are innermost, and the caller has them outermost
    assert sorted(step for step in steps if step) in ([[1, 1], [2]] if turned else [[2]])
    assert all(d.name.endswith("gather") for d, step in zip(dispatches, steps, strict=True) if step)
    (found,) = fuseline.compile(model, threads=int(RNG.integers(1, 3))).run({"x": x}).values()
    (wanted,) = fuseline.compile(model, target="interpreter", fusion="none").run({"x": x}).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("channels", [1, 3, 7])
def test_channels_that_fill_no_vector_turn_nothing(channels: int):
    size, larger = RNG.integers(9, 16, 2), RNG.integers(20, 40, 2)
    text = RESIZE.format(mode="linear", image="c").replace("r =", "y =")
    image = f"float[1, 16, {size[0]}, {size[1]}] x"
    weights = {
        "p": (RNG.standard_normal((channels, 16, 1, 1)) / 4).astype(np.float32),
        "sizes": np.array([1, channels, *larger], np.int64),
    }
    model = onnx_model(f"({image}) => (float[] y) {{ c = Conv(x, p) {text} }}", weights)
    assert fuseline.compile(model, target="null", threads=1).stats["dispatches"] == 2
    x = RNG.standard_normal((1, 16, *size)).astype(np.float32)
    (found,) = fuseline.compile(model, threads=int(RNG.integers(1, 3))).run({"x": x}).values()
    (wanted,) = fuseline.compile(model, target="interpreter", fusion="none").run({"x": x}).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("rows", "kept"), [(LEAST_ROWS - 1, False), (LEAST_ROWS, True)])
@pytest.mark.parametrize("threads", [1, 3])
def test_rows_are_kept_where_each_thread_has_some(rows: int, kept: bool, threads: int):
    """Of fewer, elements are evaluated where they are picked, or stored, as their price says."""
    larger = [1, 1, rows * threads, int(RNG.integers(20, 60))]
    text = RESIZE.format(mode="linear", image="x").replace("r =", "y =")
    model = onnx_model(f"(float[1, 1, 2, 9] x) => (float[] y) {{ {text} }}", {"sizes": np.array(larger, np.int64)})
    decisions = fuseline.compile(model, target="null", threads=threads).record.decisions
    assert any(one.verdict == "fused" and one.rule == "row-chain" for one in decisions) == kept


def test_rows_of_a_product_are_stored_before_others_are_made_of_them():
    """Channels and columns are in step, so that the resize could follow in a chain; it picks all rows."""
    channels, rows, steps, columns = (int(size) for size in RNG.integers((16, 9, 12, 25), (25, 20, 20, 40)))
    weights = {
        "v": RNG.standard_normal((channels, channels, 1, 1)).astype(np.float32) / channels,
        "w": RNG.standard_normal((steps, columns)).astype(np.float32),
        "sizes": np.array([1, channels, rows + int(RNG.integers(2, 9)), columns], np.int64),
    }
    text = "a = Conv(x, v) b = MatMul(a, w) c = Tanh(b)" + RESIZE.format(mode="linear", image="c").replace("r =", "y =")
    model = onnx_model(f"(float[1, {channels}, {rows}, {steps}] x) => (float[] y) {{ {text} }}", weights)
    kinds = [
        {member.kind for member in dispatch.members}
        for dispatch in fuseline.compile(model, target="null", threads=3).record.dispatches
    ]
    assert kinds and not any({"contraction", "gather"} <= found for found in kinds)
    x = RNG.standard_normal((1, channels, rows, steps)).astype(np.float32)
    (found,) = fuseline.compile(model, threads=3).run({"x": x}).values()
    (wanted,) = fuseline.compile(model, target="interpreter", fusion="none").run({"x": x}).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("batch", [1, "n"])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_tables_of_unknown_sizes_are_made_once(mode: str, batch: int | str):
    """Places and weights along both axes are one dispatch, and no step evaluates the other again and again."""
    model = onnx_model(
        f'(float[{batch}, 24, h, w] x) => (y) {{ y = Resize<mode = "{mode}">(x, "", s) }}',
        {"s": np.array([1, 1, 2, 1.5], np.float32)},
    )
    counted = fuseline.compile(model, target="null", threads=1)
    kinds = [{member.kind for member in dispatch.members} for dispatch in counted.record.dispatches]
    assert len(kinds) <= 3 and kinds[0] == {"elementwise"}
    assert all("elementwise" not in found for found in kinds[1:])
    session = onnxruntime.InferenceSession(model.SerializeToString())
    for threads in (1, 2):
        program = fuseline.compile(model, threads=threads)
        for height, width in [(1, 1), (9, 14), (30, 21)]:
            x = RNG.standard_normal((1, 24, height, width)).astype(np.float32)
            np.testing.assert_allclose(program.run({"x": x})["y"], session.run(None, {"x": x})[0], rtol=1e-4, atol=1e-4)
