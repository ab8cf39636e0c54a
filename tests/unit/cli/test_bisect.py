"""`fuseline bisect` as it is typed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnx
import pytest

from fuseline.cli.main import main
from fuseline.errors import FuselineError
from fuseline.passes.registry import load_pass
from fuseline.verify.bisect import slow
from tests.draws import generator
from tests.graphs.onnx_text import onnx_model
from tests.unit.verify.bisect.faults import wrong_family

W = generator(__name__).standard_normal((8, 6))
TEXT = "(float[n, 8] x) => (y) { [product] p = MatMul(x, w) [bend] y = Relu(p) }"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    onnx.save(onnx_model(TEXT, w=W.astype("float32")), path)
    return path


def _document(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    assert main([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_wrong_kernel_is_named(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with wrong_family("contraction", lambda text: text.replace("fcmp ogt", "fcmp olt")):
        found = _document(capsys, "bisect", model, "--against", "interpreter")
    assert found["culprits"][0]["kind"] == "kernel" and found["culprits"][0]["what"] == "contraction"
    assert "contraction" in found["verdict"] and found["runs"] > 1 and found["fuel"]


def test_a_program_that_is_right_has_nothing_to_look_for(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bisect", str(model), "--against", "true"]) == 1
    assert "E0614" in capsys.readouterr().err
    assert main(["bisect", str(model), "--against", "interpreter", "--fusion", "none"]) == 1
    assert "E0614" in capsys.readouterr().err


def test_a_command_that_is_never_satisfied_leaves_no_decision(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _document(capsys, "bisect", model, "--against", "false")
    assert found["culprits"][0]["kind"] == "needed-pass" and "exit code 1" in found["shown"] and not found["fuel"]


def test_a_compile_that_fails_is_looked_into(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kind = load_pass("collapse-dims")

    def fail(self: Any, ctx: Any, op: Any) -> None:
        raise FuselineError("E0901", "planted")

    with mock.patch.object(kind, "apply", fail):
        found = _document(capsys, "bisect", model, "--against", "interpreter")
    assert found["culprits"][0]["kind"] == "pass" and found["culprits"][0]["what"] == "collapse-dims"
    assert "E0901" in found["shown"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["bisect", "none.onnx"], "E0101"),
        (["bisect", "m.fuse"], "E0501"),
        (["bisect", "MODEL", "--against", "no-such-command-here"], "E0501"),
        (["compile", "MODEL", "--fuel", "fusion"], "E0501"),
        (["compile", "MODEL", "--fuel", "luck=3"], "E0501"),
    ],
)
def test_what_is_refused(words: list[str], code: str, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(model) if word == "MODEL" else word for word in words]) in (1, 2)
    assert code in capsys.readouterr().err


def test_fuel_is_an_option_of_a_compile(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = _document(capsys, "stats", model, "--no-cache")
    none = _document(capsys, "stats", model, "--fuel", "fusion=0")
    assert none["dispatches"] > whole["dispatches"]
    some = _document(capsys, "stats", model, "--fuel", "fusion=0", "--fuel", "kernel=0", "--decisions")
    assert any(row["code"] == "out-of-fuel" for row in some["decisions"])


@pytest.mark.parametrize("costs", [True, False])
def test_time_is_looked_into_by_the_clock(costs: bool, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A clock by which programs of one dispatch take three times as long as others, or all the same."""

    def clock(artifacts: Sequence[Any]) -> list[np.ndarray]:
        steps = [len(artifact.program.steps) for artifact in artifacts]
        return [np.full(9, 3.0 if costs and count == min(steps) < max(steps) else 1.0) for count in steps]

    with mock.patch.object(slow, "clock_of", lambda feeds, threads: clock):
        if not costs:
            assert main(["bisect", str(model), "--metric", "time"]) == 1
            assert "E0614" in capsys.readouterr().err
            return
        found = _document(capsys, "bisect", model, "--metric", "time")
    assert found["culprits"][0]["kind"] == "fusion" and found["lacking"] == "fusion" and "3.000 times" in found["shown"]
