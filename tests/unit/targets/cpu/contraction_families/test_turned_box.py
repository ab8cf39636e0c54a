"""Squares of vectors that are turned on their way to a box."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.targets.cpu.families.contraction.turned_box import LEAST_SQUARE, pieces_of, turned
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from tests.draws import RNG
from tests.kernel_ir.evaluate import evaluate

LANES = 8


@pytest.mark.parametrize("dtype", ["i16", "f32", "f64"])
@pytest.mark.parametrize("rows", range(1, LANES + 1))
def test_each_lane_is_a_vector_of_the_rows(rows: int, dtype: str):
    """Those beyond the rows, up to a power of two, hold the last one."""
    k, side = KernelBuilder("kernel", machine("avx2")), 1 << (rows - 1).bit_length()
    source = k.binding(0, dtype, rows * LANES, writable=False)
    target = k.binding(1, dtype, LANES * side, writable=True)
    vectors = turned(k, [k.load(source, row * LANES, lanes=LANES) for row in range(rows)])
    assert [vector.type.lanes for vector in vectors] == [side] * LANES
    for lane, vector in enumerate(vectors):
        k.store(target, lane * side, vector)
    kind = np.dtype(dtype.replace("f", "float").replace("i", "int"))
    given, found = RNG.integers(-30000, 30000, rows * LANES).astype(kind), np.zeros(LANES * side, kind)
    evaluate(k.finish(), [given, found])
    wanted = given.reshape(rows, LANES).T
    padded = np.concatenate([wanted, np.repeat(wanted[:, -1:], side - rows, axis=1)], axis=1)
    np.testing.assert_array_equal(found.reshape(LANES, side), padded)


def test_short_pieces_are_left_to_runs():
    cuts = (1, 1 + LEAST_SQUARE, 40)
    assert [is_long for _, _, is_long in pieces_of(41, cuts)] == [False, True, True, False]
    assert [(begin, end) for begin, end, _ in pieces_of(41, cuts)] == [(0, 1), (1, 5), (5, 40), (40, 41)]
