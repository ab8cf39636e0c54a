"""`fuseline fuse`: what it writes, says and refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from fuseline.cli.main import main
from fuseline.exports.onnx import writer
from fuseline.passes.fusion.plan import plan_id
from tests.draws import RNG
from tests.fused import compare, outputs
from tests.graphs.onnx_text import onnx_model


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "net.onnx"
    weights = {name: RNG.standard_normal((64, 64)).astype(np.float32) for name in ("a", "b")}
    onnx.save(
        onnx_model(
            "(float[32, 64] x) => (float[32, 64] y) { t = MatMul(x, a)  u = Softmax(t)  y = MatMul(u, b) }", weights
        ),
        path,
    )
    return path


def _json(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, Any]:
    code = main([str(word) for word in words])
    return code, json.loads(capsys.readouterr().out)


def test_a_model_is_written_beside_the_one_that_is_read(model: Path, capsys: pytest.CaptureFixture[str]):
    code, about = _json(capsys, "fuse", model, "--json")
    assert code == 0 and about["files"] == [str(model.with_suffix(".fused.onnx"))]
    assert about["functions"] == about["dispatches"] == len(onnx.load(about["output"]).functions)
    assert about["nodes"] == about["in_functions"] == 3 and not about["shared"]


def test_the_plan_is_that_of_a_compile(model: Path, capsys: pytest.CaptureFixture[str]):
    import fuseline

    _, about = _json(capsys, "fuse", model, "--json", "--fusion", "none")
    assert about["plan"] == plan_id(fuseline.compile(model, fusion="none", target="null").record)
    assert about["plan"] != _json(capsys, "fuse", model, "--json")[1]["plan"]


def test_a_plan_is_followed(model: Path, capsys: pytest.CaptureFixture[str]):
    plan = model.with_name("plan.toml")
    assert main(["compile", str(model), "--emit", "plan", "-o", str(plan)]) == 0
    by_default = _json(capsys, "fuse", model, "--json")[1]
    first, *_, last = [line.split('"')[1] for line in plan.read_text().splitlines() if line.startswith('    "')]
    plan.write_text(f'version = 1\nforbid = [["{first}", "{last}"]]\n')
    _, about = _json(capsys, "fuse", model, "--plan", plan, "--json")
    assert about["dispatches"] > by_default["dispatches"]


def test_a_table_is_printed(model: Path, capsys: pytest.CaptureFixture[str]):
    out = model.with_name("out.onnx")
    assert main(["fuse", str(model), "-o", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "functions" in printed and f"{out}: plan " in printed


def test_the_model_may_take_the_place_of_the_one_that_is_read(model: Path):
    feeds = {"x": RNG.standard_normal((32, 64)).astype(np.float32)}
    expected = outputs(str(model), feeds)
    assert main(["fuse", str(model), "-o", str(model)]) == 0
    assert compare(expected, outputs(str(model), feeds)) <= 1


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["fuse", "no.onnx"], "E0101"),
        (["fuse", "{model}", "-o", "/proc/m.onnx"], "E0502"),
        (["fuse", "{model}", "-o", "m.fuse"], "E0501"),
        (["fuse", "{folder}/m.fuse"], "E0501"),
        (["fuse", "{folder}/m.mlir"], "E0501"),
        (["fuse", "{model}", "-o", "-"], "E0501"),
        (["fuse", "{model}", "--optimized", "-o", "-"], "E0501"),
        (["fuse", "{model}", "--target", "what"], "E0501"),
    ],
)
def test_what_is_refused(words: list[str], code: str, model: Path, capsys: pytest.CaptureFixture[str]):
    for name in ("m.fuse", "m.mlir"):
        model.with_name(name).write_text("module {}")
    before = sorted(model.parent.iterdir())
    status, about = _json(capsys, *(word.format(model=model, folder=model.parent) for word in words), "--json")
    assert status and about["error"]["code"] == code
    assert sorted(model.parent.iterdir()) == before


def test_standard_output(model: Path, capfdbinary: pytest.CaptureFixture[bytes]):
    assert main(["fuse", str(model), "-o", "-"]) == 0
    fused = onnx.load_model_from_string(capfdbinary.readouterr().out)
    assert fused.functions
    model.with_name("fused.onnx").write_bytes(fused.SerializeToString())
    onnx.checker.check_model(str(model.with_name("fused.onnx")), full_check=True)


def test_names_that_are_no_text_are_refused(model: Path, capsys: pytest.CaptureFixture[str]):
    model.write_bytes(model.read_bytes().replace(b"Softmax", b"Soft\xffax"))
    assert _json(capsys, "fuse", model, "--json")[1]["error"]["code"] == "E0105"


def test_a_model_that_is_too_large_for_one_file(model: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(writer, "MOST_BYTES", 20_000)
    out = model.with_name("out") / "fused.onnx"
    feeds = {"x": RNG.standard_normal((32, 64)).astype(np.float32)}
    assert main(["fuse", str(model), "-o", str(out)]) == 0
    assert sorted(path.name for path in out.parent.iterdir()) == ["fused.onnx", "fused.onnx.data"]
    onnx.checker.check_model(str(out), full_check=True)
    assert compare(outputs(str(model), feeds), outputs(str(out), feeds)) <= 1


def test_external_data_is_copied_beside_the_model(model: Path):
    feeds = {"x": RNG.standard_normal((32, 64)).astype(np.float32)}
    expected = outputs(str(model), feeds)
    apart = model.with_name("in") / "net.onnx"
    apart.parent.mkdir()
    onnx.save(onnx.load(model), apart, save_as_external_data=True, location="w.bin", size_threshold=0)
    out = model.with_name("out") / "fused.onnx"
    assert main(["fuse", str(apart), "-o", str(out)]) == 0
    for path in apart.parent.iterdir():
        path.unlink()
    onnx.checker.check_model(str(out), full_check=True)
    assert compare(expected, outputs(str(out), feeds)) <= 1
    again = model.with_name("again.onnx")
    assert main(["fuse", str(out), "-o", str(again)]) == 0
    assert again.with_name("again.onnx.data").read_bytes() == out.with_name("fused.onnx.data").read_bytes()
