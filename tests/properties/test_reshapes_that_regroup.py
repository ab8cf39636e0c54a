"""Reshapes that regroup dimensions between ops: one dispatch wherever both sides can walk one set of loops, and the
numbers that onnxruntime gives."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model


def _check(model: onnx.ModelProto, dispatches: int, **sizes: int) -> None:
    """Same numbers as onnxruntime, up to what convolutions by minimal filtering round, in as many dispatches."""
    session = ort.InferenceSession(model.SerializeToString())
    feeds = {
        i.name: RNG.standard_normal([sizes.get(str(n)) or int(str(n)) for n in i.shape]).astype(np.float32)
        for i in session.get_inputs()
    }
    found = fuseline.compile(model, threads=1)
    for one, expected in zip(found.run(feeds).values(), session.run(None, feeds), strict=True):
        np.testing.assert_allclose(one, np.asarray(expected), rtol=1e-4, atol=1e-4)
    assert found.stats["dispatches"] == dispatches, [decision.code for decision in found.decisions]


@pytest.mark.parametrize(
    ("before", "after"),
    [([4, 6], [12, 2]), ([4, 6], [3, 8]), ([5, 7], [35]), ([2, 3, 4], [4, 6]), ([6, 5, 8], [10, 24]), ([9], [3, 3])],
)
def test_nothing_tells_the_dimensions_apart(before: list[int], after: list[int]) -> None:
    _check(onnx_model(f"(float{before} x) => (y) {{ e = Exp(x) r = Reshape(e, s) y = Tanh(r) }}", s=after), 1)


@pytest.mark.parametrize(
    ("before", "after"),
    [([4, 6], [12, 2]), ([8, 9], [24, 3]), ([3, 20], [15, 4]), ([4, 6, 16], [12, 32]), ([2, 40, 10], [8, 5, 20])],
)
def test_operands_on_both_sides(before: list[int], after: list[int]) -> None:
    text = f"""(float{before} x, float[{before[-1]}] b, float[{after[-1]}] c) => (y) {{
        a = Add(x, b)  r = Reshape(a, s)  y = Mul(r, c) }}"""
    _check(onnx_model(text, s=after), 1)


def test_no_loops_fit_both_sides() -> None:
    text = "(float[4, 6] x, float[6] b, float[8] c) => (y) { a = Add(x, b) r = Reshape(a, s) y = Mul(r, c) }"
    _check(onnx_model(text, s=[3, 8]), 2)


@pytest.mark.parametrize("rows", [1, 5])
def test_rows_known_at_run_time(rows: int) -> None:
    text = "(float[n, 24] x, float[24] b, float[8] c) => (y) { a = Add(x, b) r = Reshape(a, s) y = Mul(r, c) }"
    _check(onnx_model(text, s=[-1, 8]), 1, n=rows)


@pytest.mark.parametrize(("channels", "groups", "side"), [(32, 8, 16), (12, 3, 5), (6, 6, 4), (10, 1, 7)])
def test_a_group_norm_with_a_scale_per_channel(channels: int, groups: int, side: int) -> None:
    image = [2, channels, side, side]
    text = f"""(float{image} x, float[{groups}] a, float[{groups}] b, float[{channels}, 1, 1] c) => (y) {{
        r = Reshape(x, s)  n = InstanceNormalization(r, a, b)  z = Reshape(n, q)
        m = Mul(z, c)  e = Sigmoid(m)  y = Mul(m, e) }}"""
    _check(onnx_model(text, s=[2, groups, -1], q=image), 1)


def _norm(x: str, y: str, written: str) -> str:
    """A group norm with SiLU behind, as the operator, or as exporters write it."""
    norm = (
        f"z{y} = GroupNormalization<num_groups = GROUPS, epsilon = 1e-5>({x}, c, d)"
        if written == "operator"
        else f"""r{y} = Reshape({x}, s)  n{y} = InstanceNormalization(r{y}, a, b)  q{y} = Reshape(n{y}, q)
            m{y} = Mul(q{y}, c)  z{y} = Add(m{y}, d)"""
    )
    return f"{norm}  e{y} = Sigmoid(z{y})  {y} = Mul(z{y}, e{y})"


def _unet_block(written: str, batch: int, channels: int, groups: int, side: int, *, residual: bool) -> onnx.ModelProto:
    """Convolution, group norm, SiLU, convolution; `residual`: norm and SiLU again, plus the image."""
    image, per_channel = [batch, channels, side, side], [channels, 1, 1] if written == "exported" else [channels]
    draws = {name: RNG.standard_normal(per_channel).astype(np.float32) for name in "cd"}
    ones = {"a": np.ones(groups, np.float32), "b": np.zeros(groups, np.float32), "s": [0, groups, -1], "q": image}
    kernels = {f"w{i}": RNG.standard_normal((channels, channels, 3, 3)).astype(np.float32) / channels for i in (1, 2)}
    last = f"{_norm('h', 'k', written)}  y = Add(k, x)" if residual else "y = Identity(h)"
    text = f"""(float{image} x) => (y) {{
        f = Conv<pads = [1, 1, 1, 1]>(x, w1)  {_norm("f", "g", written)}
        h = Conv<pads = [1, 1, 1, 1]>(g, w2)  {last} }}"""
    given = draws | kernels | (ones if written == "exported" else {})
    return onnx_model(text.replace("GROUPS", str(groups)), given, opset=21, ir_version=10)


@pytest.mark.parametrize("written", ["operator", "exported"])
@pytest.mark.parametrize(("channels", "groups", "side", "batch"), [(64, 16, 16, 1), (20, 4, 15, 2), (32, 2, 17, 1)])
def test_a_group_norm_between_convolutions(written: str, channels: int, groups: int, side: int, batch: int) -> None:
    sizes = (batch, channels, groups, side)
    _check(_unet_block(written, *sizes, residual=False), 3)
    _check(_unet_block(written, *sizes, residual=True), 4)


@pytest.mark.parametrize("after", [[1, 2, 8, 256], [1, 32, 8, 16], [16, 256], [8, 2, 128, 2]])
def test_behind_a_convolution(after: list[int]) -> None:
    weights = RNG.standard_normal((16, 8, 3, 3)).astype(np.float32)
    text = "(float[1, 8, 16, 16] x) => (y) { c = Conv<pads = [1, 1, 1, 1]>(x, w) r = Reshape(c, s) y = Tanh(r) }"
    _check(onnx_model(text, s=after, w=weights), 1)


@pytest.mark.parametrize(("heads", "width"), [(8, 8), (3, 20), (4, 64)])
def test_heads_behind_a_contraction(heads: int, width: int) -> None:
    weights = RNG.standard_normal((24, heads * width)).astype(np.float32)
    text = f"""(float[5, 24] x, float[{heads}, 3, {width}] past) => (y) {{
        m = MatMul(x, w)  r = Reshape(m, s)  t = Transpose<perm = [1, 0, 2]>(r)  y = Concat<axis = 1>(past, t) }}"""
    _check(onnx_model(text, s=[5, heads, width], w=weights), 1)


@pytest.mark.parametrize(("factor", "side"), [(2, 8), (3, 5), (4, 3)])
def test_an_upsampled_image_in_a_concat(factor: int, side: int) -> None:
    scales = np.array([1, 1, factor, factor], np.float32)
    text = f"""(float[1, 6, {side}, {side}] p, float[1, 5, {factor * side}, {factor * side}] x) => (y) {{
        u = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">(p, "", f)
        c = Concat<axis = 1>(u, x)  y = Tanh(c) }}"""
    _check(onnx_model(text, f=scales), 1)
