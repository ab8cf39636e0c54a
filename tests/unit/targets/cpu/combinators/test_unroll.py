"""Some iterations written out in each round."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fuseline.targets.cpu.combinators.unroll import unroll
from fuseline.targets.cpu.kernel_ir.types import Operand

from .visits import Visits, visited


@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize(("lo", "hi"), [(0, 0), (0, 1), (2, 7), (3, 9), (0, 8), (4, 4)])
def test_every_index_once_in_order(lo: int, hi: int, count: int):
    known = visited(lambda v: unroll(v.kernel, lo, hi, count, v.note))
    at_run_time = visited(lambda v: unroll(v.kernel, v.kernel.size(0), v.kernel.size(1), count, v.note), [lo, hi])
    assert known == at_run_time == list(range(lo, hi))


@pytest.mark.parametrize("hi", [0, 2, 3, 7])
def test_what_is_carried_goes_through_all(hi: int):
    def emit(v: Visits) -> None:
        def step(i: Operand, total: Operand, before: Operand) -> Sequence[Operand]:
            return v.kernel.as_value(v.kernel.add(total, v.kernel.mul(i, before))), v.kernel.as_value(
                v.kernel.add(before, 1)
            )

        v.note(*unroll(v.kernel, 0, v.kernel.size(0), 3, step, [v.kernel.as_value(5), v.kernel.as_value(2)]))

    total, before = 5, 2
    for i in range(hi):
        total, before = total + i * before, before + 1
    assert visited(emit, [hi]) == [total, before]
