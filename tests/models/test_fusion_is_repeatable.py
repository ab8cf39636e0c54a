"""Passes of fusion through `fuseline opt`, alone, again and with others between: they change nothing the second
time."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuseline.cli.run_passes import run_passes
from fuseline.frontends.onnx import read_onnx
from fuseline.ir.context import new_context
from fuseline.ir.text import print_module
from fuseline.passes.registry import make_pass
from fuseline.pipeline import PASS_PHASES
from tests.small_models import SMALL_MODELS

pytestmark = pytest.mark.models

CASES = sorted((Path(__file__).parents[1] / "filecheck" / "cases").glob("*.mlir"))

FUSION = ("form-dispatch-regions", "form-dispatch-regions{fusion=aggressive}", "form-dispatch-regions{fusion=none}")
BETWEEN = (
    ("clone-cheap-producers", "dead-code", "canonicalize", "cse", "explain-fusion"),
    ("propagate-transposes", "fold-unit-dims", "fold-pad-into-consumer"),
    ("elide-concats", "canonicalize", "dead-code"),
    ("materialize-fills", "elide-fills", "elide-concats", "dead-code"),
)


def _before_fusion(source: str) -> str:
    """A program as text, ready for fusion."""
    early = [name for phase in ("cleanup", "layout", "padding") for name in PASS_PHASES[phase]]
    if source not in SMALL_MODELS:
        return _without_remarks(run_passes(Path(source).read_text(), ",".join(early)))
    ctx = new_context()
    module = read_onnx(SMALL_MODELS[source](), ctx)
    for name in early:
        make_pass(name).apply(ctx, module)
    return print_module(module, ctx)


def _without_remarks(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("//"))


@pytest.mark.parametrize("fusion", FUSION)
@pytest.mark.parametrize("source", [*SMALL_MODELS, *map(str, CASES)], ids=lambda source: Path(source).stem)
def test_fusing_again_changes_nothing_whatever_ran_between(source: str, fusion: str):
    text = _before_fusion(source)
    once = run_passes(text, fusion)
    assert _without_remarks(run_passes(once, fusion)) == once
    for between in BETWEEN:
        settled = _without_remarks(run_passes(once, ",".join(between)))
        again = _without_remarks(run_passes(settled, ",".join([fusion, *between, fusion])))
        assert _without_remarks(run_passes(again, ",".join([fusion, *between]))) == again, between


@pytest.mark.parametrize("source", [*SMALL_MODELS, *map(str, CASES)], ids=lambda source: Path(source).stem)
def test_every_pass_stands_alone(source: str):
    """Each pass runs on the text before fusion as the only one, and again, and after all the others."""
    text = _before_fusion(source)
    for name in dict.fromkeys(
        name for phase in ("cleanup", "layout", "padding", "fusion") for name in PASS_PHASES[phase]
    ):
        once = _without_remarks(run_passes(text, name, verify_each=True))
        if once != text:  # else it was just run on that text
            assert _without_remarks(run_passes(once, name, verify_each=True)) == once, name
