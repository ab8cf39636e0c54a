"""Every error code has a page that says what happened, shows it and says what to do; no page is left over."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuseline.errors import ERROR_TITLES

PAGES = Path(__file__).parents[2] / "docs" / "errors"


@pytest.mark.parametrize("code", sorted(ERROR_TITLES))
def test_the_code_has_a_page(code: str):
    text = (PAGES / f"{code}.md").read_text()
    assert text.startswith(f"# {code}: {ERROR_TITLES[code]}\n")
    assert f"error {code}:" in text
    assert "## What to do\n" in text


def test_no_page_is_left_over():
    assert {path.stem for path in PAGES.glob("E*.md")} == set(ERROR_TITLES)
