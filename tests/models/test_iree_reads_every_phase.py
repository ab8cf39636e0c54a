"""What is printed after any phase is MLIR: iree-opt 3.13 reads it, locations and weights included."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fuseline.frontends.onnx import read_onnx
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.text import parse_module, print_module
from fuseline.passes.registry import make_pass
from fuseline.pipeline import PASS_PHASES
from tests.small_models import SMALL_MODELS

IREE_OPT = shutil.which("iree-opt")
CASES = sorted((Path(__file__).parents[1] / "filecheck" / "cases").glob("*.mlir"))

pytestmark = [pytest.mark.iree, pytest.mark.skipif(IREE_OPT is None, reason="needs iree-opt")]


def _texts(source: str, ctx: CompilerContext) -> list[str]:
    """The program after each phase, with locations."""
    module = (
        read_onnx(SMALL_MODELS[source](), ctx)
        if source in SMALL_MODELS
        else parse_module(Path(source).read_text(), ctx)
    )
    texts = [print_module(module, ctx, locations=True)]
    for names in PASS_PHASES.values():
        for name in names:
            make_pass(name).apply(ctx, module)
        texts.append(print_module(module, ctx, locations=True))
    return texts


@pytest.mark.parametrize("source", [*SMALL_MODELS, *map(str, CASES)], ids=lambda source: Path(source).stem)
def test_iree_reads_every_phase(source: str):
    assert IREE_OPT is not None
    for phase, text in zip(("input", *PASS_PHASES), _texts(source, new_context()), strict=True):
        run = subprocess.run(
            [IREE_OPT, "-", "-o", "/dev/null"], input=text, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, f"after {phase}: {run.stderr[:2000]}"
