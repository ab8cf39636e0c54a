"""The null target: everything is counted, nothing runs."""

from __future__ import annotations

from pathlib import Path

import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.targets import create_target
from tests.small_models import mlp


def test_counts_without_code(tmp_path: Path):
    compiled = fuseline.compile(mlp(), target="null")
    assert compiled.stats["dispatches"] >= 1 and compiled.stats["code_bytes"] == 0
    assert compiled.stats["executables"] >= 1 and compiled.stats["bytes_moved"] > 16 * 32 * 4
    assert compiled.decisions and [i.name for i in compiled.inputs] == ["x"]
    with pytest.raises(FuselineError, match="E0305.*no code to run"):
        compiled.run({})
    with pytest.raises(FuselineError, match="E0502.*no code to save"):
        compiled.save(tmp_path / "m.fuse")


def test_dispatches_flops_and_bytes_are_counted():
    dispatches = fuseline.compile(mlp(), target="null").record.dispatches
    assert sum(d.flops for d in dispatches) >= 2 * 4 * 16 * 32
    assert all(d.family == "null" for d in dispatches)


def test_the_null_target_has_no_variants():
    with pytest.raises(FuselineError, match="E0501.*no variant"):
        create_target("null:fast")
