"""The ops behind each source node, after each phase."""

from __future__ import annotations

import pytest

import fuseline
from fuseline.ir import op_texts
from fuseline.ir.op_texts import OpTexts
from fuseline.pipeline import PASS_PHASES
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

TEXT = "(float[5, 32] x) => (y) { [product] a = MatMul(x, w)  [root] b = Exp(a)  [gone] y = Identity(b) }"


def _texts() -> OpTexts:
    observer = OpTexts(PASS_PHASES)
    model = onnx_model(TEXT, w=RNG.standard_normal((32, 8), dtype=float).astype("float32"))
    fuseline.compile(model, threads=1, after_pass=observer)
    return observer


def test_every_phase_has_the_ops_of_a_node_once_each() -> None:
    found = _texts()
    assert list(found.nodes["product"]) == ["input", *PASS_PHASES]
    for phase in ("input", "layout", "fusion"):
        texts = [found.texts[number] for number in found.nodes["product"][phase]]
        assert any("arith.mulf" in text for text in texts)
    assert any("math.exp" in found.texts[number] for number in found.nodes["root"]["cleanup"])
    assert any("flow.dispatch @" in found.texts[number] for number in found.nodes["root"]["dedup"])
    assert len(set(found.texts)) == len(found.texts)
    assert not any(text.startswith("%") and "arith.constant" in text.split("\n")[0] for text in found.texts)


def test_long_texts_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(op_texts, "LONGEST_TEXT", 40)
    assert max(len(text) for text in _texts().texts) == 44
