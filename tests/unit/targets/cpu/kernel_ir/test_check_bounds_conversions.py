"""Numbers that are converted between types, as the bounds checker sees them, against enumeration."""

from __future__ import annotations

from typing import Any

import pytest

from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from fuseline.targets.cpu.kernel_ir.types import Type

from .index_algebra import (
    AVX2,
    Builder,
    Numbers,
    extremes,
    loops,
    lower_is_tight,
    problems,
    upper_is_tight,
)

ONE = loops((0, 30, 1))


@pytest.mark.parametrize(("start", "unsigned"), [(-3, False), (0, False), (0, True)])
def test_numbers_that_fit_pass_through_conversions(start: int, unsigned: bool):
    nest = loops((start, 9, 1))

    def index(o: Any, i: Any) -> Any:
        return i if isinstance(o, Numbers) else o.cast(o.cast(i, "i32"), "i64", unsigned=unsigned)

    upper_is_tight(nest, index, 8, start)
    lower_is_tight(nest, index, start)


def test_a_negative_number_read_as_unsigned_is_a_great_one():
    def index(o: Any, i: Any) -> Any:
        return i % 2**32 if isinstance(o, Numbers) else o.cast(o.cast(i, "i32"), "i64", unsigned=True)

    nest = loops((-1, 9, 1))
    assert extremes(nest, index) == (0, 2**32 - 1)
    assert ["lies before" in p.detail for p in problems(nest, index, 10, -1)] == [True]
    assert not [p for p in problems(nest, index, 2**40) if "is not negative" in p.detail]


@pytest.mark.parametrize(("lo", "hi", "fits"), [(-128, 128, True), (-128, 129, False), (-129, 128, False)])
def test_a_number_too_wide_for_its_type_wraps(lo: int, hi: int, fits: bool):
    def index(o: Any, i: Any) -> Any:
        return (i + 128) % 256 - 128 if isinstance(o, Numbers) else o.cast(o.cast(i, "i8"), "i64")

    nest = loops((lo, hi, 1))
    assert extremes(nest, index) == (-128, 127)
    assert (not problems(nest, index, 256, -128)) is fits


def test_a_byte_that_is_read_is_one():
    def index(o: Any, i: Any) -> Any:
        return o.cast(o.load(o.binding(1, "i8", 30), i), "i64", unsigned=True)

    upper_is_tight(ONE, index, 255, 0)
    lower_is_tight(ONE, index, 0)


def test_a_number_that_is_read_and_cut_is_unknown():
    def index(o: Any, i: Any) -> Any:
        return o.cast(o.cast(o.load(o.binding(1, "i64", 30), i), "i32"), "i64")

    assert len(problems(ONE, index, 10**6)) == 2


@pytest.mark.parametrize(("stored", "kind"), [((1.5,), Type("f64")), ((1, 0, 1, 0), Type("i32", 4))])
def test_bits_of_another_type_are_another_number(stored: tuple[Any, ...], kind: Type):
    k = Builder("kernel", AVX2)
    bits = k.bitcast(k.const(stored if kind.lanes > 1 else stored[0], *kind), "i64")
    k.gather(k.binding(0, "f32", 2), bits)
    assert check_bounds(k.finish())
