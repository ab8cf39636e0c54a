"""Ranges of index expressions against all values they take."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fuseline.targets.cpu.emit.known_range import known_range
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand

EXPRESSIONS: dict[str, Callable[[KernelBuilder, Operand], Operand]] = {
    "index": lambda k, i: i,
    "sum": lambda k, i: k.add(i, 5),
    "difference": lambda k, i: k.sub(20, i),
    "product": lambda k, i: k.mul(i, -3),
    "square": lambda k, i: k.mul(i, i),
    "least": lambda k, i: k.min(i, 7),
    "greatest": lambda k, i: k.max(k.sub(i, 9), 0),
}
VALUES: dict[str, Callable[[int], int]] = {
    "index": lambda i: i, "sum": lambda i: i + 5, "difference": lambda i: 20 - i, "product": lambda i: -3 * i,
    "square": lambda i: i * i,
    "least": lambda i: min(i, 7), "greatest": lambda i: max(i - 9, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPRESSIONS)
@pytest.mark.parametrize(("lo", "hi", "step"), [(0, 16, 1), (3, 18, 4), (2, 3, 8), (0, 17, 8)])
def test_a_range_holds_all_values_and_is_reached_at_both_ends(name: str, lo: int, hi: int, step: int):
    k = KernelBuilder("test", machine())
    found: list[Operand] = []
    k.loop(lo, hi, step, lambda i: found.append(EXPRESSIONS[name](k, i)) or ())
    values = [VALUES[name](i) for i in range(lo, hi, step)]
    assert known_range(found[0]) == (min(values), max(values))


def test_what_is_only_known_at_run_time_has_no_range():
    k = KernelBuilder("test", machine())
    assert known_range(k.size(0)) is None
    assert known_range(k.add(k.size(0), 3)) is None
    found: list[Operand] = []
    k.loop(0, k.size(0), 1, lambda i: found.append(i) or ())
    assert known_range(found[0]) is None
    assert known_range(k.div(k.size(0), 2)) is None
