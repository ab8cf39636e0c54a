"""Every command end to end on a small model: text, JSON, files."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest

from fuseline.cli.main import main
from tests.small_models import attention, convolutions, mlp
from tests.unit.report.page.test_render import blobs

pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("models")
    for name, model in (("mlp", mlp()), ("cnn", convolutions()), ("attention", attention("batch", "length"))):
        onnx.save(model, place / f"{name}.onnx")
    assert main(["compile", str(place / "mlp.onnx"), "--threads", "1"]) == 0
    return place


def _json(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*arguments, "--json"]) == code
    document = json.loads(capsys.readouterr().out)
    assert (document["version"], document["command"]) == (1, arguments[0])
    return document


def test_compile_writes_one_artifact(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    document = _json(["compile", str(folder / "cnn.onnx"), "-o", str(tmp_path / "a.fuse")], capsys)
    assert document["bytes"] == (tmp_path / "a.fuse").stat().st_size
    assert [path.name for path in tmp_path.iterdir()] == ["a.fuse"]


@pytest.mark.parametrize("stage", ["input", "layout", "dispatch"])
def test_emit_prints_a_stage(stage: str, folder: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["compile", str(folder / "mlp.onnx"), "--emit", stage]) == 0
    text = capsys.readouterr().out
    assert "func.func" in text
    assert ("flow.dispatch" in text) == (stage == "dispatch")
    assert _json(["compile", str(folder / "mlp.onnx"), "--emit", stage], capsys)["text"].strip() == text.strip()


@pytest.mark.parametrize("name", ["mlp.onnx", "cnn.onnx", "attention.onnx"])
def test_run_checks_against_onnxruntime(name: str, folder: Path, capsys: pytest.CaptureFixture[str]):
    document = _json(["run", str(folder / name), "--check", "onnxruntime"], capsys)
    assert all(row["error"] <= 1e-4 and row["depends_on_input"] for row in document["check"])


def test_run_reads_and_writes_arrays(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    x = np.random.default_rng(7).standard_normal((4, 16), np.float32)
    np.save(tmp_path / "x.npy", x)
    for model in ("mlp.onnx", "mlp.fuse"):
        assert (
            main(["run", str(folder / model), "--input", f"x=@{tmp_path / 'x.npy'}", "--output", str(tmp_path / model)])
            == 0
        )
    first, second = (np.load(next((tmp_path / model).iterdir())) for model in ("mlp.onnx", "mlp.fuse"))
    assert first.tobytes() == second.tobytes()
    assert np.allclose(first.sum(axis=-1), 1, atol=1e-5)


def test_run_in_a_pipe(folder: Path, monkeypatch: pytest.MonkeyPatch):
    given, result = io.BytesIO(), io.BytesIO()
    np.save(given, np.random.default_rng(8).standard_normal((4, 16), np.float32))
    given.seek(0)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=given))
    monkeypatch.setattr("sys.stdout", SimpleNamespace(buffer=result, isatty=lambda: False))
    assert main(["run", str(folder / "mlp.fuse"), "--input", "-", "--output", "-"]) == 0
    result.seek(0)
    assert np.load(result).shape == (4, 10)


def test_run_at_a_chosen_size(folder: Path, capsys: pytest.CaptureFixture[str]):
    document = _json(["run", str(folder / "attention.onnx"), "--shape", "length=5", "--shape", "batch=3"], capsys)
    assert document["outputs"][0]["shape"] == [3, 5, 16]


def test_a_constant_model_proves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    model = mlp()
    for tensor in model.graph.initializer:
        tensor.raw_data = bytes(len(tensor.raw_data))
    onnx.save(model, tmp_path / "m.onnx")
    assert (
        _json(["run", str(tmp_path / "m.onnx"), "--check", "onnxruntime"], capsys, code=1)["error"]["code"] == "E0602"
    )


def test_a_tolerance_that_is_not_met_fails(folder: Path, capsys: pytest.CaptureFixture[str]):
    document = _json(["run", str(folder / "cnn.onnx"), "--check", "onnxruntime", "--tolerance", "-1"], capsys, code=1)
    assert document["error"]["code"] == "E0601"


STATISTICS = (
    "dispatches barriers executables code_bytes bytes_moved fills copies host_ops standalone_transposes "
    "transient_bytes constant_bytes "
    "largest_live_bytes arena_bytes scratch_bytes_max in_place generic_ops_before generic_ops_after edges phase_seconds"
).split()


def test_stats_has_every_documented_key(folder: Path, capsys: pytest.CaptureFixture[str]):
    document = _json(["stats", str(folder / "cnn.onnx"), "--dispatches"], capsys)
    assert not [key for key in STATISTICS if key not in document]
    assert document["dispatches"] == len(document["dispatch_table"])
    assert set(document["constant_bytes"]) >= {"original", "packed"}
    assert document["host_ops"] == 0


def test_stats_of_an_artifact_are_those_of_its_compile(folder: Path, capsys: pytest.CaptureFixture[str]):
    of_artifact = _json(["stats", str(folder / "mlp.fuse")], capsys)
    of_model = _json(["stats", str(folder / "mlp.onnx"), "--threads", "1"], capsys)
    assert {**of_artifact, "model": 0, "phase_seconds": 0} == {**of_model, "model": 0, "phase_seconds": 0}


def test_explain_model_node_and_edge(folder: Path, capsys: pytest.CaptureFixture[str]):
    model = str(folder / "mlp.onnx")
    assert "dispatch" in _json(["explain", model], capsys)["text"][0]
    assert "Relu_1 runs in" in _json(["explain", model, "Relu_1"], capsys)["text"][0]
    edge = _json(["explain", model, "Gemm_0", "Relu_1"], capsys)
    assert "Gemm_0 and Relu_1" in edge["text"][0]
    assert _json(["explain", model, "0"], capsys)["dispatches"] == edge["dispatches"]
    ids = [edge["decisions"][0][end] for end in ("producer", "consumer")]
    assert _json(["explain", model, *ids], capsys)["decisions"]
    assert _json(["explain", model, "Nope_9"], capsys, code=2)["error"]["node"] == "Nope_9"
    assert _json(["explain", model, "a", "b", "c"], capsys, code=2)["error"]["code"] == "E0501"


def test_remarks_can_be_filtered(folder: Path, capsys: pytest.CaptureFixture[str]):
    model = str(folder / "cnn.onnx")
    assert main(["explain", model, "--remarks", "yaml"]) == 0
    assert capsys.readouterr().out.startswith("--- !")
    assert main(["explain", model, "--remarks", "jsonl", "--filter-node", "^Relu"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines
    assert all("Relu" in line["args"]["Producer"] + line["args"]["Consumer"] for line in lines)
    assert (
        _json(["explain", model, "--remarks", "yaml", "--filter-rule", "("], capsys, code=2)["error"]["code"] == "E0501"
    )


def test_remarks_go_into_a_file_and_may_be_about_one_node(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    model = str(folder / "cnn.onnx")
    path = tmp_path / "r.yaml"
    assert main(["explain", model, "--remarks-format", "yaml", "-o", str(path)]) == 0
    assert main(["explain", model, "Relu_2", "--remarks-format", "yaml", "--remarks-filter", "Relu_2|nothing"]) == 0
    assert 0 < capsys.readouterr().out.count("--- !") < path.read_text().count("--- !")
    assert (
        _json(["explain", model, "--remarks-format", "yaml", "--remarks-filter", "("], capsys, code=2)["error"]["code"]
        == "E0501"
    )


def test_diff_of_plans_and_models(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    model, plan = str(folder / "cnn.onnx"), str(tmp_path / "p.toml")
    assert main(["compile", model, "--emit", "plan", "-o", plan]) == 0
    assert main(["diff", plan, plan, "--fail-if", "any"]) == 0
    same = _json(["diff", plan, model], capsys)
    assert not (same["appeared"] or same["vanished"] or same["changed"] or same["statistics"])
    forced = tmp_path / "forced.toml"
    forced.write_text(Path(plan).read_text().replace("force = []", 'force = [["b", "copy.a"]]'))
    assert _json(["diff", plan, str(forced)], capsys)["statistics"] == {"force": [[], [["a", "b"]]]}
    assert _json(["diff", plan, model, "--fail-if", "more-bytes"], capsys, code=2)["error"]["code"] == "E0501"
    assert main(["diff", plan, model, "--fail-if", "more-dispatches", "--fusion", "none"]) == 1


def test_diff_of_models_and_saved_statistics(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    mlp_path, cnn_path = str(folder / "mlp.onnx"), str(folder / "cnn.onnx")
    same = _json(["diff", mlp_path, mlp_path, "--fail-if", "any"], capsys)
    assert not (same["appeared"] or same["vanished"] or same["statistics"])
    (tmp_path / "none.json").write_text(
        json.dumps(_json(["stats", mlp_path, "--dispatches", "--decisions", "--fusion", "none"], capsys))
    )
    worse = _json(
        ["diff", mlp_path, str(tmp_path / "none.json"), "--fail-if", "more-dispatches", "--fail-if", "more-bytes"],
        capsys,
        code=1,
    )
    assert set(worse["failed"]) == {"more-dispatches", "more-bytes"}
    assert worse["changed"][0]["lost"]
    assert worse["changed"][0]["decisions"]
    assert len(worse["appeared"]) > 1
    assert main(["diff", str(tmp_path / "none.json"), mlp_path, "--fail-if", "more-dispatches"]) == 0
    assert _json(["diff", mlp_path, cnn_path], capsys)["vanished"]
    (tmp_path / "s.json").write_text(json.dumps(_json(["stats", mlp_path, "--dispatches"], capsys)))
    assert main(["diff", str(tmp_path / "s.json"), mlp_path, "--fail-if", "any"]) == 0
    (tmp_path / "bad.json").write_text("[1]")
    assert _json(["diff", str(tmp_path / "bad.json"), mlp_path], capsys, code=2)["error"]["code"] == "E0501"


def test_report_writes_one_page(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    document = _json(["report", str(folder / "cnn.onnx"), "-o", str(tmp_path / "r.html")], capsys)
    page = (tmp_path / "r.html").read_text()
    assert document["bytes"] == len(page.encode())
    names = [node["name"] for node in blobs(page)["main"]["sides"][0]["sources"]]
    assert any("Relu_" in name for name in names)
    assert "</html>" in page


def test_bench_measures_peers_and_dispatches(folder: Path, capsys: pytest.CaptureFixture[str]):
    arguments = [
        "bench",
        str(folder / "mlp.onnx"),
        "--vs",
        "onnxruntime",
        "--threads",
        "1,2",
        "--rounds",
        "3",
        "--per-dispatch",
    ]
    document = _json(arguments, capsys)
    assert [row["threads"] for row in document["results"]] == [1, 2]
    for row in document["results"]:
        assert row["ratio_best_peer"] == row["ratios"]["onnxruntime"]["value"] > 0
        assert row["relative_error"]["onnxruntime"] <= 1e-4
    assert len(document["dispatches"]) == _json(["stats", str(folder / "mlp.onnx")], capsys)["dispatches"]
    assert main(arguments) == 0
    assert "GFLOP/s" in capsys.readouterr().out


@pytest.mark.parametrize("option", [["--vs", "onnxruntime"], ["--check", "onnxruntime"]])
def test_peers_need_the_model(option: list[str], folder: Path, capsys: pytest.CaptureFixture[str]):
    command = "bench" if option[0] == "--vs" else "run"
    assert _json([command, str(folder / "mlp.fuse"), *option], capsys, code=2)["error"]["code"] == "E0501"
