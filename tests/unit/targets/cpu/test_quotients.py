"""Quotients that a kernel makes of numbers of either sign."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.targets.cpu.emit.quotients import floor_of_any
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from tests.kernel_ir.evaluate import evaluate
from tests.kernels import call


@pytest.mark.parametrize("divisor", [0, 1, 3, 4])
def test_it_is_rounded_down(divisor: int):
    count = 21
    k = KernelBuilder("quotient", machine())
    out, by = k.binding(0, "i64", count, writable=True), k.size(0)
    k.loop(0, count, 1, lambda i: k.store(out, i, k.as_value(floor_of_any(k, k.sub(i, 10), by))))
    kernel = k.finish()
    wanted = [(i - 10) // divisor if divisor else 0 for i in range(count)]
    for run in (
        lambda into: evaluate(kernel, [into], [divisor]),
        lambda into: call(kernel, machine(), [into], [divisor]),
    ):
        found = np.zeros(count, np.int64)
        run(found)
        assert found.tolist() == wanted
