"""Sizes: read, evaluated, refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.runtime.sizes import SizeEvaluator, size_from_json, symbol_of, symbols_of

N, M = d.symbol("n"), d.symbol("m", 2, 50)


def _combine(sizes: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
    pairs = st.tuples(st.sampled_from([d.add, d.sub, d.mul, d.maximum, d.minimum]), sizes, sizes).map(lambda t: t[0](t[1], t[2]))
    return pairs | st.tuples(sizes, st.integers(1, 9)).map(lambda t: d.floor_div(t[0], t[1]))


SIZES = st.recursive(st.one_of(st.integers(0, 99), st.sampled_from([N, M])), _combine, max_leaves=6)


@given(SIZES, st.integers(1, 100), st.integers(2, 50))
def test_the_runtime_agrees_with_the_compiler(size: Dim, n: int, m: int) -> None:
    read = size_from_json(json.loads(json.dumps(d.to_json(size))))
    values = {"n": n, "m": m}
    assert SizeEvaluator(values)(read) == d.evaluate(size, values)
    assert symbols_of(read) == {symbol.name for symbol in d.symbols(size)}


def test_symbols() -> None:
    assert symbol_of(size_from_json(d.to_json(N))) == "n"
    assert [symbol_of(size_from_json(d.to_json(size))) for size in (3, d.add(N, 1), d.mul(N, 2), d.mul(N, N), d.floor_div(N, 2))] == [None] * 5


def test_a_symbol_without_a_value_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="n"):
        SizeEvaluator({})(size_from_json(d.to_json(d.floor_div(N, 2))))


@pytest.mark.parametrize(
    "data",
    [
        *["n", True, 1.5, None, [], ["sum"], ["sum", 3], ["product", []], ["sum", [3]], ["sum", [[]]], ["sum", [["n"]]], ["sum", [[1, 2]]]],
        *[["sum", [[1, ["pow", 1, 2]]]], ["sum", [[1, ["div", 1]]]]],
    ],
)
def test_other_data_is_no_size(data: Any) -> None:
    with pytest.raises(ValueError, match="size"):
        size_from_json(data)


def test_a_quotient_by_nothing_is_nothing():
    quotient = size_from_json(d.to_json(d.floor_div(N, d.sub(d.symbol("m"), 3))))
    assert [SizeEvaluator({"n": 9, "m": m})(quotient) for m in (3, 5)] == [0, 4]
