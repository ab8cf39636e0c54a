"""Tests that need jax: left alone, imports included, where the marker is not asked for."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Nothing of this folder is imported where its tests are deselected anyway."""
    del collection_path
    return True if "not jax" in str(config.getoption("markexpr")) else None
