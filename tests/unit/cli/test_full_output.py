"""Standard output that takes nothing more: one coded error, no traceback, whatever writes there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")
NEEDS_A_FULL_DEVICE = pytest.mark.skipif(not FULL.is_char_device(), reason="no device that is always full")
PROGRAM = """func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
  %e = tensor.empty() : tensor<3xf32>
  %y = linalg.exp ins(%x : tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
}
"""


@NEEDS_A_FULL_DEVICE
@pytest.mark.parametrize(
    "words",
    [
        ("stats", "x.mlir"),
        ("stats", "x.mlir", "--json"),
        ("stats", "x.mlir", "x.mlir", "--json"),
        ("compile", "x.mlir", "--emit", "llvm"),
        ("compile", "x.mlir", "-o", "-"),
        ("compile", "x.mlir", "--emit", "plan", "--json"),
        ("opt", "-p", "cleanup", "x.mlir"),
        ("opt", "--list-passes"),
    ],
    ids=" ".join,
)
def test_a_full_disk_is_one_coded_error(words: tuple[str, ...], tmp_path: Path):
    failed = _failed(words, tmp_path)
    assert "error E0502" in failed and "standard output" in failed


@NEEDS_A_FULL_DEVICE
def test_a_failure_that_cannot_be_a_document_is_text(tmp_path: Path):
    assert "error E0101" in _failed(("stats", "missing.onnx", "--json"), tmp_path)


def _failed(words: tuple[str, ...], tmp_path: Path) -> str:
    """What the command says on standard error; it fails without a traceback."""
    (tmp_path / "x.mlir").write_text(PROGRAM)
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    with FULL.open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "fuseline", *words],
            cwd=tmp_path,
            env=environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert ran.returncode == 1, ran.stderr
    assert "Traceback" not in ran.stderr and "Exception ignored" not in ran.stderr
    return ran.stderr
