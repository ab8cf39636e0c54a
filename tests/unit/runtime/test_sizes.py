"""Sizes: read, evaluated, refused."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseline.ir import dim as d
from fuseline.ir import dim_json
from fuseline.ir.dim import Dim
from fuseline.ir.dim_json import to_json
from fuseline.runtime.sizes import SizeEvaluator, size_from_json, symbol_of, symbols_of

N, M = d.symbol("n"), d.symbol("m", 2, 50)


def _combine(sizes: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
    pairs = st.tuples(st.sampled_from([d.add, d.sub, d.mul, d.maximum, d.minimum]), sizes, sizes).map(
        lambda t: t[0](t[1], t[2])
    )
    return pairs | st.tuples(sizes, st.integers(1, 9)).map(lambda t: d.floor_div(t[0], t[1]))


SIZES = st.recursive(st.one_of(st.integers(0, 99), st.sampled_from([N, M])), _combine, max_leaves=6)


@given(SIZES, st.integers(1, 100), st.integers(2, 50))
def test_the_runtime_agrees_with_the_compiler(size: Dim, n: int, m: int) -> None:
    read = size_from_json(json.loads(json.dumps(to_json(size))))
    values = {"n": n, "m": m}
    assert SizeEvaluator(values)(read) == d.evaluate(size, values)
    assert symbols_of(read) == {symbol.name for symbol in d.symbols(size)}


@given(SIZES, st.integers(1, 100), st.integers(2, 50))
def test_sizes_that_share_all_their_parts(size: Dim, n: int, m: int) -> None:
    """As long ones do: the size, its half and their products have every atom again."""
    again = d.add(d.mul(size, size), d.maximum(d.floor_div(size, 2), d.mul(size, N)))
    with patch.object(dim_json, "LONGEST_PLAIN", 0):
        data = json.loads(json.dumps(to_json(again)))
    read, values = size_from_json(data), {"n": n, "m": m}
    assert SizeEvaluator(values)(read) == d.evaluate(again, values)
    assert symbols_of(read) == {symbol.name for symbol in d.symbols(again)}
    assert dim_json.from_json(data, {"n": N, "m": M}) == again


def _halves_again(levels: int) -> Dim:
    """Half as much again, rounded down, and so on: each level has the one before it twice."""
    size: Dim = N
    for _ in range(levels):
        size = d.add(size, d.floor_div(size, 2))
    return size


def test_sizes_made_of_sizes_stay_short() -> None:
    size, wanted = _halves_again(60), 7
    for _ in range(60):
        wanted += wanted // 2
    data = json.dumps(to_json(size))
    assert data.startswith('["let"') and len(data) < 60 * 60 * 10
    assert SizeEvaluator({"n": 7})(size_from_json(json.loads(data))) == wanted
    assert dim_json.from_name(dim_json.to_name(size), {"n": N}) == size
    assert len(d.to_text(size)) < 20 * d.LONGEST_TEXT and ".." in d.to_text(size)


def test_symbols() -> None:
    assert symbol_of(size_from_json(to_json(N))) == "n"
    assert [
        symbol_of(size_from_json(to_json(size)))
        for size in (3, d.add(N, 1), d.mul(N, 2), d.mul(N, N), d.floor_div(N, 2))
    ] == [None] * 5


def test_a_symbol_without_a_value_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="n"):
        SizeEvaluator({})(size_from_json(to_json(d.floor_div(N, 2))))


@pytest.mark.parametrize(
    "data",
    [
        *[
            "n",
            True,
            1.5,
            None,
            [],
            ["sum"],
            ["sum", 3],
            ["product", []],
            ["sum", [3]],
            ["sum", [[]]],
            ["sum", [["n"]]],
            ["sum", [[1, 2]]],
        ],
        *[["sum", [[1, ["pow", 1, 2]]]], ["sum", [[1, ["div", 1]]]]],
        *[
            ["let", [], [[1, 0]]],
            ["let", [["div", ["sum", [[1, 0]]], 2]], [[1, 0]]],
            ["let", ["n"], [[1, -1]]],
            ["let", ["n"], [[1, True]]],
        ],
        *[
            ["let", ["n"]],
            ["let", "n", [[1, 0]]],
            ["let", ["n"], 3],
            ["sum", [[1, ["div", ["let", ["n"], [[1, 0]]], 2]]]],
        ],
    ],
)
def test_other_data_is_no_size(data: Any) -> None:
    with pytest.raises(ValueError, match="size"):
        size_from_json(data)


def test_a_quotient_by_nothing_is_nothing():
    quotient = size_from_json(to_json(d.floor_div(N, d.sub(d.symbol("m"), 3))))
    assert [SizeEvaluator({"n": 9, "m": m})(quotient) for m in (3, 5)] == [0, 4]
