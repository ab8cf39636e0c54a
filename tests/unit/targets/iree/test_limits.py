"""What fusion does not form for IREE, each with the code that its record has; and that IREE-sized neighbours are
formed."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fuseline
from fuseline.targets import create_target
from fuseline.targets.iree import limits
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.unit.targets.iree.fake_iree import install


def _normal(*shape: int) -> np.ndarray:  # pyright: ignore[reportMissingTypeArgument, reportUnknownParameterType]
    return RNG.standard_normal(shape).astype(np.float32)


REFUSED = {
    "iree-concat": ("(float[4, n] x, float[4, m] v) => (y) { a = Concat<axis = 1>(x, v)  y = Exp(a) }", {}),
    "iree-gather-reduction": (
        "(int64[6] i) => (y) { g = Gather(t, i)  s = ReduceSum<keepdims = 1>(g, a)  y = Sub(g, s) }",
        {"t": _normal(20, 9), "a": np.array([1])},
    ),
    "iree-spread-window": (
        """(float[1, 3, 6, 5] x) => (z) { u = Resize<mode = "nearest">(x, "", s)
        y = Conv<kernel_shape = [3, 3]>(u, w)  z = Relu(y) }""",
        {"s": np.array([1, 1, 2, 2], np.float32), "w": _normal(16, 3, 3, 3)},
    ),
    "iree-padded-lanes": (
        "(float[1, 1, 12, 12] x) => (y) { y = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x, w) }",
        {"w": _normal(1, 1, 3, 3)},
    ),
    "iree-computed-pad": ("(float[6, 8] x) => (y) { a = Abs(x)  y = Pad(a, p) }", {"p": np.array([1, 0, 1, 0])}),
    "iree-shifted-result": (
        "(float[6, 8] x) => (a, y) { a = Abs(x)  s = Slice(a, f, t)  y = Pad(s, p) }",
        {"f": np.array([0]), "t": np.array([5]), "p": np.array([1, 0, 0, 0])},
    ),
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_iree_fails_on_is_not_formed(code: str, monkeypatch: pytest.MonkeyPatch):
    fake = install(monkeypatch)
    text, weights = REFUSED[code]
    model = onnx_model(text, weights)
    compiled = fuseline.compile(model, target="iree")
    missed = [one.detail for one in compiled.decisions if one.verdict == "missed" and one.code == "target"]
    assert any(detail.startswith(f"{code}: ") for detail in missed), missed
    formed = fuseline.compile(model, target="null").stats["dispatches"]
    assert compiled.stats["dispatches"] > formed, "a target without limits forms it"
    assert fake.texts


FORMED = {
    "a pad of what is fed, before a convolution over channels": (
        "(float[1, 3, 8, 8] x) => (y) { c = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x, w)  y = Relu(c) }",
        {"w": _normal(16, 3, 3, 3)},
    ),
    "a gather and elementwise work": (
        "(int64[6] i, float[6, 9] x) => (y) { g = Gather(t, i)  s = Add(g, x)  y = Exp(s) }",
        {"t": _normal(20, 9)},
    ),
    "a softmax": ("(float[8, 30] x) => (y) { a = Exp(x)  y = Softmax(a) }", {}),
    "a result that is read in place": ("(float[8, n] x) => (a, y) { a = Exp(x)  y = Neg(a) }", {}),
}


@pytest.mark.parametrize("name", FORMED)
def test_what_iree_takes_is_formed(name: str, monkeypatch: pytest.MonkeyPatch):
    install(monkeypatch)
    text, weights = FORMED[name]
    assert fuseline.compile(onnx_model(text, weights), target="iree").stats["dispatches"] == 1


@pytest.mark.parametrize(("pads", "loose"), [([0, 1, 0, 1], True), ([1, 0, 0, 0], False)])
def test_a_pad_of_lanes_and_a_concat_stand_outside_of_regions(
    pads: list[int], loose: bool, monkeypatch: pytest.MonkeyPatch
):
    fake = install(monkeypatch)
    fuseline.compile(onnx_model("(float[6, 8] x) => (y) { y = Pad(x, p) }", p=np.array(pads)), target="iree")
    fuseline.compile(onnx_model("(float[4, n] x, float[4, m] v) => (y) { y = Concat<axis = 1>(x, v) }"), target="iree")
    outside = [re.search(r"^    (?:%\d+ = )?(?:tensor\.(pad|concat))", text, re.MULTILINE) for text in fake.texts]
    assert [found is not None for found in outside] == [loose, True]


def test_every_refusal_is_tested():
    source = limits.__file__
    with open(source, encoding="utf-8") as file:
        assert {*re.findall(r'Refusal\(\s*"([\w-]+)"', file.read())} == {*REFUSED, "iree-rank-length"}
    assert create_target("iree").description.roots_limit == 1


def test_long_rows_are_sorted_by_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    text = "(float[2, {n}] x) => (float[] v, int64[] i) {{ v, i = TopK(x, k) }}"
    kept, left = (
        fuseline.compile(onnx_model(text.format(n=size), k=[3]), target="iree", threads=1) for size in (90, 8193)
    )
    assert not kept.record.host_ops
    assert [op.reason.split(":")[0] for op in left.record.host_ops] == ["target-iree-rank-length"]
