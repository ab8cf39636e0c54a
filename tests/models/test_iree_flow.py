"""`--emit flow` is what IREE 3.13 takes: iree-opt verifies it, iree-compile makes one dispatch of each region, and what
it compiles computes the same."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.api import emit_flow
from fuseline.verify.inputs import generate
from tests.draws import RNG
from tests.small_models import SMALL_MODELS

CASES = sorted((Path(__file__).parents[1] / "filecheck" / "cases").glob("*.mlir"))
LOCAL = ["--iree-hal-target-device=local", "--iree-hal-local-target-device-backends=llvm-cpu"]
LOCAL.append("--iree-llvmcpu-target-cpu=host")

pytestmark = [pytest.mark.iree, pytest.mark.skipif(shutil.which("iree-opt") is None, reason="needs iree-opt")]


def _tool(name: str, *arguments: str | Path) -> str:
    run = subprocess.run([name, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[:2000]
    return run.stdout


def _model(source: str) -> onnx.ModelProto | Path:
    return SMALL_MODELS[source]() if source in SMALL_MODELS else Path(source)


@pytest.mark.parametrize("source", [*SMALL_MODELS, *map(str, CASES)], ids=lambda source: Path(source).stem)
def test_a_region_is_a_dispatch_of_iree(source: str, tmp_path: Path):
    path = tmp_path / "m.mlir"
    emit_flow(_model(source), path)
    _tool("iree-opt", path, "-o", "/dev/null")
    outlined = _tool("iree-compile", path, "--compile-to=flow", *LOCAL)
    assert len(re.findall(r"flow\.dispatch @", outlined)) == path.read_text().count("flow.dispatch.region")


def test_what_iree_compiles_computes_the_same(tmp_path: Path):
    path = tmp_path / "m.mlir"
    compiled = fuseline.compile(SMALL_MODELS["mlp"](), target="interpreter")
    _, archive = emit_flow(SMALL_MODELS["mlp"](), path)
    feeds = generate(compiled.inputs, seed=int(RNG.integers(1 << 30)))
    _tool("iree-compile", path, *LOCAL, "-o", tmp_path / "m.vmfb")
    for number, array in enumerate(feeds.values()):
        np.save(tmp_path / f"{number}.npy", array)
    given = [f"--input=@{tmp_path / str(number)}.npy" for number in range(len(feeds))]
    out = tmp_path / "out.npy"
    _tool("iree-run-module", f"--module={tmp_path / 'm.vmfb'}", "--device=local-sync", "--function=main", *given,
          f"--parameters=model={archive}", f"--output=@{out}")  # fmt: skip
    (expected,) = compiled.run(feeds).values()
    np.testing.assert_allclose(np.load(out), expected, rtol=1e-5, atol=1e-6)
