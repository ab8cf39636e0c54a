"""Every example in a docstring runs."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"


def _modules_with_examples() -> list[str]:
    paths = [path for path in sorted(SOURCE.rglob("*.py")) if ">>> " in path.read_text()]
    return [".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in paths]


@pytest.mark.parametrize("name", _modules_with_examples())
def test_the_examples_of(name: str):
    result = doctest.testmod(import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
