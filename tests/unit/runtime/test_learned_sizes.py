"""Sizes that a host operator is the first to know."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.errors import FuselineError
from fuseline.runtime.learned_sizes import learn_sizes, told_shape
from fuseline.runtime.program import Program
from fuseline.runtime.sizes import Size, symbols_of
from fuseline.size_requirement import SizeRequirement


def _symbol(name: str, times: int = 1) -> Size:
    return "sum", ((times, name),)


PROGRAM = Program((), (), (), symbols={"n": (1, 8)}, requirements=(SizeRequirement(_symbol("n"), _symbol("m"), "add"),))


def test_an_array_tells_its_sizes_and_a_number_itself() -> None:
    assert told_shape(np.zeros((2, 3))) == (2, 3)
    assert told_shape(5) == (5,)


def test_symbols_are_learned_once_and_numbers_and_expressions_are_not() -> None:
    values = {"k": 2}
    learn_sizes(PROGRAM, "host", [_symbol("n"), 4, _symbol("k"), _symbol("n", 2)], (3, 4, 9, 6), values)
    assert values == {"k": 2, "n": 3}


@pytest.mark.parametrize("size", [0, 9])
def test_a_size_outside_its_bounds(size: int) -> None:
    with pytest.raises(FuselineError, match=rf"size {size} for n, which must be in 1\.\.8") as caught:
        learn_sizes(PROGRAM, "host", [_symbol("n")], (size,), {})
    assert (caught.value.code, caught.value.node) == ("E0107", "host")


def test_an_unbounded_size_may_be_nothing() -> None:
    values: dict[str, int] = {}
    learn_sizes(PROGRAM, "host", [_symbol("free")], (0,), values)
    assert values == {"free": 0}


def test_another_rank() -> None:
    with pytest.raises(FuselineError, match="answered rank 2, planned was 1") as caught:
        learn_sizes(PROGRAM, "host", [4], (4, 4), {})
    assert (caught.value.code, caught.value.node) == ("E0107", "host")


def test_a_size_that_breaks_a_requirement_names_who_asks_for_it() -> None:
    learn_sizes(PROGRAM, "host", [_symbol("n")], (3,), {"m": 3})
    with pytest.raises(FuselineError, match="sizes 4 and 3 must be equal") as caught:
        learn_sizes(PROGRAM, "host", [_symbol("n")], (4,), {"m": 3})
    assert (caught.value.code, caught.value.node) == ("E0203", "add")


@pytest.mark.parametrize("sizes", [1, 5])
def test_what_a_requirement_is_made_of_is_found_once_for_all_runs(sizes: int) -> None:
    names = [f"length {number} of {sizes}" for number in range(sizes)]
    total = "sum", tuple((1, name) for name in names)
    program = Program((), (), (), requirements=tuple(SizeRequirement(_symbol(n), total, "concat") for n in names))
    looked_at = list[int]()
    for _ in range(3):
        values: dict[str, int] = {}
        for name in names:
            learn_sizes(program, "host", [_symbol(name)], (0,), values)
        looked_at.append(symbols_of.cache_info().misses)
    assert looked_at[0] == looked_at[1] == looked_at[2]
