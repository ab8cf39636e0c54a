"""`check` of MLIR text, whose results have no names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fuseline.cli.main import main

TEXT = """
func.func @main(%arg0: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %x = math.exp %arg0 : tensor<4x8xf32>
  %y = arith.addf %x, %b : tensor<4x8xf32>
  return %y, %x : tensor<4x8xf32>, tensor<4x8xf32>
}
"""


def test_results_without_names_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(TEXT)
    assert main(["check", str(path), "--threads", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["output"] for row in found["outputs"]] == ["result0", "result1"]
    assert all(row["status"] == "ok" and row["error"] < 1e-5 for row in found["outputs"])
