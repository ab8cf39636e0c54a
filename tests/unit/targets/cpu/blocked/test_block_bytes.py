"""What a block keeps between its roots: a figure of the machine between products, a fixed one where a window meets
it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import dims_map
from fuseline.targets.cpu.families.blocked.family import BlockedFamily
from fuseline.targets.cpu.families.blocked.plan import BlockedPlan
from fuseline.targets.cpu.families.family import Policy
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.isa.description import Machine
from tests.draws import generator
from tests.graphs.program import Program
from tests.kernels import Runner, arrays_for, assert_close

from .programs import depthwise, product_and_norm

DRAW = generator(__name__)


def _pair(m: int, n: int, k: int) -> DispatchView:
    """`relu(x @ a) @ b`: m x k, rows of n between the products."""
    p = Program([m, k], [k, n], [n, k], constants=[1, 2])
    return p.dispatch(p.matmul(p.relu(p.matmul(p.x[0], p.x[1])), p.x[2]))


def _keeping(isa: str, held: int) -> Machine:
    found = machine(isa)
    return replace(found, costs=replace(found.costs, block_bytes=held))


def _scratch(view: DispatchView, isa: Machine) -> int:
    plan = BlockedFamily(Policy(threads=1)).accepts(view, isa)
    assert isinstance(plan, BlockedPlan), plan
    found = plan.notes["scratch"]
    assert isinstance(found, int)
    return found


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
@pytest.mark.parametrize("share", [1, 2, 5])
def test_blocks_of_rows_keep_no_more_than_the_machine_says(isa: str, share: int):
    m, n, k = (int(size) for size in DRAW.integers((16, 40, 8), (200, 300, 80)))
    view = _pair(m, n, k)
    held = m * n * 4 // share
    assert _scratch(view, _keeping(isa, held)) <= held


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
def test_one_thread_reads_weights_once_where_the_rows_fit(isa: str):
    m, n, k = 128, 4 * int(DRAW.integers(700, 800)), int(DRAW.integers(500, 800))
    assert _scratch(_pair(m, n, k), machine(isa)) == m * n * 4


def test_images_that_a_window_meets_keep_what_they_kept():
    h, channels = int(DRAW.integers(40, 60)), 16 * int(DRAW.integers(12, 20))
    p = Program([1, h, h, 24], [24, channels], [3, 3, channels], constants=[1, 2])
    maps = [dims_map(5, [0, 1, 2, 4]), dims_map(5, [4, 3]), dims_map(5, [0, 1, 2, 3])]
    image = p.multiply_add(p.x[0], p.x[1], p.zeros(1, h, h, channels), maps, "ppppr")
    view = p.dispatch(depthwise(p, p.relu(image), p.x[2], 1, h, h, channels))
    assert {_scratch(view, _keeping("avx2", held)) for held in (1 << 10, 1 << 16, 1 << 26)} == {
        _scratch(view, machine("avx2"))
    }


@pytest.mark.parametrize("share", [1, 3, 7])
def test_blocks_of_any_size_compute_the_same(share: int):
    m, n, k = (int(size) for size in DRAW.integers((7, 8, 3), (70, 60, 30)))
    view = product_and_norm(m, n, k, constant=True)
    machines = [_keeping("avx2", held) for held in (1 << 22, m * n * 4 // share)]
    whole, some = (Runner(BlockedFamily(Policy(threads=1)), view, isa) for isa in machines)
    arrays = arrays_for(view)
    for found, wanted in zip(some(*arrays), whole(*arrays), strict=True):
        assert_close(found, wanted, bits=18)
