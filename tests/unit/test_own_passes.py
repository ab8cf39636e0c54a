"""Passes of the user in place of the phases up to `fusion`, and options of passes: what runs, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline import api
from fuseline.cli.main import main
from fuseline.cli.run_passes import run_passes
from fuseline.errors import FuselineError
from tests.small_models import SMALL_MODELS

LAST = "elide-concats,clone-cheap-producers,dead-code"


def _dispatches(name: str = "mlp", **options: Any) -> int:
    return len(fuseline.compile(SMALL_MODELS[name](), target="null", **options).record.dispatches)


@pytest.mark.parametrize("name", SMALL_MODELS)
def test_the_phases_by_name_are_the_default(name: str):
    assert _dispatches(name, passes="cleanup,layout,padding,fusion") == _dispatches(name)


@pytest.mark.parametrize(
    "passes",
    [
        f"form-dispatch-regions,{LAST}",
        f"cse,form-dispatch-regions{{level=none}},form-dispatch-regions{{rules=elementwise-epilogue}},{LAST}",
        "cleanup,fusion,dispatch,dedup",
        "form-dispatch-regions",
        f"cleanup,materialize-fills,form-dispatch-regions{{without=elementwise-epilogue}},{LAST}",
    ],
)
@pytest.mark.parametrize("name", ["mlp", "diamond", "convolutions"])
def test_outputs_do_not_depend_on_the_passes(name: str, passes: str):
    model, rng = SMALL_MODELS[name](), np.random.default_rng()
    reference = fuseline.compile(model, target="interpreter", fusion="none")
    program = fuseline.compile(model, threads=2, passes=passes)
    feeds = {
        item.name: rng.standard_normal([n if isinstance(n, int) else 3 for n in item.shape]).astype(item.dtype)
        for item in reference.inputs
    }
    got = program.run(feeds)
    for output, values in reference.run(feeds).items():
        largest = max(float(np.abs(values).max(initial=0)), 1e-30)
        np.testing.assert_allclose(got[output], values, rtol=0, atol=1e-4 * largest, err_msg=output)


def test_options_reach_a_pass_wherever_it_runs():
    options = {"form-dispatch-regions": {"level": "none"}}
    assert _dispatches(pass_options=options) == _dispatches(fusion="none") > _dispatches()
    assert _dispatches(pass_options={"form-dispatch-regions": {"rules": ["row-chain"]}}) > _dispatches()
    assert _dispatches(pass_options={"form-dispatch-regions": {"rules": "elementwise-epilogue"}}) <= _dispatches(
        fusion="none"
    )
    both = _dispatches(passes=f"form-dispatch-regions{{level=default}},{LAST}", pass_options=options)
    assert both == _dispatches(passes=f"form-dispatch-regions,{LAST}")


@pytest.mark.parametrize(
    ("choices", "code", "message"),
    [
        ({"passes": "cleanup,fusoin"}, "E0303", "fusoin"),
        ({"passes": "cse{x=1}"}, "E0304", "x"),
        ({"passes": "cse{"}, "E0304", ""),
        ({"passes": "canonicalize"}, "E0305", "cannot be scheduled"),
        ({"passes": 3}, "E0501", "passes"),
        ({"pass_options": {"fusoin": {}}}, "E0303", "fusoin"),
        ({"pass_options": {"explain-fusion": {}}}, "E0304", "does not run it"),
        ({"pass_options": {"form-dispatch-regions": {"levl": "none"}}}, "E0304", "levl"),
        ({"pass_options": {"form-dispatch-regions": {"level": 3}}}, "E0304", "3"),
        ({"pass_options": {"form-dispatch-regions": {"level": None}}}, "E0304", "level cannot be None"),
        ({"pass_options": {"form-dispatch-regions": {"rules": ["rowchain"]}}}, "E0304", "rowchain"),
        ({"pass_options": {"form-dispatch-regions": 3}}, "E0501", "pass_options"),
        ({"pass_options": "level=none"}, "E0501", "pass_options"),
    ],
    ids=str,
)
def test_what_is_wrong_is_refused(choices: dict[str, Any], code: str, message: str):
    with pytest.raises(FuselineError, match=code) as caught:
        _dispatches(**choices)
    assert message in str(caught.value)


def test_stages_of_own_passes(tmp_path: Path):
    model = SMALL_MODELS["mlp"]()
    assert "flow.dispatch.region" in api.emit(model, "fusion", passes="cleanup,fusion")
    assert "[[group]]" in api.emit(model, "plan", passes="cleanup,fusion")
    with pytest.raises(FuselineError, match="E0501.*no stage 'layout'"):
        api.emit(model, "layout", passes="cleanup,fusion")


TEXT = """
func.func @main(%x: tensor<9x7xf32>) -> tensor<9x7xf32> {
  %e = tensor.empty() : tensor<9x7xf32>
  %a = linalg.exp ins(%x : tensor<9x7xf32>) outs(%e : tensor<9x7xf32>) -> tensor<9x7xf32>
  %b = linalg.exp ins(%a : tensor<9x7xf32>) outs(%e : tensor<9x7xf32>) -> tensor<9x7xf32>
  return %b : tensor<9x7xf32>
}
"""


@pytest.mark.parametrize("behind", ["cleanup", "generalize-named-ops", "dispatch,cleanup", "dispatch,cleanup,dedup"])
def test_what_a_program_needs_is_done_before_fusion_whatever_comes_behind(behind: str, tmp_path: Path):
    program = tmp_path / "in.mlir"
    program.write_text(TEXT)
    x = np.random.default_rng().standard_normal((9, 7), dtype=np.float32)
    found = fuseline.compile(program, threads=1, passes=f"form-dispatch-regions,{behind}", cache=False)
    assert found.stats["dispatches"] == 1
    np.testing.assert_allclose(found(x), np.exp(np.exp(x)), rtol=1e-5)


def test_opt_is_told_of_a_target(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    machine, program = tmp_path / "npu.toml", tmp_path / "in.mlir"
    machine.write_text('name = "npu"\n[limits]\nmembers = 1\n')
    program.write_text(TEXT)
    passes = "cleanup,form-dispatch-regions"
    assert run_passes(TEXT, passes).count("= flow.dispatch.region") == 1
    assert run_passes(TEXT, passes, target=f"null:{machine}").count("= flow.dispatch.region") == 2
    assert main(["opt", str(program), "-p", passes, "--target", f"null:{machine}"]) == 0
    assert capsys.readouterr().out.count("= flow.dispatch.region") == 2
    assert main(["opt", str(program), "-p", passes, "--target", "gpu"]) == 2
    assert "E0501" in capsys.readouterr().err
