"""What IREE makes vectors of: channels are innermost in the results and operands of products; the text computes what
the program does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.targets.iree.compiler import Failure
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.unit.targets.iree.fake_iree import Judge, install

FILTER = "(float[1, 8, 9, 7] x, float[6, 8, 3, 3] w) => (y) { y = Conv(x, w) }"
RELU = "(float[1, 8, 9, 7] x, float[6, 8, 3, 3] w) => (y) { c = Conv<pads=[1, 1, 1, 1]>(x, w)  y = Relu(c) }"
SCORES = "(float[3, 20, 8] x, float[3, 18, 8] w) => (y) { t = Transpose<perm=[0, 2, 1]>(w)  y = MatMul(x, t) }"
HALVES = "a, b = Split<axis=1, num_outputs=2>(x)  t = Transpose<perm=[1, 0]>(b)"
SLICED = f"(float[20, 16] x) => (y) {{ {HALVES}  y = MatMul(a, t) }}"
TWICE = (
    "(float[20, 8] x, float[20, 8] v, float[18, 8] w) => (y, z)"
    " { t = Transpose<perm=[1, 0]>(w)  y = MatMul(x, t)  z = MatMul(v, t) }"
)
FEW_ROWS = "(float[4, 8] x, float[18, 8] w) => (y) { t = Transpose<perm=[1, 0]>(w)  y = MatMul(x, t) }"
PLAIN = "(float[20, 8] x, float[8, 18] w) => (y) { y = MatMul(x, w) }"


def _text(model: str, monkeypatch: pytest.MonkeyPatch, judge: Judge | None = None) -> str:
    """The program's last text, once it was found to compute what the interpreter does."""
    proto = onnx_model(model)
    fake = install(monkeypatch, judge) if judge is not None else install(monkeypatch)
    compiled, plain = fuseline.compile(proto, target="iree"), fuseline.compile(proto, target="interpreter")
    feeds: Mapping[str, Any] = {
        one.name: RNG.standard_normal([int(str(size)) for size in one.shape]).astype(np.float32) for one in plain.inputs
    }
    found = compiled.run(feeds)
    for name, array in plain.run(feeds).items():
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5)
    return fake.texts[-1]


@pytest.mark.parametrize(
    ("model", "regions"),
    [(FILTER, 2), (RELU, 2), (SCORES, 2), (SLICED, 2), (TWICE, 3), (FEW_ROWS, 1), (PLAIN, 1)],
    ids=["filter", "relu", "scores", "sliced", "twice", "few rows", "plain"],
)
def test_operands_are_turned_in_regions_of_their_own(model: str, regions: int, monkeypatch: pytest.MonkeyPatch):
    assert _text(model, monkeypatch).count("flow.dispatch.region") == regions


@pytest.mark.parametrize("model", [RELU, SLICED])
def test_the_innermost_loop_of_a_product_is_innermost_in_what_has_it(model: str, monkeypatch: pytest.MonkeyPatch):
    (product,) = re.findall(r"indexing_maps = \[([^\]]*)\][^\n]*\"reduction\"", _text(model, monkeypatch))
    maps = [axes.split(", ") for axes in re.findall(r"-> \((.*?)\)>", product)]
    lanes = maps[-1][-1]
    assert all(lanes not in axes[:-1] for axes in maps)


def _slow(text: str) -> list[Failure]:
    turned = [
        number for number, line in enumerate(text.splitlines(), 1) if re.search("tensor<(8x3x3|3x3x8)x6xf32>", line)
    ]
    return [Failure(number, "too wide") for number in turned[:1]]


def test_what_iree_does_not_take_turned_stays_as_it_was_formed(monkeypatch: pytest.MonkeyPatch):
    text = _text(FILTER, monkeypatch, _slow)
    assert text.count("flow.dispatch.region") == 1
