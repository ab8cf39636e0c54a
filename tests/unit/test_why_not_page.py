"""Every reason code is documented under its own heading, and no heading is left over."""

from __future__ import annotations

import re
from pathlib import Path

from fuseline.passes.fusion.decision import WHY_NOT_CODES
from fuseline.report.advice import ADVICE
from fuseline.report.quantization import QUANTIZATION_CODES

PAGE = Path(__file__).parents[2] / "docs" / "why-not.md"


def test_the_page_has_a_section_for_every_code():
    assert re.findall(r"^## (.+)$", PAGE.read_text(), re.MULTILINE) == sorted({**WHY_NOT_CODES, **QUANTIZATION_CODES})


def test_every_code_has_advice():
    assert set(ADVICE) == {*WHY_NOT_CODES, *QUANTIZATION_CODES}
