"""Ranges of integer arithmetic against the numbers themselves: no value lies outside, and ends that are said to be met
are."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.ir import Operation

from fuseline.analysis.range_rules import ANYTHING, LARGEST, RULES, VAGUE, ScalarRange, fits, of_bits
from fuseline.ir import dim as d
from fuseline.ir.scalar_ops import IndexCastUIOp

WRAP = 1 << 64


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


SEMANTICS: dict[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.MinSIOp: min,
    arith.MaxSIOp: max,
    arith.MinUIOp: lambda a, b: min(a, b, key=lambda n: n % WRAP),
    arith.RemSIOp: lambda a, b: a - b * _truncated(a, b) if b else 0,
    arith.RemUIOp: lambda a, b: a % WRAP % (b % WRAP) if b else 0,
    arith.FloorDivSIOp: lambda a, b: a // b,
    arith.DivSIOp: _truncated,
    arith.DivUIOp: lambda a, b: a % WRAP // (b % WRAP),
    arith.AndIOp: lambda a, b: a & b,
    arith.ShRSIOp: lambda a, b: a >> b,
    arith.ShRUIOp: lambda a, b: a % WRAP >> b,
}
DIVISIONS = (arith.FloorDivSIOp, arith.DivSIOp, arith.DivUIOp)
SHIFTS = (arith.ShRSIOp, arith.ShRUIOp)

ends = st.tuples(st.integers(-6, 6), st.integers(0, 5)).map(lambda ends: (ends[0], ends[0] + ends[1]))


def _range(low: int, high: int, name: str) -> ScalarRange:
    return ScalarRange(low, high, True, frozenset({(name, 1)}) if low != high else frozenset())


@pytest.mark.parametrize("kind", SEMANTICS, ids=lambda kind: kind.name)
@given(ends, ends)
def test_no_value_lies_outside(kind: type[Operation], a: tuple[int, int], b: tuple[int, int]) -> None:
    if (kind in DIVISIONS and b[0] <= 0 <= b[1]) or (kind in SHIFTS and b[0] < 0):
        return
    pairs = itertools.product(range(a[0], a[1] + 1), range(b[0], b[1] + 1))
    values = [SEMANTICS[kind](*pair) for pair in pairs]
    values = [value - WRAP if value >= WRAP // 2 else value for value in values]
    found = RULES[kind](_range(*a, "a"), _range(*b, "b"), bits=64)
    assert found.low is None or found.low <= min(values)
    assert found.high is None or found.high >= max(values)
    if found.met and found is not VAGUE:
        assert (found.low, found.high) == (min(values), max(values))


def _rule(kind: type[Operation], a: ScalarRange, b: ScalarRange) -> tuple[d.Dim | None, d.Dim | None, bool]:
    found = RULES[kind](a, b, bits=64)
    return found.low, found.high, found.met


def _exact(number: d.Dim) -> ScalarRange:
    return ScalarRange(number, number, True)


BYTE = ScalarRange(0, 255, True, frozenset({("byte", 1)}))
BELOW = ScalarRange(-9, 9, True, frozenset({("below", 1)}))
OPEN = ScalarRange(0, None, True)


@pytest.mark.parametrize(
    ("kind", "a", "b", "expected"),
    [
        (arith.MuliOp, BYTE, _exact(3), (0, 765, True)),
        (arith.MuliOp, _exact(-3), BYTE, (-765, 0, True)),
        (arith.MuliOp, BYTE, BYTE, (None, None, False)),
        (arith.MuliOp, OPEN, _exact(3), (0, None, True)),
        (arith.MuliOp, ANYTHING, _exact(-3), (None, None, True)),
        (arith.SubiOp, _exact(3), OPEN, (None, 3, True)),
        (arith.FloorDivSIOp, ANYTHING, _exact(3), (None, None, True)),
        (arith.MinSIOp, BYTE, _exact(9), (0, 9, True)),
        (arith.MinSIOp, BYTE, BELOW, (-9, 9, False)),
        (arith.MinSIOp, ANYTHING, _exact(9), (None, 9, True)),
        (arith.MaxSIOp, ANYTHING, _exact(0), (0, None, True)),
        (arith.MinUIOp, BYTE, _exact(9), (0, 9, True)),
        (arith.MinUIOp, BELOW, BYTE, (0, 255, False)),
        (arith.MinUIOp, BELOW, ANYTHING, (None, None, False)),
        (arith.MinUIOp, BYTE, OPEN, (0, 255, False)),
        (arith.RemSIOp, BYTE, _exact(10), (0, 9, False)),
        (arith.RemSIOp, ScalarRange(0, 4, True), _exact(10), (0, 4, False)),
        (arith.RemSIOp, OPEN, _exact(10), (0, 9, False)),
        (arith.RemSIOp, BELOW, _exact(5), (-4, 4, False)),
        (arith.RemSIOp, BYTE, BELOW, (None, None, False)),
        (arith.RemSIOp, BYTE, OPEN, (None, None, False)),
        (arith.RemSIOp, BYTE, _exact(0), (0, 0, False)),
        (arith.RemUIOp, BELOW, _exact(5), (0, 4, False)),
        (arith.RemUIOp, BYTE, _exact(300), (0, 255, False)),
        (arith.DivUIOp, BYTE, _exact(16), (0, 15, True)),
        (arith.DivSIOp, OPEN, _exact(16), (0, None, True)),
        (arith.DivSIOp, BELOW, _exact(2), (None, None, False)),
        (arith.DivSIOp, BYTE, _exact(0), (None, None, False)),
        (arith.FloorDivSIOp, BELOW, _exact(2), (-5, 4, True)),
        (arith.FloorDivSIOp, BELOW, _exact(0), (None, None, False)),
        (arith.ShRUIOp, BYTE, _exact(4), (0, 15, True)),
        (arith.ShRUIOp, BYTE, _exact(63), (None, None, False)),
        (arith.ShRUIOp, BYTE, _exact(-1), (None, None, False)),
        (arith.AndIOp, BELOW, _exact(7), (0, 7, False)),
        (arith.AndIOp, BYTE, _exact(7), (0, 7, False)),
        (arith.AndIOp, BELOW, ANYTHING, (None, None, False)),
    ],
)
def test_what_is_known_of(
    kind: type[Operation], a: ScalarRange, b: ScalarRange, expected: tuple[d.Dim | None, d.Dim | None, bool]
) -> None:
    assert _rule(kind, a, b) == expected


def test_things_that_vary_together() -> None:
    """`i + i` meets both ends, `i - i` does not; nor does a sum with something that is turned round."""
    assert _rule(arith.AddiOp, BYTE, BYTE) == (0, 510, True)
    assert _rule(arith.SubiOp, BYTE, BYTE) == (-255, 255, False)
    turned = RULES[arith.SubiOp](_exact(255), BYTE)
    assert (turned.low, turned.high, turned.met, turned.varies) == (0, 255, True, frozenset({("byte", -1)}))
    assert _rule(arith.AddiOp, turned, BYTE) == (0, 510, False)
    assert _rule(arith.AddiOp, turned, BELOW) == (-9, 264, True)
    assert _rule(arith.AddiOp, ScalarRange(0, 1, False), BELOW) == (-9, 10, False)


def test_a_choice_is_one_of_both() -> None:
    found = RULES[arith.SelectOp](ANYTHING, BELOW, _exact(20), bits=64)
    assert (found.low, found.high, found.met, found.varies) == (-9, 20, False, BELOW.varies)


def test_products_with_sizes() -> None:
    n = d.symbol("n", 0)
    assert _rule(arith.MuliOp, BYTE, _exact(n)) == (0, d.mul(255, n), True)
    assert _rule(arith.MuliOp, BYTE, _exact(d.sub(n, 5))) == (None, None, False)  # may be negative
    assert _rule(arith.RemSIOp, ANYTHING, _exact(n))[1] == d.maximum(d.sub(n, 1), 0)


@pytest.mark.parametrize("kind", [arith.ExtUIOp, IndexCastUIOp], ids=lambda kind: kind.name)
def test_a_negative_number_without_a_sign_is_large(kind: type[Operation]) -> None:
    assert RULES[kind](BYTE, bits=8) is BYTE
    wide = RULES[kind](BELOW, bits=8)
    assert (wide.low, wide.high, wide.met) == (0, 255, False)
    assert RULES[kind](BELOW, bits=64) is BELOW
    assert RULES[arith.ExtSIOp](BELOW, bits=8) is BELOW


def test_integers_of_so_many_bits() -> None:
    assert of_bits(8) == ScalarRange(-128, 127, False)
    assert of_bits(1) == ScalarRange(-1, 0, False)
    assert of_bits(63).high == (1 << 62) - 1
    assert of_bits(64) is VAGUE and of_bits(0) is VAGUE


@pytest.mark.parametrize(
    ("low", "high", "bits", "expected"),
    [
        (-128, 127, 8, True),
        (-129, 0, 8, False),
        (0, 128, 8, False),
        (None, 127, 8, True),
        (0, d.symbol("n", 0, 127), 8, True),
        (0, d.symbol("n", 0, 128), 8, False),
        (0, d.symbol("n", 0), 32, False),
        (0, d.symbol("n", 0), 64, True),
        (d.mul(d.symbol("n", 0), -1), 0, 32, False),
        (0, 0, 0, False),
        (None, None, 0, True),
    ],
)
def test_what_fits(low: d.Dim | None, high: d.Dim | None, bits: int, expected: bool) -> None:
    assert fits(ScalarRange(low, high, False), bits) == expected
    assert LARGEST >= 1 << 32  # an open size does not fit 32 bits
