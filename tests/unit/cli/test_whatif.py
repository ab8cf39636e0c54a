"""`fuseline whatif`: a line for each change, and the missed edges that cost most."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from fuseline.cli.main import main
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

CONVOLUTIONS = """(float[1, 8, 40, 40] x) => (y) {
    [c0] a = Conv<pads = [1, 1, 1, 1]>(x, v)  [r0] b = Relu(a)  [c1] c = Conv<pads = [1, 1, 1, 1]>(b, w)  [e] y = Exp(c)
}"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    weights = {name: RNG.standard_normal((8, 8, 3, 3), dtype=np.float32) for name in "vw"}
    onnx.save(onnx_model(CONVOLUTIONS, weights), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def _json(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, Any]:
    assert main(["whatif", *words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("target", ["null", "cpu"])
def test_each_change_is_a_line(target: str, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changes = [
        "--forbid",
        "c1",
        "e",
        "--without-rule",
        "elementwise-epilogue",
        "--level",
        "none",
        "--scratch",
        "64KiB",
    ]
    found = _json(capsys, str(model), *changes, "--target", target)["effects"]
    assert [one["change"] for one in found] == [
        "forbid c1 e", "without elementwise-epilogue", "scratch 64KiB", "fusion none",
    ]  # fmt: skip
    before = {one["dispatches"][0] for one in found}
    assert len(before) == 1
    after = {one["change"]: one["dispatches"][1] for one in found}
    (count,) = before
    assert after["forbid c1 e"] == count + 1 and after["fusion none"] > after["without elementwise-epilogue"] > count
    assert all(one["predicted_seconds"][0] > 0 for one in found)
    assert main(["whatif", str(model), *changes, "--target", target]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(found) and lines[0].startswith(f"forbid c1 e: {count} -> {count + 1} dispatches")


def test_what_cannot_be_is_a_line_with_its_reason(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _json(capsys, str(model), "--force", "c0", "c1", "--forbid", "c0", "r0", "--scratch", "1", code=1)[
        "effects"
    ]
    by_change = {one["change"]: one["error"] for one in found}
    assert by_change["force c0 c1"]["code"] == "E0703" and by_change["forbid c0 r0"] is None


def test_missed_edges_are_ranked_with_what_would_change_them(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _json(capsys, str(model), "--target", "null")
    assert found["effects"] == []
    gains = [one["saved_ns"] for one in found["missed"]]
    assert gains and gains == sorted(gains, reverse=True)
    first = found["missed"][0]
    assert first["bytes"] == 8 * 40 * 40 * 4 and first["to_change"] and "c1" in first["consumer_nodes"]
    assert _json(capsys, str(model), "--target", "null", "--top", "0")["missed"] == []


def test_of_a_model_without_missed_edges_it_says_so(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save(onnx_model("(float[4] x) => (y) { y = Relu(x) }"), tmp_path / "one.onnx")
    for words in ([str(tmp_path / "one.onnx")], [str(model), "--top", "0"]):
        capsys.readouterr()
        assert main(["whatif", *words, "--target", "null"]) == 0
        assert capsys.readouterr().out == "no missed edge to tell of\n"


def test_measured(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = _json(capsys, str(model), "--level", "none", "--measure", "--threads", "1")["effects"]
    value, low, high = found["ratio"]
    assert 0 < low <= value <= high


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--forbid", "c0", "nobody"], "no node is called nobody"),
        (["--scratch", "much"], "no size in bytes"),
        (["--scratch", "0"], "no size in bytes"),
        (["--scratch", "64KiB", "--target", "interpreter"], "is for the targets cpu and null"),
        (["--level", "none", "--measure", "--target", "null"], "needs a target with code"),
        (["--without-rule", "no-such-rule"], "no-such-rule"),
    ],
)
def test_what_is_refused(words: list[str], why: str, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["whatif", str(model), *words]) in (1, 2)
    captured = capsys.readouterr()
    assert why in captured.err + captured.out
