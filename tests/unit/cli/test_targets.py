"""`fuseline targets`, and each command with a target from outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from fuseline.cli.main import main
from fuseline.targets import TARGETS
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.unit.report.page.test_render import blobs

TARGET = '''"""Lists what it is given.\n\nAnd no more."""
from fuseline.targets.null.counts import counted_kernel
from fuseline.targets.target import Target, TargetDescription

class Lister(Target):
    contract = 1
    suffix = ".lst"
    def __init__(self, name):
        self.description = TargetDescription(name)
    def compile_executables(self, entries, resources, *, splits=False, merges=False):
        return [counted_kernel(entry, "listed", entry.sym_name.data) for entry in entries]
    def assemble(self, schedule, kernels, constants, *, records, metadata):
        return "".join(f"{name}\\n" for name in kernels)

def create(variant, threads, numerics):
    return Lister(variant or "lister")
'''


@pytest.fixture
def model(tmp_path: Path) -> Path:
    w = RNG.standard_normal((4, 3)).astype(np.float32)
    text = "(float[n, 4] x) => (y) { [product] p = MatMul(x, w) [bend] y = Abs(p) }"
    onnx.save(onnx_model(text, w=w), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


@pytest.fixture
def lister(tmp_path: Path) -> str:
    path = tmp_path / "lister.py"
    path.write_text(TARGET)
    return str(path)


def _said(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    found = main([str(word) for word in words])
    out, err = capsys.readouterr()
    assert found == code, out + err
    return out + err


def _document(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> dict[str, Any]:
    return json.loads(_said(capsys, *words, "--json", code=code))


def test_targets_are_listed(lister: str, capsys: pytest.CaptureFixture[str]):
    rows = _document(capsys, "targets", lister)["targets"]
    assert [row["name"] for row in rows] == [*TARGETS, lister]
    assert rows[-1] == {
        "name": lister,
        "origin": lister,
        "summary": "Lists what it is given.",
        "runs": False,
        "writes": ".lst",
        "error": None,
    }
    text = _said(capsys, "targets", lister)
    assert all(name in text for name in TARGETS) and ".lst" in text


def test_a_target_that_does_not_load_is_a_row_and_a_failure(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    rows = _document(capsys, "targets", tmp_path / "none.py", code=1)["targets"]
    assert rows[-1]["error"]["code"] == "E0801" and len(rows) == len(TARGETS) + 1
    assert "E0801" in _said(capsys, "targets", tmp_path / "none.py", code=1)


def test_a_target_is_checked(lister: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert "keeps the contract on 9 graphs" in _said(capsys, "targets", "--check", lister)
    bad = tmp_path / "bad.py"
    bad.write_text(TARGET.replace('return "".join', 'return 1, "".join'))
    document = _document(capsys, "targets", "--check", bad, code=1)
    problems = document["problems"][str(bad)]
    assert len(problems) == len(document["graphs"]) and all("E0802" in problem for problem in problems)
    assert "name one" in _said(capsys, "targets", "--check", code=2)


def test_compile_writes_what_the_target_makes(model: Path, lister: str, capsys: pytest.CaptureFixture[str]):
    _said(capsys, "compile", model, "--target", lister)
    written = model.with_suffix(".lst")
    assert written.read_text().startswith("main_dispatch_0")
    other = model.parent / "other" / "named.txt"
    document = _document(capsys, "compile", model, "--target", lister, "-o", other)
    assert (document["output"], document["bytes"]) == (str(other), written.stat().st_size)
    assert other.read_bytes() == written.read_bytes()
    assert _said(capsys, "compile", model, "--target", lister, "-o", "-") == written.read_text()
    _said(capsys, "compile", model, "--target", lister, "--sign", "key", code=2)
    assert {path.name for path in model.parent.iterdir()} - {"__pycache__"} == {"lister.py", "m.lst", "m.onnx", "other"}


def test_what_a_target_makes_is_not_run(model: Path, lister: str, capsys: pytest.CaptureFixture[str]):
    assert "E0305" in _said(capsys, "run", model, "--target", lister, code=1)
    assert "E0502" in _said(
        capsys, "compile", model, "--target", lister, "--emit", "object", "-o", model.parent / "c", code=1
    )
    assert "generates no code to print" in _said(capsys, "compile", model, "--target", lister, "--emit", "asm", code=2)


def test_reports_name_the_target(model: Path, lister: str, capsys: pytest.CaptureFixture[str]):
    assert _document(capsys, "stats", model, "--target", f"{lister}:big")["target"] == "big"
    assert "bend" in _said(capsys, "explain", model, "bend", "--target", lister)
    page = model.parent / "m.html"
    _said(capsys, "report", model, "--target", lister, "-o", page)
    assert any(one["family"] == "listed" for one in blobs(page.read_text())["main"]["sides"][0]["dispatches"])
    assert "func.func @main" in _said(capsys, "compile", model, "--target", lister, "--emit", "dispatch")


def test_a_fault_of_the_target_is_not_ours(model: Path, lister: str, capsys: pytest.CaptureFixture[str]):
    path = Path(lister)
    path.write_text(TARGET + "\ndef legal(self, candidate):\n    return 1 / 0\nLister.legal = legal\n")
    text = _said(capsys, "stats", model, "--target", lister, code=1)
    assert "E0802" in text and "ZeroDivisionError" in text and "lister.py:" in text and "E0901" not in text
    text = _said(capsys, "stats", model, "--target", "lister", code=2)
    assert "E0501" in text
