"""The null target: everything is counted, nothing runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseline
from fuseline.compilation import lower
from fuseline.errors import FuselineError
from fuseline.pipeline import CompileOptions
from fuseline.targets import create_target
from tests.graphs.onnx_text import onnx_model
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


def test_what_is_equal_up_to_extents_is_one_executable_at_level_shapes():
    rng = np.random.default_rng()
    rows = [int(n) for n in rng.choice(np.arange(2, 40), 3, replace=False)]
    inputs, outputs = (", ".join(f"float[{n}, 8] {name}{i}" for i, n in enumerate(rows)) for name in "xy")
    body = "\n".join(f"y{i} = {op}(x{i})" for i, op in enumerate(("Relu", "Relu", "Tanh")))
    model = onnx_model(f"({inputs}) => ({outputs}) {{ {body} }}", {})
    counts = [fuseline.compile(model, target="null", dedup=level).stats["executables"] for level in ("exact", "shapes")]
    assert counts == [3, 2]
