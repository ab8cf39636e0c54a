"""What the documentation names is there: every Python file between backticks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md"])
EXAMPLES = {"passes/fusion/rules/noun_phrase.py"}
"""Files that a page tells the reader to write."""


def exists(name: str) -> bool:
    """Whether a file is at that path from the root, from the package, or from one of its folders; by its name alone,
    anywhere in the package."""
    source = ROOT / "src" / "fuseline"
    if "/" not in name:
        return any(source.rglob(name))
    return any((place / name).exists() for place in (ROOT, source, *source.glob("*/"), *source.glob("*/*/")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path):
    named = set(re.findall(r"`([\w/-]+\.py)`", page.read_text(encoding="utf-8")))
    assert [name for name in sorted(named - EXAMPLES) if not exists(name)] == []


def test_a_file_that_is_not_there_is_noticed():
    assert not exists("passes/fusion/rules/noun_phrase.py") and not exists("nothing.py") and exists("pipeline.py")
