"""`--weights`: what the artifact holds, said at both ends."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from fuseline.cli.main import main
from tests.graphs.onnx_text import onnx_model


@pytest.fixture
def model(tmp_path: Path) -> Path:
    weight = np.random.default_rng().standard_normal((40, 55), dtype=np.float32)
    onnx.save(onnx_model("(float[3, 40] x) => (float[3, 55] y) { y = MatMul (x, w) }", w=weight), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


@pytest.mark.parametrize("weights", ["packed", "original"])
def test_a_run_says_how_long_laying_out_took(weights: str, model: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["compile", str(model), "--weights", weights]) == 0
    capsys.readouterr()
    artifact = str(model.with_suffix(".fuse"))
    assert main(["run", artifact, "--json"]) == 0
    assert (json.loads(capsys.readouterr().out)["layout_seconds"] > 0) == (weights == "original")
    assert main(["run", artifact]) == 0
    assert ("weights laid out in" in capsys.readouterr().out) == (weights == "original")


def test_another_word_is_refused(model: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["compile", str(model), "--weights", "folded", "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"].startswith("E05") and "folded" in json.dumps(error)
    assert not model.with_suffix(".fuse").exists()
