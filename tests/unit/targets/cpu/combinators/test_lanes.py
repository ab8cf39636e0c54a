"""What lanes keep of an axis, put together."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.targets.cpu.combinators.lanes import Kept, LaneLoop, is_masked
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand
from tests.draws import RNG
from tests.kernel_ir.evaluate import evaluate


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize(("lanes", "unroll"), [(1, 1), (4, 1), (8, 3), (8, 4)])
@pytest.mark.parametrize(("lo", "hi"), [(0, 0), (0, 1), (2, 9), (0, 24), (1, 77)])
def test_every_element_is_kept_once(
    lo: int, hi: int, lanes: int, unroll: int, masked: bool, compact: bool, known: bool
) -> None:
    """The smallest and the largest of all; what they begin with is smaller and larger than some."""
    k = KernelBuilder("k", machine("avx2"), compact=compact)
    source, target = k.binding(0, "f32", 80), k.binding(1, "f32", 2, writable=True)

    def step(start: Operand, width: int, active: Operand | None, kept: Kept) -> Kept:
        element = k.load(source, start, width, active=active)
        least, most = k.min(element, kept[0]), k.max(element, kept[1])
        if active is None or width == 1:
            return least, most
        live = k.mask(active, width)
        return k.select(live, least, kept[0]), k.select(live, most, kept[1])

    def join(a: Kept, b: Kept) -> Kept:
        return k.min(a[0], b[0]), k.max(a[1], b[1])

    loop = LaneLoop(k, lanes, unroll=unroll, masked=masked)
    found = loop.keep(lo, hi if known else k.size(0), (k.const(1.0, "f32"), k.const(1.5, "f32")), step, join)
    for i, value in enumerate(found):
        k.store(target, i, value)
    elements, kept = RNG.standard_normal(80).astype(np.float32), np.zeros(2, np.float32)
    evaluate(k.finish(), [elements, kept], [hi])
    assert kept.tolist() == [min([1.0, *elements[lo:hi].tolist()]), max([1.5, *elements[lo:hi].tolist()])]


def test_vectors_are_masked_where_the_machine_masks_all_their_types() -> None:
    wide, narrow = (KernelBuilder("k", machine(name)) for name in ("avx512", "avx2"))
    assert is_masked(wide, "f32", "i8") and is_masked(narrow, "f32", "i64")
    assert not is_masked(narrow, "f32", "i8") and is_masked(narrow)
