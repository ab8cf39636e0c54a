"""Steps of a tile that leaves no registers for the columns of a next step are not written out side by side."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.kernel_ir.types import Block, Loop, When
from fuseline.targets.cpu.link.compile import emit_assembly
from tests.graphs.program import Program
from tests.kernels import Runner, assert_close, kernel_of, plan_of, random

FAMILY = ContractionFamily()


@pytest.mark.parametrize(("isa", "columns", "tile", "step"), [
    ("avx512", 48, "9x48", 1), ("avx512", 1024, "14x32", 2), ("avx2", 24, "4x24", 1), ("avx2", 1024, "6x16", 2),
])  # fmt: skip
def test_steps_of_an_iteration(isa: str, columns: int, tile: str, step: int):
    p = Program((24 * 9 * 14, 256), (256, columns))
    plan = plan_of(FAMILY, p.dispatch(p.matmul(p.x[0], p.x[1])), machine(isa))
    if plan.notes["tile"] != tile:
        pytest.skip(f"the tile is {plan.notes['tile']}")
    steps = [loop.step for loop in _innermost(kernel_of(FAMILY, plan, machine(isa)).body) if loop.hi == 256]
    assert step in steps and (step == 2 or 2 not in steps)


@pytest.mark.parametrize(("rows", "k"), [(49, 512), (64, 768)])
def test_broadcasts_stay_in_registers(rows: int, k: int):
    """Of long sums in parts, whose rows and columns count the same steps: no vector of a loop goes to the stack."""
    p = Program((rows, k), (k, 2048), constants=[1])
    isa = machine("avx512")
    plan = plan_of(FAMILY, p.dispatch(p.matmul(p.x[0], p.x[1])), isa)
    text = emit_assembly(print_llvm([kernel_of(FAMILY, plan, isa)], isa), isa)
    loops = [block for block in text.split("\n.LBB") if block.count("vfmadd") >= 24]
    assert loops and not [line for block in loops for line in block.splitlines() if "rsp" in line and "zmm" in line]


def _innermost(block: Block) -> Iterator[Loop]:
    """The loops that hold no other."""
    for op in block.ops:
        if isinstance(op, When):
            yield from _innermost(op.then)
            yield from _innermost(op.otherwise)
        elif isinstance(op, Loop) and any(isinstance(inner, Loop | When) for inner in op.body.ops):
            yield from _innermost(op.body)
        elif isinstance(op, Loop):
            yield op


@pytest.mark.parametrize("k", [5, 256, 399])
def test_sums_of_tight_tiles(k: int):
    p = Program((31, k), (k, 144))
    run = Runner(FAMILY, p.dispatch(p.matmul(p.x[0], p.x[1])))
    a, b = random((31, k), 1), random((k, 144), 2)
    assert_close(run(a, b)[0], a.astype(np.float64) @ b)
