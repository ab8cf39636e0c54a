"""Sums of what loops of a nest add: grouped in whichever way, all but the innermost term is added up outside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Value
from tests.draws import RNG
from tests.kernel_ir.evaluate import evaluate


def _grouped(kernel: KernelBuilder, terms: Sequence[Any]) -> Any:
    """The terms added up in random groups."""
    if len(terms) == 1:
        return terms[0]
    cut = int(RNG.integers(1, len(terms)))
    return kernel.add(_grouped(kernel, terms[:cut]), _grouped(kernel, terms[cut:]))


def _sums(value: Any) -> Iterator[Value]:
    """The additions that a value is made by."""
    if isinstance(value, Value):
        for term in value.args:
            yield from _sums(term)
        if value.op == "add":
            yield value


@pytest.mark.parametrize("levels", [2, 3, 4])
@pytest.mark.parametrize("constant", [0, 5])
def test_one_addition_is_left_in_the_innermost_loop(levels: int, constant: int):
    extents = RNG.integers(2, 4, levels).tolist()
    strides = [int(np.prod(extents[i + 1 :])) for i in range(levels)]
    k = KernelBuilder("kernel", machine("avx2"))
    out, places = k.binding(0, "f32", constant + int(np.prod(extents)), writable=True), list[Any]()

    def level(number: int, terms: Sequence[Any]) -> tuple[()]:
        if number == levels:
            shuffled = [terms[i] for i in RNG.permutation(levels)]
            places.append(_grouped(k, [*shuffled, constant]))
            k.store(out, places[0], k.const(1.0, "f32"))
            return ()
        k.loop(0, extents[number], 1, lambda i: level(number + 1, [*terms, k.mul(i, strides[number])]))
        return ()

    level(0, [])
    innermost = [one for one in _sums(places[0]) if one.depth == levels and all(type(x) is Value for x in one.args)]
    assert len(innermost) == 1
    found = np.zeros(constant + int(np.prod(extents)), np.float32)
    evaluate(k.finish(), [found])
    wanted = [constant + sum(i * s for i, s in zip(at, strides, strict=True)) for at in product(*map(range, extents))]
    assert np.flatnonzero(found).tolist() == sorted(wanted)
