"""Few accumulators are several sums each: as many as keep the multiply-add units busy, and no result is lost."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.targets.cpu.emit.sum_chains import WAITING, chain_count, in_chains, joined, more_chains
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from tests.graphs.program import Program
from tests.kernels import Runner, assert_close, random


@pytest.mark.parametrize("steps", [1, 2, 3, 8])
@pytest.mark.parametrize("accumulators", [1, 2, 3, 7, 8, 9, 28])
def test_as_many_sums_as_units_wait_for(accumulators: int, steps: int):
    kernel = KernelBuilder("kernel", machine("avx2"))
    floats = [kernel.const(0, "f32", 8)] * accumulators
    count = chain_count(floats, steps)
    assert count <= steps and (count == steps or WAITING <= count * accumulators < WAITING + accumulators)
    assert chain_count([kernel.const(0, "i32", 8)] * accumulators, steps) == 1
    held = [*floats, *more_chains(kernel, floats, count)]
    assert len(held) == count * accumulators and len(in_chains(held, count)) == count
    assert len(joined(kernel, in_chains(held, count))) == accumulators


def test_nothing_is_carried_where_there_is_nothing_to_add_to():
    assert chain_count([], 4) == 1


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
@pytest.mark.parametrize("depth", [1, 2, 7, 64, 65, 130, 511])
@pytest.mark.parametrize("columns", [16, 33])
def test_rows_by_themselves(columns: int, depth: int, rows: int):
    p = Program(("m", depth), (depth, columns), constants=[1])
    run = Runner(ContractionFamily(), p.dispatch(p.relu(p.matmul(p.x[0], p.x[1]))))
    a, b = random((rows, depth), rows), random((depth, columns), 1)
    expected = np.maximum(a.astype("f8") @ b.astype("f8"), 0).astype("f4")
    assert_close(run(a, b, sizes={"m": rows})[0], expected, bits=16, least=1.0)
