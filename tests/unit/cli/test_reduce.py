"""`fuseline reduce` as it is typed."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnx
import pytest

from fuseline.cli.main import main
from fuseline.errors import FuselineError
from fuseline.passes.registry import load_pass
from fuseline.verify.reduce.judge import Judge
from tests.graphs.onnx_text import onnx_model
from tests.unit.verify.bisect.faults import wrong_family

TEXT = "(float[5, 8] x) => (y) { [low] a = Exp(x) [product] p = MatMul(a, w) [bend] r = Relu(p) [end] y = Tanh(r) }"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    made = onnx_model(TEXT, w=np.random.default_rng(3).standard_normal((8, 6)).astype(np.float32))
    made.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [5, 6]))
    onnx.save(made, path)
    return path


def _wrong() -> Any:
    return wrong_family("contraction", lambda text: text.replace("fcmp ogt", "fcmp olt"))


def test_the_smallest_model_comes_with_a_test(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = model.with_name("small.onnx")
    words = ["reduce", model, "-o", small, "--against", "interpreter", "--threads", 1, "--json"]
    with _wrong():
        assert main([*map(str, words)]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["after"]["nodes"] <= 2 < found["before"]["nodes"]
        assert found["after"]["elements"] < found["before"]["elements"]
        test = runpy.run_path(str(small.with_name("test_small.py")))["test_small"]
        with pytest.raises(AssertionError):
            test()
    test()
    assert {path.name for path in model.parent.iterdir()} == {"m.onnx", "small.onnx", "small.npz", "test_small.py"}


def test_a_compile_that_fails_is_reduced_by_its_code(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kind = load_pass("collapse-dims")

    def fail(self: Any, ctx: Any, op: Any) -> None:
        if any(inner.name == "math.tanh" for inner in op.walk()):
            raise FuselineError("E0901", "planted")

    small = model.with_name("small.onnx")
    with mock.patch.object(kind, "apply", fail):
        assert main(["reduce", str(model), "-o", str(small), "--code", "E0901", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "planted" in found["shown"] and [node.op_type for node in onnx.load(small).graph.node] == ["Tanh"]


def test_ctrl_c_keeps_the_smallest_so_far(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = iter([("differs", "whole"), ("differs", "less")])

    def shows(self: Any, candidate: Any) -> tuple[str, str]:
        found = next(answers, None)
        if found is None:
            raise KeyboardInterrupt
        return found

    small = model.with_name("small.onnx")
    with mock.patch.object(Judge, "shows", shows):
        assert main(["reduce", str(model), "-o", str(small), "--against", "interpreter"]) == 0
    assert len(onnx.load(small).graph.node) < 4
    assert "kept" in capsys.readouterr().err


def test_a_model_of_more_than_protobuf_holds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "large.onnx"
    proto = onnx_model("(float[2, 64] x) => (y) { y = MatMul(x, w) }", w=np.zeros((64, 64), np.float32))
    onnx.save(proto, path, save_as_external_data=True, location="large.bin", size_threshold=0)
    monkeypatch.setattr("fuseline.exports.onnx.source.MOST_BYTES", 16000)  # the weights alone are 16384
    assert path.stat().st_size < 16000
    assert main(["reduce", str(path), "-o", str(tmp_path / "s.onnx"), "--against", "interpreter"]) == 2
    told = capsys.readouterr().err
    assert "E0501" in told and "one file" in told and "bisect" in told
    assert sorted(one.name for one in tmp_path.iterdir()) == ["large.bin", "large.onnx"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["reduce", "none.onnx", "-o", "s.onnx"], "E0101"),
        (["reduce", "m.fuse", "-o", "s.onnx"], "E0501"),
        (["reduce", "MODEL", "-o", "FOLDER/s.onnx", "--against", "interpreter"], "E0614"),
        (["reduce", "MODEL", "-o", "FOLDER/s.onnx", "--against", "no-such-command-here"], "E0501"),
    ],
)
def test_what_is_refused(words: list[str], code: str, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [word.replace("MODEL", str(model)).replace("FOLDER", str(model.parent)) for word in words]
    assert main(given) in (1, 2)
    assert code in capsys.readouterr().err
    assert [path.name for path in model.parent.iterdir()] == ["m.onnx"]
