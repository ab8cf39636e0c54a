"""Values that wait in scratch."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.targets.cpu.combinators.stage import in_turn, put_aside
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand, Value
from tests.kernel_ir.evaluate import evaluate

LANES = 8


@pytest.mark.parametrize("written_out", [False, True])
@pytest.mark.parametrize("last", [None, 1, 5])
@pytest.mark.parametrize("vectors", [1, 3])
def test_vectors_come_back_in_order_with_their_live_lanes(vectors: int, last: int | None, written_out: bool):
    kernel = KernelBuilder("k", machine("avx2"))
    size = vectors * LANES - (LANES - last if last is not None else 0)
    source, target = kernel.binding(0, "f32", vectors * LANES), kernel.binding(1, "f32", size, writable=True)
    stage = kernel.scratch("f32", vectors * LANES)
    put_aside(kernel, stage, [kernel.load(source, v * LANES, LANES) for v in range(vectors)])

    def store(v: Operand, active: Operand | None, value: Value) -> None:
        kernel.store(target, kernel.mul(v, LANES), kernel.add(value, value), active=active)

    in_turn(kernel, stage, 0, LANES, [None] * (vectors - 1) + [last], store, written_out=written_out)
    before = np.random.default_rng(1).standard_normal(vectors * LANES).astype(np.float32)
    after = np.zeros(size, np.float32)
    evaluate(kernel.finish(), [before, after])
    np.testing.assert_array_equal(after, 2 * before[:size])
