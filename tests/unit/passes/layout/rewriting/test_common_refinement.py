"""The common sizes of two shapes: found wherever they exist, and made of the same numbers on both sides."""

from __future__ import annotations

from itertools import accumulate, pairwise
from math import prod
from operator import mul

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.passes.layout.rewriting.common_refinement import Factors, common_refinement

FACTORS = st.lists(st.integers(1, 5), min_size=1, max_size=6)
N = d.symbol("n")


def _flat(parts: Factors) -> list[Dim]:
    return [size for sizes in parts for size in sizes if size != 1]


@st.composite
def _groupings(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two shapes made of the same factors in the same order."""
    factors = draw(FACTORS)

    def grouped() -> list[int]:
        cuts = sorted(draw(st.sets(st.integers(1, len(factors)))) | {0, len(factors)})
        return [prod(factors[a:b]) for a, b in pairwise(cuts)]

    return grouped(), grouped()


@given(_groupings())
def test_shapes_of_the_same_factors_have_one(shapes: tuple[list[int], list[int]]) -> None:
    found = common_refinement(*shapes)
    assert found is not None
    assert _flat(found[0]) == _flat(found[1])
    for sizes, parts in zip(shapes, found, strict=True):
        assert [d.product(part) for part in parts] == sizes


@given(_groupings())
def test_it_is_the_coarsest(shapes: tuple[list[int], list[int]]) -> None:
    found = common_refinement(*shapes)
    assert found is not None
    cuts = {product for sizes in shapes for product in accumulate(sizes, mul)} - {1}
    assert len(_flat(found[0])) == len(cuts)


@given(FACTORS, FACTORS)
def test_none_only_where_a_cut_divides_no_other(before: list[int], after: list[int]) -> None:
    before, after = [*before, prod(after)], [*after, prod(before)]
    cuts = sorted({product for sizes in (before, after) for product in accumulate(sizes, mul)})
    chain = all(b % a == 0 for a, b in pairwise(cuts))
    assert (common_refinement(before, after) is not None) == chain


def test_symbolic_sizes() -> None:
    assert common_refinement([N, 6], [d.mul(N, 3), 2]) == ([[N], [3, 2]], [[N, 3], [2]])
    assert common_refinement([d.mul(N, 4), 3], [N, 12]) == ([[N, 4], [3]], [[N], [4, 3]])


@pytest.mark.parametrize("sizes", [([N, 6], [6, N]), ([4, 6], [3, 8]), ([2, 3], [6, 2])])
def test_no_sizes_fit_both(sizes: tuple[list[Dim], list[Dim]]) -> None:
    assert common_refinement(*sizes) is None


def test_sizes_of_one_stay() -> None:
    assert common_refinement([1, 4, 1], [2, 1, 2]) == ([[1], [2, 2], [1]], [[2], [1], [2]])
    assert common_refinement([], [1]) == ([], [[1]])
