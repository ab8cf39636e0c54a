"""What the checks of rows at edges are predicted to cost, beside the work of the loop that they are made for."""

from __future__ import annotations

import pytest

from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Kernel, Operand, Value
from fuseline.targets.cpu.merging.edges import OPS_PER_CHOICE, decides_rows, edges_price


def _sums(choices: int, rounds: int) -> Kernel:
    """Sums of four rows of `rounds` elements, the first `choices` of which may lie in the padding."""
    k = KernelBuilder("sums", machine("avx2"), keeps_loops=True)
    x, zeros = k.binding(0, "f32", 4 * 64), k.scratch("f32", 64)

    def image(i: Operand) -> tuple[()]:
        rows = [k.address(x, 64 * row) for row in range(4)]
        for row in range(choices):
            rows[row] = k.select_mem(k.compare("ge", i, row + 1), rows[row], 0, zeros, 0)

        def step(j: Operand, *sums: Value) -> tuple[Value, ...]:
            return tuple(k.add(sum_, k.load(k.offset(row, j))) for sum_, row in zip(sums, rows, strict=True))

        sums = k.loop(0, rounds, 1, step, (k.const(0.0, "f32"),) * 4)
        for row, sum_ in enumerate(sums):
            k.store(k.binding(1, "f32", 4, writable=True), row, sum_)
        return ()

    k.loop(0, 8, 1, image)
    return k.finish()


def test_a_kernel_that_chooses_addresses_decides_rows():
    assert decides_rows(_sums(1, 9)) and not decides_rows(_sums(0, 9))


@pytest.mark.parametrize(("kept", "own"), [(3, 1), (4, 0), (2, 2), (1, 3)])
@pytest.mark.parametrize("rounds", [5, 60])
def test_the_price_is_the_share_of_the_choices_more(kept: int, own: int, rounds: int):
    """Eight operations a round: a load and a sum for each of four rows."""
    expected = OPS_PER_CHOICE * max(0, kept - own) / (8 * rounds)
    assert edges_price(_sums(kept, rounds), _sums(own, rounds)) == pytest.approx(expected)


def test_choices_before_a_loop_that_the_own_kernel_lacks_all_count():
    found = edges_price(_sums(2, 6), KernelBuilder("nothing", machine("avx2")).finish())
    assert found == pytest.approx(OPS_PER_CHOICE * 2 / 48)
