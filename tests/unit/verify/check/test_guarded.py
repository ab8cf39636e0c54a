"""A launch between pages that may not be touched."""

from __future__ import annotations

import numpy as np

from fuseline.compile_options import CompileOptions
from fuseline.runtime.program import Command
from fuseline.runtime.sizes import SizeEvaluator
from fuseline.verify.check.guarded import copies, stays_inside
from fuseline.verify.check.native import NativeCode, numbers
from fuseline.verify.check.programs import checked_programs
from tests.graphs.onnx_text import onnx_model


def test_a_kernel_that_reads_or_writes_beside_its_buffers_is_noticed() -> None:
    (program,) = checked_programs(onnx_model("(float[1024] x) => (y) { y = Relu(x) }"), CompileOptions(threads=1))
    (step,) = program.artifact.program.steps
    assert isinstance(step, Command)
    (arm,) = step.arms
    code, whole = NativeCode(program.artifact), np.zeros(4096, np.uint8)
    given = numbers(arm, SizeEvaluator({}))
    assert stays_inside(code, arm.kernel, [whole, whole], given, 0)
    assert not stays_inside(code, arm.kernel, [whole, whole[:2048]], given, 0)
    assert not stays_inside(code, arm.kernel, [whole[:2048], whole], given, 0)


def test_scratch_is_guarded_too() -> None:
    model = onnx_model("(float[40, 64] x) => (y) { y = Softmax(x) }")
    (program,) = checked_programs(model, CompileOptions(threads=1))
    (kernel,) = program.kernels.values()
    (step,) = program.artifact.program.steps
    assert isinstance(step, Command) and kernel.scratch_bytes > 64
    (arm,) = step.arms
    code, whole = NativeCode(program.artifact), np.zeros(40 * 64 * 4, np.uint8)
    given = numbers(arm, SizeEvaluator({}))
    assert stays_inside(code, arm.kernel, [whole, whole], given, kernel.scratch_bytes)
    assert not stays_inside(code, arm.kernel, [whole, whole], given, 64)


def test_copies_are_of_the_bytes_that_lie_there() -> None:
    array = np.arange(8, dtype=np.uint8)
    first, rest = copies([array.ctypes.data, array.ctypes.data + 4], [2, 4])
    assert first.tolist() == [0, 1] and rest.tolist() == [4, 5, 6, 7]
