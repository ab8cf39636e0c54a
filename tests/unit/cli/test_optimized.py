"""`fuseline fuse --optimized`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

import fuseline
from fuseline.cli.main import cli
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.optimized import compare, drawn, outputs


def _model(path: Path, *, external: bool = False) -> onnx.ModelProto:
    text = """(float[1, 3, 6, 6] x) => (float[1, 4, 4, 4] y)
    { t = Transpose<perm = [0, 2, 3, 1]>(x)  r = Relu(t)  u = Transpose<perm = [0, 3, 1, 2]>(r)  y = Conv(u, w) }"""
    model = onnx_model(text, w=RNG.standard_normal((4, 3, 3, 3)).astype(np.float32))
    onnx.save(model, path, save_as_external_data=external, location="weights.bin", size_threshold=1)
    return onnx.load(path)


def _run(*arguments: str) -> tuple[int, str]:
    found = CliRunner().invoke(cli, ["fuse", *arguments])
    return found.exit_code, found.output


@pytest.mark.parametrize("external", [False, True])
def test_the_graph_is_written_and_counted(external: bool, tmp_path: Path):
    model = _model(tmp_path / "m.onnx", external=external)
    code, text = _run(str(tmp_path / "m.onnx"), "--optimized", "--json", "-o", str(tmp_path / "out" / "o.onnx"))
    found = json.loads(text)
    assert code == 0 and found["nodes"] == {"before": 4, "after": 2}
    assert found["operators"]["Transpose"] == {"before": 2, "after": 0} and found["rewrites"]["relayout"] == 1
    assert len(found["files"]) == 1 + external and all(Path(file).exists() for file in found["files"])
    feeds = drawn(model)
    compare(outputs(model, feeds), outputs(onnx.load(tmp_path / "out" / "o.onnx"), feeds))


def test_the_table_and_the_default_place(tmp_path: Path):
    _model(tmp_path / "m.onnx")
    code, text = _run(str(tmp_path / "m.onnx"), "--optimized")
    assert code == 0 and "Transpose" in text and "4 nodes, now 2" in text
    assert (tmp_path / "m.optimized.onnx").exists()


def test_what_is_left_is_said(tmp_path: Path):
    text = '(float[1, 3, 6, 6] x) => (float[1, 4, a, b] y) { [edges] p = Pad<mode = "edge">(x, n)  y = Conv(p, w) }'
    held = {"n": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "w": RNG.standard_normal((4, 3, 3, 3)).astype(np.float32)}
    onnx.save(onnx_model(text, held), tmp_path / "m.onnx")
    code, shown = _run(str(tmp_path / "m.onnx"), "--optimized")
    assert code == 0 and "left: pads at edges: the padding repeats the image" in " ".join(shown.split())


@pytest.mark.parametrize("option", [("--target", "null"), ("--fusion", "none"), ("--threads", "2")])
def test_options_about_dispatches_are_refused(option: tuple[str, str], tmp_path: Path):
    _model(tmp_path / "m.onnx")
    with pytest.raises(fuseline.FuselineError, match=f"leaves nothing for {option[0]}"):
        CliRunner().invoke(cli, ["fuse", str(tmp_path / "m.onnx"), "--optimized", *option], catch_exceptions=False)


def test_a_place_that_is_none(tmp_path: Path):
    _model(tmp_path / "m.onnx")
    optimized = fuseline.optimize(tmp_path / "m.onnx")
    for place, code in ((tmp_path / "m.fuse", "E0501"), (tmp_path / "m.onnx" / "o.onnx", "E0502")):
        with pytest.raises(fuseline.FuselineError) as problem:
            optimized.save(place)
        assert problem.value.code == code
