"""Broadcasting, reshaping and the registry of the ONNX reader, without models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import registry
from fuseline.frontends.onnx.broadcasting import Broadcasting, broadcast_dim, loops_of, may_repeat
from fuseline.frontends.onnx.registry import lowered_ops, lowering_of, onnx_op
from fuseline.frontends.onnx.reshaping import groups_of
from fuseline.frontends.onnx.tensors import NoNativeLowering, static_size
from fuseline.ir.dim import Dim, ceil_div, evaluate, minimum, mul, product, symbol

N, M = symbol("n"), symbol("m")


def _dims(*shapes: Sequence[Dim]) -> tuple[Dim, ...]:
    return Broadcasting().dims(shapes, lambda left, right: None)


def test_equal_symbols_broadcast_and_ones_repeat():
    assert _dims((N, 1), (1, 4)) == (N, 4)
    assert loops_of((1, 4), (2, 3, 4)) == [None, 2]


def test_of_unequal_symbols_only_the_run_tells_which_repeats():
    (size,) = _dims((N,), (M,))
    assert [evaluate(size, {"n": n, "m": m}) for n, m in ((5, 1), (1, 5), (5, 5))] == [5, 5, 5]
    assert may_repeat(N, size) and may_repeat(M, size) and not may_repeat(size, size)
    with pytest.raises(NoNativeLowering, match="symbolic-broadcast"):
        loops_of((N,), (size,))


def test_of_symbols_that_may_be_0_the_result_may_be_empty():
    n, m = symbol("n", 0), symbol("m", 0)
    (size,) = _dims((n,), (m,))
    assert [evaluate(size, {"n": n, "m": m}) for n, m in ((0, 1), (1, 0), (0, 0), (1, 7))] == [0, 0, 0, 7]


def test_a_symbol_against_a_number_is_that_number():
    assert _dims((N,), (7,)) == _dims((7,), (N,)) == (7,)
    with pytest.raises(NoNativeLowering, match="symbolic-broadcast"):
        _dims((symbol("n", 0),), (0,))


def test_sizes_of_one_symbol_that_meet_are_meant_to_be_equal():
    even = mul(ceil_div(N, 2), 2)
    assert _dims((N,), (even,)) == (N,) and not may_repeat(N, even)
    first = minimum(N, 1)
    assert _dims((N,), (minimum(mul(N, 3), 1),)) == (N,) and first == 1
    assert may_repeat(minimum(symbol("n", 0), 1), symbol("n", 0))


def test_what_has_been_broadcast_to_a_size_broadcasts_to_it_again():
    k, dim = symbol("k"), partial(Broadcasting().dim, took_equal=lambda left, right: None)
    both = dim(N, M)
    assert [dim(*sizes) for sizes in ((both, N), (M, both), (both, both))] == [both] * 3
    three = dim(both, k)
    assert three != both and {dim(three, size) for size in (N, M, k, both)} == {three}


def test_who_asks_is_told_what_is_taken_to_be_equal():
    even, told = mul(ceil_div(N, 2), 2), list[tuple[Dim, Dim]]()
    Broadcasting().dims([(N, N, 1, N, 2), (even, N, even, M, 2)], lambda *pair: told.append(pair))
    assert told == [(N, even)]


def test_literally_only_what_cannot_be_1_alone_is_equal():
    even = mul(ceil_div(N, 2), 2)
    size = broadcast_dim(N, even, literal=True)
    assert [evaluate(size, {"n": n}) for n in (1, 2, 6)] == [2, 2, 6]
    assert may_repeat(N, size, literal=True) and not may_repeat(even, size, literal=True)  # it is never 1
    longer = symbol("n", 2)
    assert broadcast_dim(longer, mul(ceil_div(longer, 2), 2), literal=True) == longer


def test_numbers_that_do_not_broadcast_are_an_error():
    with pytest.raises(FuselineError, match="E0107"):
        _dims((2,), (3,))


def test_symbolic_reshapes_split_at_equal_products():
    assert groups_of((N, 128, 384), (N, 128, 12, 32)) == [([0], [0]), ([1], [1]), ([2], [2, 3])]
    assert groups_of((mul(N, 128), 4), (N, 128, 4)) == [([0], [0, 1]), ([1], [2])]
    assert groups_of((N, 4), (M, 4)) is None


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_groups_cover_both_shapes_with_equal_products(sizes: list[int], random: object):
    shuffled = [a for size in sizes for a in ((size,) if size % 2 else (2, size // 2))]
    groups = groups_of(sizes, shuffled)
    assert groups is not None
    assert [axis for left, _ in groups for axis in left] == list(range(len(sizes)))
    assert [axis for _, right in groups for axis in right] == list(range(len(shuffled)))
    assert all(product(sizes[a] for a in left) == product(shuffled[a] for a in right) for left, right in groups)


def test_versions_are_picked_by_the_operator_set():
    old, new = lowering_of("", "Softmax", 11), lowering_of("", "Softmax", 13)
    assert old is not None and new is not None and old is not new
    assert lowering_of("", "Softmax", 12) is old
    assert lowering_of("", "Trilu", 13) is None


def test_two_lowerings_of_one_version_are_refused():
    domain, op_type, since = lowered_ops()[0]
    with pytest.raises(KeyError, match="two lowerings"):
        onnx_op(op_type, since=since, domain=domain)(lambda node: node[0])
    assert len([entry for entry in registry.lowered_ops() if entry[:2] == (domain, op_type)]) >= 1


def test_a_symbolic_size_is_no_number():
    assert static_size(3) == 3
    with pytest.raises(NoNativeLowering, match="symbolic-size"):
        static_size(N)
