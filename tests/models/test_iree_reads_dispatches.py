"""Whole models after region formation, at each level of fusion and under a plan, are MLIR that iree-opt 3.13 verifies;
weights are left out."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import onnx
import pytest

from fuseline.ir.text import print_module
from fuseline.passes.fusion.plan import plan_text
from fuseline.phase_runner import run_phases
from fuseline.pipeline import CompileOptions
from fuseline.source_program import prepare
from fuseline.targets import create_target
from tests.models.skeletons import filled

IREE_OPT = shutil.which("iree-opt")

pytestmark = [pytest.mark.iree, pytest.mark.models, pytest.mark.skipif(IREE_OPT is None, reason="needs iree-opt")]


def _formed(path: Path, level: str, plan: Path | None = None) -> tuple[str, str]:
    """The IR after region formation without weights, and the plan of it."""
    options = CompileOptions(target="null", threads=2, fusion=level, plan=plan)
    module, ctx = prepare(onnx.load(path), options, create_target("null", 2))
    run_phases(module, ctx, options, until="fusion")
    return print_module(module, locations=True), plan_text(ctx.records)


def _verify(text: str) -> None:
    assert IREE_OPT is not None
    assert "flow.dispatch.region" in text
    run = subprocess.run([IREE_OPT, "-", "-o", "/dev/null"], input=text, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[:2000]


@pytest.mark.parametrize("level", ["none", "default", "aggressive"])
@pytest.mark.parametrize("name", ["squeezenet1_1", "mobilenet_v2", "minilm"])
def test_regions_of_a_model_verify(name: str, level: str):
    _verify(_formed(filled(name), level)[0])


def test_regions_that_a_plan_formed_verify(tmp_path: Path):
    path = filled("minilm")
    plan = tmp_path / "plan.toml"
    plan.write_text(_formed(path, "aggressive")[1])
    text, again = _formed(path, "none", plan)
    _verify(text)
    assert again.partition("[[group]]")[2] == plan.read_text().partition("[[group]]")[2]
