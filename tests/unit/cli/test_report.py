"""`fuseline report`: sides, comparisons, what is gathered, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest

from fuseline.cli.main import main
from tests.small_models import attention
from tests.unit.report.page.test_render import blobs


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(attention(2, 6), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def _page(model: Path, *words: str) -> dict[str, Any]:
    page = model.with_name("r.html")
    assert main(["report", str(model), *words, "-o", str(page)]) == 0
    return blobs(page.read_text(encoding="utf-8"))


def test_one_side_has_the_model_the_ir_and_reasons(model: Path) -> None:
    found = _page(model)
    (side,) = found["main"]["sides"]
    assert side["sources"][-1]["inputs"] and side["peaks"]["measured"] is False
    assert set(found["ir0"]["nodes"]) & {node["name"] for node in side["sources"]}
    assert set(found["main"]["reasons"]) == set(side["edges"]["missed"])
    assert all(text.startswith(f"# {code}") for code, text in found["main"]["reasons"].items())


def test_without_ir_and_with_assembly(model: Path) -> None:
    found = _page(model, "--no-ir", "--assembly")
    kernels = {symbol for one in found["main"]["sides"][0]["dispatches"] for symbol in one["kernels"]}
    assert set(found["assembly0"]) == kernels and "ir0" not in found
    assert all("ret" in text for text in found["assembly0"].values())


def test_measured(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("flops_per_ns", "stored_bytes_per_ns", "memory_bytes_per_ns"):
        monkeypatch.setattr(f"fuseline.tuning.machine.Measurement.{name}", lambda self: 7.0)  # pyright: ignore[reportUnknownLambdaType]
    sides = _page(model, "--measure", "--compare-with", "fusion=none", "--threads", "1")["main"]["sides"]
    assert [side["title"] for side in sides] == ["as given", "fusion=none"]
    for side in sides:
        assert side["peaks"]["flops_per_ns"] == 7.0 and side["peaks"]["measured"]
        assert side["seconds"] > 0 and all(one["seconds"] is not None for one in side["dispatches"])


def test_a_rule_that_is_off_shows_what_it_did(model: Path) -> None:
    found = _page(model, "--compare-with", "without-rule=row-chain")["main"]["comparison"]
    assert any(flip["was"] == "fused by row-chain" and flip["now"] != flip["was"] for flip in found["flips"])
    changes = [change for group in found["changed"] for change in group["changes"]]
    assert any("row-chain" in line for change in changes for line in change["decisions"])


def test_a_plan_an_artifact_and_saved_statistics(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, artifact, saved = (model.with_name(name) for name in ("p.toml", "a.fuse", "s.json"))
    assert main(["compile", str(model), "--emit", "plan", "-o", str(plan), "--fusion", "none"]) == 0
    assert main(["compile", str(model), "-o", str(artifact), "--fusion", "none"]) == 0
    capsys.readouterr()
    assert main(["stats", str(model), "--dispatches", "--decisions", "--json"]) == 0
    saved.write_text(capsys.readouterr().out)
    counts = [
        [len(side["dispatches"]) for side in _page(model, str(second))["main"]["sides"]]
        for second in (plan, artifact, saved)
    ]
    assert counts[0] == counts[1] and counts[0][1] > counts[0][0] and counts[2][0] == counts[2][1]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--compare-with", "fusion"], "does not understand"),
        (["--compare-with", "colour=red"], "does not understand"),
        (["--compare-with", "threads=many"], "wants a number"),
        (["--compare-with", "fusion=much"], "fusion"),
        (["--measure", "--target", "null"], "needs a target with code"),
    ],
)
def test_what_is_refused(words: list[str], why: str, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(model), *words, "--json"]) == 2
    error = json.loads(capsys.readouterr().out)
    assert why in json.dumps(error) and "E0501" in json.dumps(error)
    assert not model.with_suffix(".html").exists()


@pytest.mark.parametrize(("second", "code"), [("none.toml", "E0701"), ("none.onnx", "E0101"), ("bad.plan", "E0701")])
def test_a_second_file_is_looked_at_before_the_first_model_is_compiled(
    second: str, code: str, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model.with_name("bad.plan").write_text("version = 99")
    monkeypatch.setattr("fuseline.cli.report_sides.compiled", None)  # whoever compiles fails
    assert main(["report", str(model), str(model.with_name(second)), "--json"]) != 0
    assert code in capsys.readouterr().out
