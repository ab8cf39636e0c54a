"""Every arm between guard pages: it reads and writes within its operands and results, and leaves the rest of a result
alone."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

from fuseline.dispatch.arm_entries import Arm, split_arms
from fuseline.dispatch.executable_entry import entry_of
from fuseline.dispatch.view import DispatchView
from fuseline.evaluation.program import evaluate_function
from fuseline.ir import dim as d
from fuseline.ir.flow import ExecutableOp
from fuseline.targets.cpu.target import CpuTarget
from tests.kernels import Guarded, native
from tests.unit.targets.cpu.arms.programs import close, elementwise, outlined, program, random

RUBBISH = np.float32(-777)


def _entry(text: str) -> FuncOp:
    module, _ = outlined(text)
    return next(entry_of(op) for op in module.ops if isinstance(op, ExecutableOp))


def _run(arm: Arm, operands: Sequence[Guarded], results: Sequence[Guarded], parts: int) -> None:
    """The arm's whole grid in `parts` ranges, each with scratch full of NaN."""
    target = CpuTarget(use_cache=False)
    built = target.build(arm.entry)
    function = native(built.kernel, target.machine)
    places = [operands[i].array.ctypes.data for i in arm.operands]
    for result in arm.results:
        assert isinstance(result.offset, int)
        places.append(results[result.position].array.ctypes.data + 4 * result.offset)
    pointers = (ctypes.c_void_p * len(places))(*places)
    total = d.evaluate(built.plan.workgroups, {})
    for begin, end in pairwise([total * i // parts for i in range(parts + 1)]):
        scratch = Guarded([-(-built.kernel.scratch_bytes // 64) * 64], np.uint8, at_end=True)
        scratch.array[...] = 0xFF
        function(pointers, (ctypes.c_int64 * 1)(), begin, end, scratch.array.ctypes.data)


def _check(text: str, arms: int) -> None:
    entry = _entry(text)
    view = DispatchView(entry)
    shapes = [
        [size for size in view.shapes.dims(value) if isinstance(size, int)] for value in (*view.tensors, *view.results)
    ]
    arrays = [random(shape, i) for i, shape in enumerate(shapes[: len(view.tensors)])]
    wanted = evaluate_function(entry, arrays)
    split = split_arms(entry)
    assert len(split) == arms
    for at_end, parts in ((True, 1), (False, 3)):
        operands = [Guarded.copy(array, at_end=at_end) for array in arrays]
        results = [Guarded.copy(np.full(shape, RUBBISH), at_end=at_end) for shape in shapes[len(view.tensors) :]]
        for arm in split:
            _run(arm, operands, results, parts)
        for result, want in zip(results, wanted, strict=True):
            close(np.array(result.array), want)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("sizes", [(3, 9, 4), (1, 17, 16)])
def test_parts_of_a_concat(axis: int, sizes: Sequence[int]) -> None:
    shapes = [[5, 6, 7] for _ in sizes]
    for shape, size in zip(shapes, sizes, strict=True):
        shape[axis] = size
    types = ["x".join(map(str, shape)) for shape in shapes]
    total = list(shapes[0])
    total[axis] = sum(sizes)
    out = "tensor<" + "x".join(map(str, total)) + "xf32>"
    p = elementwise("p", ["a"], types[0], "%v = math.absf %a0 : f32")
    q = elementwise("q", ["b"], types[1], "%v = arith.negf %a0 : f32")
    body = f"""{p} {q}
    %y = tensor.concat dim({axis}) %p, %c, %q : (tensor<{types[0]}xf32>, tensor<{types[2]}xf32>,
        tensor<{types[1]}xf32>) -> {out}"""
    _check(program({name: shape for name, shape in zip("abc", shapes, strict=True)}, body, {"%y": out}), 3)


@pytest.mark.parametrize("widths", [(16, 5), (33, 8)])
def test_products_side_by_side(widths: Sequence[int]) -> None:
    body, types = "%z = arith.constant 0.0 : f32", [f"tensor<13x{n}xf32>" for n in widths]
    for i, (n, type_) in enumerate(zip(widths, types, strict=True)):
        body += f"""
    %e{i} = tensor.empty() : {type_}
    %f{i} = linalg.fill ins(%z : f32) outs(%e{i} : {type_}) -> {type_}
    %m{i} = linalg.matmul ins(%x, %w{i} : tensor<13x19xf32>, tensor<19x{n}xf32>) outs(%f{i} : {type_}) -> {type_}"""
    out = f"tensor<13x{sum(widths)}xf32>"
    body += f"\n%y = tensor.concat dim(1) %m0, %m1 : ({', '.join(types)}) -> {out}"
    inputs = {"x": (13, 19), "w0": (19, widths[0]), "w1": (19, widths[1])}
    _check(program(inputs, body, {"%y": out, "%m1": types[1]}), 2)
