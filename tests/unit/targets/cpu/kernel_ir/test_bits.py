"""Bits of integers in kernel IR, as it is evaluated, against Python's."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.targets.cpu.kernel_ir.bits import Bits
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from tests.draws import RNG

from .vectors import on_lanes

OPERATIONS = {
    "leading_zeros": lambda n: 32 - n.bit_length(),
    "trailing_zeros": lambda n: (n & -n).bit_length() - 1 if n else 32,
    "count_ones": lambda n: n.bit_count(),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_counts(name: str):
    numbers = RNG.integers(0, 1 << 31, 8, dtype=np.int32)
    numbers[:2] = 0, 1
    found = on_lanes(lambda k, x: getattr(k, name)(x), numbers)
    assert list(found) == [OPERATIONS[name](int(n)) for n in numbers]


def test_a_number_and_its_bits():
    numbers = RNG.standard_normal(8).astype(np.float32)
    found = on_lanes(lambda k, x: k.xor(k.bitcast(x, "i32"), k.const(-(1 << 31), "i32", 8)), numbers, result="i32")
    assert (found.view(np.float32) == -numbers).all()


def test_a_builder_has_them():
    assert issubclass(KernelBuilder, Bits)
