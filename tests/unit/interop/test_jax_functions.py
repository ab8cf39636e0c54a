"""`fuseline.jax` without jax: it is imported, and says what to install."""

from __future__ import annotations

import sys

import pytest

import fuseline
from fuseline.errors import MissingPackageError


def test_without_jax_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingPackageError, match="jax is not installed") as caught:
        fuseline.jax.compile(abs, 1.0)
    assert caught.value.code == "E0503"
    assert caught.value.hint == "pip install 'fuseline[jax]'"
    assert "\n" not in str(caught.value)
