"""The steps from outlined dispatches to an artifact: what each adds, and that they leave the IR as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuseline.compile_options import CompileOptions
from fuseline.errors import FuselineError
from fuseline.ir.flow import ExecutableOp
from fuseline.ir.text import print_module
from fuseline.lowering import STEPS, Lowering
from fuseline.phase_runner import run_phases
from fuseline.pipeline import PHASES
from fuseline.report.records import decode
from fuseline.source_program import prepare
from fuseline.targets import create_target
from tests.graphs.onnx_text import onnx_model

ROWS, INNER, COLUMNS = 3, 5, 7
WEIGHT = np.arange(INNER * COLUMNS, dtype=np.float32).reshape(INNER, COLUMNS)


def _outlined(target: str, **options: Any) -> Lowering:
    """A product and a Relu, and beside them the exponential of another input: two arms of one dispatch."""
    text = f"(float[{ROWS}, {INNER}] x, float[4] z) => (y, t) {{ p = MatMul(x, w)  y = Relu(p)  t = Exp(z) }}"
    chosen = CompileOptions(target=target, threads=1, **options)
    made = create_target(target, 1)
    module, ctx = prepare(onnx_model(text, w=WEIGHT), chosen, made)
    run_phases(module, ctx, chosen)
    return Lowering(module, ctx, chosen, made, _no_branch, _no_branch)


def _no_branch(*_: object) -> Any:
    raise AssertionError("the program has no branch")


def test_the_steps_are_those_that_the_pipeline_names():
    named = [name for phase in ("codegen", "schedule", "assemble") for name in PHASES[phase]]
    assert list(STEPS) == named


@pytest.mark.parametrize("target", ["null", "interpreter"])
def test_every_step_adds_its_part_and_the_ir_stays(target: str):
    lowering = _outlined(target)
    before = print_module(lowering.module)
    STEPS["compile-executables"](lowering)
    (executable,) = [op for op in lowering.module.ops if isinstance(op, ExecutableOp)]
    assert lowering.kernels.keys() == {executable.sym_name.data}
    STEPS["compile-branches"](lowering)
    assert lowering.branches == {}
    STEPS["build-schedule"](lowering)
    assert [spec.name for spec in lowering.schedule.inputs] == ["x", "z"]
    assert [spec.name for spec in lowering.schedule.outputs] == ["y", "t"]
    assert len(lowering.schedule.steps) == 1
    STEPS["share-constant-layouts"](lowering)
    assert lowering.ctx.records.layouts == []
    STEPS["pack-constants"](lowering)
    assert lowering.constants.original_bytes == WEIGHT.nbytes
    STEPS["record-statistics"](lowering)
    STEPS["assemble-artifact"](lowering)
    assert decode(lowering.artifact.records).statistics["dispatches"] == 1
    assert print_module(lowering.module) == before


def test_what_is_counted_is_the_work_of_the_program():
    lowering = _outlined("null")
    for step in STEPS.values():
        step(lowering)
    (kernel,) = lowering.kernels.values()
    assert isinstance(kernel.flops, int)
    exponentials = kernel.flops - (2 * INNER + 1) * ROWS * COLUMNS
    assert exponentials >= 4 and exponentials % 4 == 0  # however dear one is
    assert lowering.artifact.metadata["model"] == lowering.ctx.records.model == "ModelProto"


@pytest.mark.parametrize("poison", [False, True])
def test_a_poisoned_schedule_is_asked_for(poison: bool):
    lowering = _outlined("null", poison=poison)
    STEPS["compile-executables"](lowering)
    STEPS["build-schedule"](lowering)
    assert any(type(step).__name__ == "PoisonStep" for step in lowering.schedule.steps) == poison


@pytest.mark.parametrize(("target", "asked"), [("null", 0), ("cpu", 2)])
def test_branches_are_compiled_where_that_makes_artifacts(target: str, asked: int):
    text = """(float[n, 2] x, bool k) => (y) {
      y = If(k) <then_branch = a () => (u) { u = Softmax(x) }, else_branch = b () => (v) { v = MatMul(x, w) }>
    }"""
    chosen, made = CompileOptions(target=target, threads=1), create_target(target, 1)
    module, ctx = prepare(onnx_model(text, w=np.ones((2, 3), np.float32)), chosen, made)
    run_phases(module, ctx, chosen)
    seen: list[object] = []

    def compile_branch(branch: object, options: CompileOptions) -> Any:
        seen.append(branch)
        return FuselineError("E0106", "not today")

    lowering = Lowering(module, ctx, chosen, made, compile_branch, _no_branch)
    STEPS["compile-branches"](lowering)
    assert len(seen) == asked and lowering.branches == {}
