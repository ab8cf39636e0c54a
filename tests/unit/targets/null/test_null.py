"""The null target: everything is counted, nothing runs."""

from __future__ import annotations

from pathlib import Path

import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.pipeline import CompileOptions, lower
from fuseline.targets import create_target
from tests.small_models import mlp
from tests.unit.targets.cpu.arms.programs import elementwise, outlined, program


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


def test_equal_arms_count_as_one_executable_and_slices_as_what_is_written():
    shape = "4x5"
    body = elementwise("p", ["a"], shape, "%v = math.absf %a0 : f32") + elementwise(
        "q", ["b"], shape, "%v = math.absf %a0 : f32"
    )
    body += "%y = tensor.concat dim(1) %p, %q : (tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<4x10xf32>"
    module, ctx = outlined(program({"a": (4, 5), "b": (4, 5)}, body, {"%y": "tensor<4x10xf32>"}))
    lower(module, ctx, CompileOptions(target="null"), create_target("null"))
    statistics = ctx.records.statistics
    assert statistics["dispatches"] == 1 and statistics["executables"] == 1
    assert statistics["bytes_moved"] == 4 * 4 * (5 + 5 + 10)
