"""The situations this project exists for, each with the count of dispatches that it wants in its header: compiled,
counted, run, compared."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import fuseline
from fuseline.compilation import compile_program, emit
from fuseline.evaluation import evaluate_function
from fuseline.ir.context import new_context
from fuseline.pipeline import CompileOptions
from fuseline.report.records import decode
from fuseline.runtime import Session
from fuseline.source_program import read_program

HERE = Path(__file__).parents[1] / "filecheck" / "cases"
"""The programs; each file also has its own expectations on the IR, which the FileCheck tests run."""


@dataclass(frozen=True)
class Want:
    """What a case's header asks for: at most so many dispatches, and so many executables with exact deduplication."""

    dispatches: int
    executables: int


WANTS = {
    "01_pad_conv": Want(2, 2),
    "02_depthwise_between_transposes": Want(1, 1),
    "03_collapse_expand_between_elementwise": Want(1, 1),
    "04_concat_pad_conv": Want(3, 3),
    "05_near_duplicate_matmuls": Want(3, 2),
    "06_broadcast_no_recompute": Want(1, 1),
    "07_diamond": Want(1, 1),
    "08_softmax": Want(1, 1),
    "09_matmul_two_consumers": Want(2, 2),
}


@pytest.mark.parametrize("name", sorted(WANTS))
@pytest.mark.parametrize("threads", [1, 2])
def test_a_case_compiles_to_few_dispatches_and_equals_the_interpreter(name: str, threads: int):
    path = HERE / f"{name}.mlir"
    session = Session(compile_program(path, CompileOptions(threads=threads)))
    record = decode(session.records)
    assert len(record.dispatches) <= WANTS[name].dispatches
    assert record.statistics["executables"] <= WANTS[name].executables
    assert (
        record.statistics["fills"] == record.statistics["standalone_transposes"] == record.statistics["host_ops"] == 0
    )

    rng = np.random.default_rng(7)
    feeds = {
        spec.name: rng.standard_normal([int(str(d)) for d in spec.dims]).astype(np.float32) for spec in session.inputs
    }
    ctx = new_context()
    module = read_program(path, ctx)
    expected = evaluate_function(next(iter(module.ops)), list(feeds.values()), ctx.resources)  # pyright: ignore[reportArgumentType]
    for ours, reference in zip(session.run(feeds).values(), expected, strict=True):
        np.testing.assert_allclose(ours, reference, atol=1e-5 * np.abs(reference).max(), rtol=1e-5)


def test_every_case_has_a_want():
    assert sorted(path.stem for path in HERE.glob("*.mlir")) == sorted(WANTS)


def test_dedup_levels_of_near_duplicates():
    counts = {level: _executables("05_near_duplicate_matmuls", level) for level in ("none", "exact")}
    assert counts == {"none": 3, "exact": 2}


def _executables(name: str, level: str) -> int:
    """Code bodies; the arms of a dispatch are one each."""
    program = fuseline.compile(HERE / f"{name}.mlir", target="null", threads=2, dedup=level)
    return program.stats["executables"]


def test_every_edge_of_the_two_consumers_case_has_a_record_with_a_reason():
    session = Session(compile_program(HERE / "09_matmul_two_consumers.mlir", CompileOptions(threads=2)))
    decisions = decode(session.records).decisions
    assert len(decisions) >= 2
    assert all(d.verdict == "fused" or (d.code and d.detail) or d.verdict == "superseded" for d in decisions)


@pytest.mark.iree
@pytest.mark.skipif(shutil.which("iree-opt") is None, reason="iree-opt is not installed")
@pytest.mark.parametrize("name", sorted(WANTS))
@pytest.mark.parametrize("stage", ["cleanup", "layout", "padding", "fusion"])
def test_iree_opt_accepts_the_ir_after_every_phase(name: str, stage: str):
    text = emit(HERE / f"{name}.mlir", CompileOptions(target="null", threads=2, emit=stage))
    done = subprocess.run(["iree-opt", "-"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
