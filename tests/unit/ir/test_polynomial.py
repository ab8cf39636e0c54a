"""Exact division of polynomials: of every product by its factors, and of nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fuseline.ir.dim import Dim, add, evaluate, floor_div, mul, symbol, symbols
from fuseline.ir.polynomial import exact_quotient

N, M, K = symbol("n"), symbol("m"), symbol("k", 2, 9)


def _polynomials() -> st.SearchStrategy[Dim]:
    leaves: st.SearchStrategy[Dim] = st.sampled_from([N, M, K, 1, 2, 3, -1])
    return st.recursive(leaves, lambda inner: st.builds(add, inner, inner) | st.builds(mul, inner, inner), max_leaves=5)


@given(_polynomials(), _polynomials())
def test_a_product_divided_by_a_factor_is_the_other(a: Dim, b: Dim):
    if b != 0 and not isinstance(b, int):
        assert floor_div(mul(a, b), b) == a


@given(_polynomials(), _polynomials(), st.integers(1, 5), st.integers(1, 5), st.integers(2, 9))
def test_a_quotient_is_that_of_the_numbers(a: Dim, b: Dim, n: int, m: int, k: int):
    values = {"n": n, "m": m, "k": k}
    divisor = b if isinstance(b, int) else evaluate(b, values)
    if divisor and b != 0:
        assert evaluate(floor_div(a, b), values) == (a if isinstance(a, int) else evaluate(a, values)) // divisor


def test_what_leaves_a_rest_has_no_quotient():
    a, b = ("a",), ("b",)
    assert exact_quotient({a: 2, b: 2}, {a: 1, b: 1}) == {(): 2}
    assert exact_quotient({a: 2, b: 4}, {a: 1, b: 1}) is None
    assert exact_quotient({a: 3, b: 3}, {a: 2, b: 2}) is None
    assert exact_quotient({a: 1}, {a: 1, b: 1}) is None
    assert exact_quotient({}, {a: 1, b: 1}) == {}


def test_a_quotient_that_remains_names_its_symbols():
    assert {s.name for s in symbols(floor_div(N, add(M, K)))} == {"n", "m", "k"}
