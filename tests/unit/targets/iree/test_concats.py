"""Parts of concats are written where they belong: by the regions that make them, one version of the tensor after the
other; the text computes what the program does."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.targets.iree.compiler import Failure
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.unit.targets.iree.fake_iree import Judge
from tests.unit.targets.iree.fake_iree import install as fake_iree

BRANCHES = "a = MatMul(x, v)  b = Relu(a)  c = MatMul(x, w)  d = Tanh(c)"
LAST = "  n = Concat<axis=1>(b, d, e, f)  y = MatMul(n, r)"
CASES = {
    "two parts": (f"{BRANCHES}  k = Concat<axis=1>(b, d)  y = MatMul(k, u)", 2),
    "returned": (f"{BRANCHES}  y = Concat<axis=1>(b, d)", 2),
    "rows": (f"{BRANCHES}  y = Concat<axis=0>(b, d)", 2),
    "an argument between": (f"{BRANCHES}  k = Concat<axis=1>(b, x, d)  y = MatMul(k, t)", 2),
    "read by others": (f"{BRANCHES}  k = Concat<axis=1>(b, d)  e = MatMul(b, s)  f = MatMul(k, u)  y = Add(e, f)", 3),
    "ranges": (
        f"{BRANCHES}  k = Concat<axis=1>(b, d)  e = MatMul(k, u)  m = Concat<axis=1>(b, d, e)  f = MatMul(m, t){LAST}",
        4,
    ),
}
WEIGHTS = {"v": (5, 5), "w": (5, 5), "u": (10, 5), "t": (15, 5), "s": (5, 5), "r": (20, 5)}


def _model(text: str, rows: str = "6") -> onnx.ModelProto:
    read = [name for name in WEIGHTS if re.search(rf"\b{name}\)", text)]
    weights = {name: RNG.standard_normal(WEIGHTS[name], np.float32) for name in read}
    return onnx_model(f"(float[{rows}, 5] x) => (y) {{ {text} }}", weights)


@pytest.mark.parametrize(("name", "rows"), [*((name, "6") for name in CASES), ("ranges", "n")])
def test_regions_write_and_read_ranges(name: str, rows: str, monkeypatch: pytest.MonkeyPatch):
    text, changed = CASES[name]
    model, fake = _model(text, rows), fake_iree(monkeypatch)
    x = RNG.standard_normal((6, 5)).astype(np.float32)
    expected = fuseline.compile(model, target="interpreter").run({"x": x})
    found = fuseline.compile(model, target="iree").run({"x": x})
    np.testing.assert_allclose(found["y"], expected["y"], rtol=1e-5, atol=1e-6)
    (program,) = fake.texts
    assert "tensor.concat" not in program
    regions = re.findall(r"flow\.dispatch\.region.*?flow\.return", program, re.DOTALL)
    assert sum("_slice" in region for region in regions) == changed


@pytest.mark.parametrize(
    "text",
    [
        "a = MatMul(x, v)  y = Concat<axis=1>(a, a)",
        "y = Concat<axis=1>(x, x)",
        "a = MatMul(x, v)  b = MatMul(x, w)  k = Concat<axis=1>(a, b)  m = Concat<axis=1>(b, a)  y = Add(k, m)",
    ],
    ids=["one part twice", "arguments alone", "two concats of one part"],
)
def test_what_stands_in_two_ways_is_copied(text: str, monkeypatch: pytest.MonkeyPatch):
    model, fake = _model(text), fake_iree(monkeypatch)
    x = RNG.standard_normal((6, 5)).astype(np.float32)
    expected = fuseline.compile(model, target="interpreter").run({"x": x})
    found = fuseline.compile(model, target="iree").run({"x": x})
    np.testing.assert_allclose(found["y"], expected["y"], rtol=1e-5, atol=1e-6)
    assert all("tensor.concat" in text for text in fake.texts)


def _slices(text: str) -> Sequence[Failure]:
    """The compiler cannot write parts; it says where, the first time."""
    lines = [number for number, line in enumerate(text.splitlines(), 1) if "insert_slice" in line]
    return [Failure(number, "no slices") for number in lines[:1]]


def _crash(text: str) -> Sequence[Failure]:
    return [Failure(0, "a crash")] if "insert_slice" in text else []


@pytest.mark.parametrize("judge", [_slices, _crash])
def test_what_iree_does_not_write_in_place_is_copied_and_said(judge: Judge, monkeypatch: pytest.MonkeyPatch):
    model, fake = _model(CASES["two parts"][0]), fake_iree(monkeypatch, judge)
    x = RNG.standard_normal((6, 5)).astype(np.float32)
    program = fuseline.compile(model, target="iree")
    np.testing.assert_allclose(
        program.run({"x": x})["y"], fuseline.compile(model, target="interpreter").run({"x": x})["y"], rtol=1e-5
    )
    assert "tensor.concat" in fake.texts[-1]
    remarks = [remark for remark in program.record.remarks if remark.code == "iree-codegen"]
    assert remarks and all("copied" in remark.detail for remark in remarks)
