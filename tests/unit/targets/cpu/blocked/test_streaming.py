"""Softmax and the product behind it, block by block of their common loop, against NumPy in f64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith, linalg, math, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, i1
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.build import Body, dims_map, identity_map
from fuseline.targets.cpu.families.blocked.family import BlockedFamily
from fuseline.targets.cpu.families.family import Policy
from fuseline.targets.cpu.isa import ISA_NAMES, machine
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.link.compile import emit_object
from tests.graphs.program import Program
from tests.kernels import Array, Runner, arrays_for, assert_close, random

from .programs import attention, expected_attention
from .streams import Change, expected, head, scaled_by, with_argument

KEYS = (0, 1, 5, 63, 64, 65, 130, 301)
"""Blocks have 64 keys or more."""


def streaming(view: DispatchView, threads: int = 2) -> Runner:
    """The dispatch as a kernel that streams."""
    run = Runner(BlockedFamily(Policy(threads=threads)), view)
    assert "streamed" in run.plan.notes
    return run


def check(
    view: DispatchView, wanted: Callable[..., Any], sizes: dict[str, int], arrays: Sequence[Array] | None = None
) -> None:
    arrays = arrays if arrays is not None else arrays_for(view, sizes)
    results = wanted(*arrays)
    for found, result in zip(
        streaming(view)(*arrays, sizes=sizes), results if isinstance(results, list) else [results], strict=True
    ):
        assert_close(found, np.asarray(result), bits=18)


@pytest.mark.parametrize("keys", KEYS)
def test_any_number_of_keys(keys: int):
    check(head("q", "k", 24), expected, {"q": 37, "k": keys})


@pytest.mark.parametrize("threads", [1, 8])
@pytest.mark.parametrize("heads_last", [True, False])
@pytest.mark.parametrize(("queries", "keys"), [(1, 300), (70, 129), (9, 64)])
def test_heads_and_masks(queries: int, keys: int, heads_last: bool, threads: int):
    view, sizes = attention(["h"], "q", "k", 16, heads_last=heads_last, masked=True), {"h": 3, "q": queries, "k": keys}
    arrays = arrays_for(view, sizes)
    assert_close(
        streaming(view, threads)(*arrays, sizes=sizes)[0], expected_attention(arrays, heads_last=heads_last), bits=18
    )


@pytest.mark.parametrize("share", [1, 1.5])
def test_a_known_number_of_keys_that_is_too_large_for_a_block(share: float):
    keys = int(share * machine().l2_bytes / 512)
    view = attention([2], 40, keys, 32, heads_last=False, masked=False)
    arrays = arrays_for(view)
    assert_close(streaming(view)(*arrays)[0], expected_attention(arrays, heads_last=False), bits=18)


def test_few_keys_stay_in_one_block():
    plan = Runner(BlockedFamily(Policy(threads=2)), attention([4], 64, 64, 32, heads_last=False, masked=False)).plan
    assert "streamed" not in plan.notes


# masks and special values ---------------------------------------------------------------------------------------------


def masked(mask: Array) -> tuple[DispatchView, list[Array], dict[str, int]]:
    """Attention with a mask that is added to the scores."""
    queries, keys = mask.shape
    view = head("q", "k", 8, ("q", "k"), scores=with_argument(3, arith.AddfOp, "q", "k"))
    sizes = {"q": queries, "k": keys}
    return view, [*arrays_for(view, sizes)[:3], mask.astype(np.float32)], sizes


@pytest.mark.parametrize(("first", "last"), [(0, 64), (64, 200), (0, 199), (3, 150), (0, 200)])
def test_minus_infinity_over_whole_blocks_and_whole_rows(first: int, last: int):
    """Rows 2 and on see nothing of the keys from `first` to `last`: all NaN where that is every key."""
    mask = random((7, 200), 5)
    mask[2:, first:last] = -np.inf
    view, arrays, sizes = masked(mask)
    wanted = expected(*arrays[:3], scores=lambda s: s + mask)
    assert np.isnan(wanted[2:]).all() == (last - first == 200)
    check(view, lambda *_: wanted, sizes, arrays)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("key", [0, 70, 199])
def test_nan_and_infinity_among_the_scores_make_their_row_nan(value: float, key: int):
    mask = np.zeros((5, 200))
    mask[3, key] = value
    view, arrays, sizes = masked(mask)
    wanted = expected(*arrays[:3], scores=lambda s: s + mask)
    assert np.isnan(wanted).any(-1).tolist() == [False, False, False, True, False]
    check(view, lambda *_: wanted, sizes, arrays)


def test_scores_that_grow_from_block_to_block_leave_nothing_of_the_first():
    mask = np.arange(300.0)[None] * np.array([1.0, -1.0, 40.0])[:, None]
    view, arrays, sizes = masked(mask)
    check(view, lambda q, k, v, m: expected(q, k, v, scores=lambda s: s + m), sizes, arrays)


@pytest.mark.parametrize("lowest", [-1e30, float(np.finfo(np.float32).min)])
def test_a_mask_of_very_low_numbers(lowest: float):
    """Rows that see nothing but the lowest number have equal weights, not NaN."""
    mask = np.where(random((6, 150), 3) > 0, lowest, 0.0)
    mask[4] = lowest
    view, arrays, sizes = masked(mask)
    wanted = expected(*arrays[:3], scores=lambda s: (s.astype(np.float32) + mask.astype(np.float32)).astype(np.float64))
    check(view, lambda *_: wanted, sizes, arrays)


@pytest.mark.parametrize("keys", [64, 200])
def test_causal_by_the_loops_own_numbers(keys: int):
    """Queries are the last of the keys, and see none behind themselves."""

    def causal(p: Program, s: SSAValue) -> SSAValue:
        def body(b: Body) -> SSAValue:
            row, column = (b.op(linalg.ops.IndexOp, loop) for loop in (0, 1))
            later = b.op(arith.CmpiOp, column, row, "sgt")
            return b.op(arith.SelectOp, later, b.constant(-np.inf, p.element), b.args[0])

        return p.elementwise([s], p.empty("q", "k"), body, [identity_map(2)] * 2)

    later = np.arange(keys) > np.arange(90)[:, None]
    check(
        head("q", "k", 8, scores=causal),
        lambda *a: expected(*a, scores=lambda s: np.where(later, -np.inf, s)),
        {"q": 90, "k": keys},
    )


# what may stand between -----------------------------------------------------------------------------------------------

SIZES = {"q": 21, "k": 170}


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("divide", [True, False])
@pytest.mark.parametrize("after", [True, False])
def test_ways_to_write_it(split: bool, divide: bool, after: bool):
    check(head("q", "k", 12, split=split, divide=scaled_by(divide), after=after), expected, SIZES)


@pytest.mark.parametrize("after", [True, False])
def test_a_row_of_nothing_is_nan_wherever_it_is_divided(after: bool):
    mask = np.where(np.arange(5)[:, None] == 1, -np.inf, np.zeros((5, 170))).astype(np.float32)
    view = head("q", "k", 8, ("q", "k"), scores=with_argument(3, arith.AddfOp, "q", "k"), after=after)
    sizes = {"q": 5, "k": 170}
    check(
        view, lambda q, k, v, m: expected(q, k, v, scores=lambda s: s + m), sizes, [*arrays_for(view, sizes)[:3], mask]
    )


@pytest.mark.parametrize("keys", [0, 1, 170])
def test_a_reciprocal_of_the_total_is_computed_once_per_row(keys: int):
    p = Program(("q", "k"), ("k", 8))
    top = p.reduce(p.x[0], combine=arith.MaximumfOp)
    powers = p.by_row(p.x[0], top, lambda b: b.op(math.ExpOp, b.op(arith.SubfOp, *b.args[:2])))
    total = p.reduce(powers)
    one = p.elementwise(
        [total],
        p.empty("q"),
        lambda b: b.op(arith.DivfOp, b.constant(1.0, p.element), b.args[0]),
        [identity_map(1)] * 2,
    )
    weights = p.by_row(powers, one, lambda b: b.op(arith.MulfOp, *b.args[:2]))

    def wanted(s: Array, v: Array) -> Array:
        some = np.exp(s.astype(np.float64) - s.max(-1, keepdims=True, initial=-np.inf))
        return some / some.sum(-1, keepdims=True) @ v

    check(p.dispatch(p.matmul(weights, p.x[1])), wanted, {"q": 21, "k": keys})


def test_weights_times_a_mask_stay_in_the_blocks():
    view = head("q", "k", 12, ("q", "k"), weights=with_argument(3, arith.MulfOp, "q", "k"))
    check(view, lambda *a: expected(*a[:3], weights=a[3]), SIZES)


def test_the_total_may_be_a_result():
    def wanted(q: Array, k: Array, v: Array) -> list[Array]:
        s = q.astype(np.float64) @ k.T
        return [expected(q, k, v), np.exp(s - s.max(-1, keepdims=True)).sum(-1)]

    view = head("q", "k", 8, results=lambda v: [v.product, v.total])
    check(view, wanted, SIZES)


@pytest.mark.parametrize("after", [True, False])
def test_a_total_of_no_keys_and_of_minus_infinities(after: bool):
    view = head(
        "q",
        "k",
        8,
        ("q", "k"),
        scores=with_argument(3, arith.AddfOp, "q", "k"),
        results=lambda v: [v.product, v.total],
        after=after,
    )
    mask = np.full((3, 100), -np.inf, np.float32)
    sizes = {"q": 3, "k": 100}
    for found in streaming(view)(*arrays_for(view, sizes)[:3], mask, sizes=sizes):
        assert np.isnan(found).all()
    sizes = {"q": 3, "k": 0}
    product, total = streaming(view)(*arrays_for(view, sizes), sizes=sizes)
    assert (total == 0).all() and (np.isnan(product).all() if after else (product == 0).all())


def test_what_the_blocks_share_is_computed_before_them_and_what_needs_all_behind():
    """Projections of queries and of the product in the same dispatch."""
    p = Program(("q", 6), (6, 8), ("k", 8), ("k", 8), (8, 10))
    queries = p.matmul(p.x[0], p.x[1])
    maps = [dims_map(3, [0, 2]), dims_map(3, [1, 2]), dims_map(3, [0, 1])]
    scores = p.multiply_add(queries, p.x[2], p.zeros("q", "k"), maps, "ppr")
    product = p.matmul(p.softmax(scores), p.x[3])
    view = p.dispatch(p.matmul(product, p.x[4]))
    check(view, lambda x, w, k, v, u: expected(x.astype(np.float64) @ w, k, v) @ u, SIZES)


def test_scores_may_come_from_outside():
    p = Program(("q", "k"), ("k", 8))
    view = p.dispatch(p.matmul(p.softmax(p.x[0]), p.x[1]))

    def wanted(s: Array, v: Array) -> Array:
        powers = np.exp(s.astype(np.float64) - s.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True) @ v

    check(view, wanted, SIZES)


def nan_to(number: float) -> Change:
    """Weights with `number` in place of NaN."""

    def change(p: Program, x: SSAValue) -> SSAValue:
        shape = ("q", "k")
        dynamic = [p.size(size) for size in shape]
        flags = p.emit.add(tensor.EmptyOp(dynamic, TensorType(i1, [DYNAMIC_INDEX] * 2))).tensor
        flag = p.elementwise(
            [x], flags, lambda b: b.op(arith.CmpfOp, b.args[0], b.args[0], "uno"), [identity_map(2)] * 2
        )

        def chosen(b: Body) -> SSAValue:
            return b.op(arith.SelectOp, b.args[0], b.constant(number, p.element), b.args[1])

        return p.elementwise([flag, x], p.empty(*shape), chosen, [identity_map(2)] * 3)

    return change


@pytest.mark.parametrize("value", [-np.inf, np.inf, np.nan])
def test_rows_of_nan_that_are_replaced_by_zeros(value: float):
    """As exporters guard a softmax; a NaN among the values still shows."""
    mask = random((6, 170), 4)
    mask[2] = value
    view = head("q", "k", 8, ("q", "k"), scores=with_argument(3, arith.AddfOp, "q", "k"), weights=nan_to(0.0))
    sizes = {"q": 6, "k": 170}
    q, k, v = arrays_for(view, sizes)[:3]
    v[7, 3] = np.nan
    wanted = expected(q, k, v, scores=lambda s: s + mask)
    wanted[2] = 0
    assert np.isnan(wanted).sum() == 5
    check(view, lambda *_: wanted, sizes, [q, k, v, mask.astype(np.float32)])


# what is left to others -----------------------------------------------------------------------------------------------


def plus_one(p: Program, x: SSAValue) -> SSAValue:
    return p.elementwise(
        [x],
        p.empty("q", "k"),
        lambda b: b.op(arith.AddfOp, b.args[0], b.constant(1.0, p.element)),
        [identity_map(2)] * 2,
    )


def squared(p: Program, x: SSAValue) -> SSAValue:
    return p.elementwise(
        [x], p.empty("q", "k"), lambda b: b.op(arith.MulfOp, b.args[0], b.args[0]), [identity_map(2)] * 2
    )


def less_the_first(p: Program, x: SSAValue) -> SSAValue:
    """Every row minus its element in column 0: no block but the first has it."""
    first = AffineMap(2, 0, (AffineExpr.dimension(0), AffineExpr.constant(0)))
    maps = [identity_map(2), first, identity_map(2)]
    return p.elementwise([x, x], p.empty("q", "k"), lambda b: b.op(arith.SubfOp, b.args[0], b.args[1]), maps)


def less_the_mean(p: Program, x: SSAValue) -> SSAValue:
    """Every row minus its sum."""
    total = p.reduce(x)
    return p.by_row(x, total, lambda b: b.op(arith.SubfOp, b.args[0], b.args[1]))


@pytest.mark.parametrize("view", [
    head("q", "k", 8, scores=less_the_first),
    head("q", "k", 8, scores=less_the_mean),
    head("q", "k", 8, results=lambda v: [v.product, v.weights]),
    head("q", "k", 8, results=lambda v: [v.product, v.scores]),
    head("q", "k", 8, results=lambda v: [v.product, v.powers]),
    head("q", "k", 8, results=lambda v: [v.product, v.top]),
    head("q", "k", 8, weights=plus_one),
    head("q", "k", 8, weights=squared),
    head("q", "k", 8, start=1.0),
    head("q", "k", 8, weights=nan_to(1.0)),
    head("q", "k", 8, weights=nan_to(0.0), after=True),
    head("q", "k", 8, divide=scaled_by(of=1)),
])  # fmt: skip
def test_what_does_not_stream(view: DispatchView):
    answer = BlockedFamily(Policy(threads=2)).accepts(view, machine())
    assert getattr(answer, "code", None) == "scratch"


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_every_isa(isa: str):
    """Objects for all; results, and every access, by the kernel IR's evaluator."""
    view, target, sizes = head("q", "k", 5), machine(isa), {"q": 4, "k": 150}
    run = Runner(BlockedFamily(Policy(threads=8)), view, target)
    assert emit_object(print_llvm([run.kernel], target), target)[:4] == b"\x7fELF"
    arrays = [random([d.evaluate(n, sizes) for n in view.shapes.dims(t)], seed) for seed, t in enumerate(view.tensors)]
    assert_close(run.evaluated(*arrays, sizes=sizes)[0], expected(arrays[0], arrays[1], arrays[2]), bits=15)
