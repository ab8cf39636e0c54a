"""Sums of products against every product written out: loops of any role and extent, whichever way they are computed."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from fuseline.evaluation import contraction
from fuseline.evaluation.contraction import sum_of_products

Array = NDArray[Any]


class Case(NamedTuple):
    a: tuple[int, ...]
    b: tuple[int, ...]
    sizes: tuple[int, ...]
    reductions: tuple[int, ...]


def written_out(a: Array, b: Array, case: Case) -> Array:
    """In numbers without end."""
    extents = [
        case.sizes[d] if d in case.reductions else max(m, n, key=lambda size: size != 1)
        for d, (m, n) in enumerate(zip(a.shape, b.shape, strict=True))
    ]
    products = np.broadcast_to(a.astype(object) * b.astype(object), extents)
    out = np.zeros([1 if d in case.reductions else size for d, size in enumerate(extents)], object)
    for place in itertools.product(*map(range, extents)):
        out[tuple(0 if d in case.reductions else i for d, i in enumerate(place))] += products[place]
    return out


def drawn(rng: np.random.Generator) -> Case:
    """Up to five loops, each with or without the first factor, the second and the result."""
    rank = int(rng.integers(1, 6))
    sizes = tuple(int(n) for n in rng.integers(0 if rng.random() < 0.1 else 1, 4, rank))
    a, b = (tuple(int(n) if rng.random() < 0.6 else 1 for n in sizes) for _ in range(2))
    return Case(a, b, sizes, tuple(d for d in range(rank) if rng.random() < 0.5))


def both(case: Case, dtype: str, rng: np.random.Generator, most: int = 9) -> tuple[Array, Array]:
    low = 0 if np.dtype(dtype).kind == "u" else -most
    return rng.integers(low, most + 1, case.a).astype(dtype), rng.integers(low, most + 1, case.b).astype(dtype)


@pytest.fixture(params=["as it is", "unrolled", "in pieces"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits that choose how a sum is computed, so that small ones go every way."""
    if request.param != "as it is":
        monkeypatch.setattr(contraction, "SHORT_REDUCTION", 0)
    if request.param == "in pieces":
        monkeypatch.setattr(contraction, "COPY_LIMIT_BYTES", 8)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "uint16", "int64"])
def test_any_loops(dtype: str):
    rng = np.random.default_rng(3)
    for _ in range(60):
        case = drawn(rng)
        a, b = both(case, dtype, rng)
        found, expected = sum_of_products(a, b, case.sizes, case.reductions), written_out(a, b, case)
        assert found.dtype == np.dtype(dtype)
        assert found.shape == expected.shape, case
        np.testing.assert_array_equal(found, expected.astype(np.int64).astype(dtype), err_msg=str(case))


MATRICES = Case((3, 1, 5), (1, 2, 5), (3, 2, 5), (2,))


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32"])
def test_integers_that_no_float_holds_wrap(dtype: str):
    rng = np.random.default_rng(4)
    a, b = both(MATRICES, dtype, rng, 2**30)
    found = sum_of_products(a, b, MATRICES.sizes, MATRICES.reductions)
    bits = 8 * found.dtype.itemsize
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(found.astype(object) % 2**bits, written_out(a, b, MATRICES) % 2**bits)


def test_the_least_integer_counts_as_well():
    """`-2**26 * 2**26` twice is more than float64 tells from its neighbours."""
    a, b = np.array([[-(2**26), -1]]), np.array([[2**27, 1]])
    assert sum_of_products(a, b, (1, 2), (1,)).tolist() == [[-(2**53) - 1]]
    assert sum_of_products(b, a, (1, 2), (1,)).tolist() == [[-(2**53) - 1]]


@pytest.mark.parametrize("sizes", [(0, 3), (2, 0)], ids=["no-rows", "no-terms"])
def test_integers_of_no_elements(sizes: tuple[int, int]):
    none = np.ones(sizes, np.int8)
    found = sum_of_products(none, none, sizes, (1,))
    assert found.dtype == np.int8 and found.tolist() == [[0]] * sizes[0]


def test_halves_are_summed_in_single_precision():
    """In their own 2048 + 1 is 2048, and 300 * 300 infinite."""
    ones = np.ones((1, 4096), np.float16)
    assert sum_of_products(ones, ones, (1, 4096), (1,)).tolist() == [[4096.0]]
    large = np.array([[300.0, 300.0]], np.float16)
    assert sum_of_products(large, large * np.array([1, -1], np.float16), (1, 2), (1,)).tolist() == [[0.0]]


@pytest.mark.parametrize("terms", [64, 65])
def test_a_product_with_a_vector(terms: int):
    case = Case((3, terms), (1, terms), (3, terms), (1,))
    a, b = both(case, "float64", np.random.default_rng(terms))
    np.testing.assert_array_equal(
        sum_of_products(a, b, case.sizes, case.reductions), written_out(a, b, case).astype(float)
    )
