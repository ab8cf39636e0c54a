"""Every pass has a FileCheck test of its name, in the folder of its phase."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fuseline.passes.registry import PassInfo, list_passes

ROOT = Path(__file__).parents[2] / "filecheck"


def _files(info: PassInfo) -> list[Path]:
    """The test of a pass, in any phase's folder: a pass may be tested where it is used rather than where it lies."""
    return sorted(ROOT.glob(f"*/{info.name.replace('-', '_')}.mlir"))


@pytest.mark.parametrize("info", list_passes(), ids=lambda info: info.name)
def test_a_pass_has_a_filecheck_test_of_its_name(info: PassInfo):
    files = _files(info)
    assert files, f"add tests/filecheck/{info.group}/{info.name.replace('-', '_')}.mlir, with a case per refusal"
    text = files[0].read_text(encoding="utf-8")
    run = re.compile(rf"^// RUN: .*-p [^|]*\b{info.name}\b", re.MULTILINE)
    assert run.search(text), f"{files[0].name} runs {info.name} in no RUN line"
    assert re.search(r"^// [A-Z-]*(CHECK|LABEL|NEXT)", text, re.MULTILINE), f"{files[0].name} checks nothing"
