"""`fuseline explain --dedup`: who shares code with whom, at which level, and what keeps others apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from fuseline.cli.main import main
from tests.graphs.onnx_text import onnx_model

GRAPH = """(float[5, 24] x) => (float[5, 8] y) {
  [scale] a = Mul(x, two)
  [scale_again] b = Mul(a, three)
  [halve] c = Div(b, two)
  [divide] d = Div(c, three)
  [product] e = MatMul(d, w)
  [squash] f = Sigmoid(e)
  [scale_less] y = Mul(f, three)
}"""


@pytest.fixture
def model(tmp_path: Path) -> str:
    weights = {"two": np.float32(2), "three": np.float32(3), "w": np.ones((24, 8), np.float32)}
    path = tmp_path / "near.onnx"
    onnx.save(onnx_model(GRAPH, weights), path)
    return str(path)


def _sharing(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["explain", "--fusion", "none", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)["sharing"]


def test_classes_and_decisions_at_the_level_of_constants(model: str, capsys: pytest.CaptureFixture[str]):
    found = _sharing([model, "--dedup", "constants"], capsys)
    assert found["level"] == "constants" and found["executables"] == len(found["classes"]) == 6
    (shared,) = [one["dispatches"] for one in found["classes"] if len(one["dispatches"]) > 1]
    reasons = {(one["first"], one["second"]): one for one in found["decisions"]}
    assert shared == ["000_elementwise", "001_elementwise"]
    assert reasons["000_elementwise", "001_elementwise"]["verdict"] == "shared"
    halved = reasons["002_elementwise", "003_elementwise"]
    assert (halved["verdict"], halved["code"]) == ("apart", "constant-decides-code") and halved["ns"] > 0
    (less,) = [one for (_, second), one in reasons.items() if second == "006_elementwise"]
    assert (less["verdict"], less["code"]) == ("apart", "extents-differ") and "5x24" in less["detail"]


@pytest.mark.parametrize(("level", "executables"), [("none", 7), ("exact", 7), ("constants", 6)])
def test_what_a_higher_level_would_share_is_told(
    level: str, executables: int, model: str, capsys: pytest.CaptureFixture[str]
):
    found = _sharing([model, f"--dedup={level}"], capsys)
    assert (found["level"], found["executables"], len(found["classes"])) == (level, executables, executables)
    first = next(one for one in found["decisions"] if one["second"] == "001_elementwise")
    assert first["code"] == ("shared" if level == "constants" else "below-level")


def test_the_option_may_stand_alone_anywhere(model: str, capsys: pytest.CaptureFixture[str]):
    default = _sharing([model, "--dedup"], capsys)
    assert default == _sharing(["--dedup", model], capsys) == _sharing([model, "--dedup", default["level"]], capsys)


def test_the_text_names_classes_reasons_and_prices(model: str, capsys: pytest.CaptureFixture[str]):
    assert main(["explain", model, "--fusion", "none", "--dedup", "constants"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("level constants: 7 dispatches, 6 executables, ")
    assert (
        "bytes): 000_elementwise, 001_elementwise\n" in text and "an executable of their own: 002_elementwise" in text
    )
    assert "constant-decides-code" in text and "longer)" in text


def test_a_dispatch_names_its_companions(model: str, capsys: pytest.CaptureFixture[str]):
    assert main(["explain", model, "1", "--fusion", "none", "--dedup", "constants"]) == 0
    assert "shares its code with 000_elementwise" in capsys.readouterr().out
    assert main(["explain", model, "1", "--fusion", "none", "--dedup", "none"]) == 0
    assert "shares its code" not in capsys.readouterr().out


def test_an_artifact_tells_what_it_was_compiled_with(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    saved = str(tmp_path / "near.fuse")
    assert main(["compile", model, "--fusion", "none", "--dedup", "constants", "-o", saved]) == 0
    capsys.readouterr()
    assert main(["explain", saved, "--dedup", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sharing"]["executables"] == 6


def test_a_level_that_is_none_is_refused(model: str, capsys: pytest.CaptureFixture[str]):
    assert main(["explain", model, "--dedup", "odd"]) == 2
    assert "'odd' is not one of 'none', 'exact', 'constants', 'shapes'" in capsys.readouterr().err
