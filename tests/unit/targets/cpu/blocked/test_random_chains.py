"""Random chains of products, row reductions and elementwise ops, between guard pages and against the NumPy evaluator of
the IR."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.dispatch.view import DispatchView
from fuseline.evaluation.program import evaluate_function
from fuseline.ir.build import dims_map, identity_map
from fuseline.targets.cpu.families.blocked.family import BlockedFamily
from fuseline.targets.cpu.families.family import Policy, Refusal
from fuseline.targets.cpu.isa import machine
from tests.graphs.program import Program
from tests.kernels import Runner, arrays_for, assert_close

from .programs import Size, row_norm, silu

STEPS = ("softmax", "norm", "silu", "row", "column", "whole", "product", "centre")
ARGUMENTS = 5


@st.composite
def chains(draw: st.DrawFn) -> tuple[DispatchView, dict[str, int]]:
    """A product, then up to five steps over `[batch, m, n]` or `[m, n]`; the last value and perhaps one on the way are
    results."""
    m = draw(st.integers(1, 40))
    batch = draw(st.sampled_from([(), (3,)]))
    n, k = draw(st.integers(1, 30)), draw(st.integers(1, 12))
    rows: Size = "m" if draw(st.booleans()) else m
    steps = draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=5))
    lead: list[Size] = [*batch, rows]
    p = Program([*lead, k], [k, n], [n], [*lead, n], [n, n], constants=draw(st.sampled_from([(), (1, 4)])))
    x = product(p, p.x[0], p.x[1], lead, n)
    values = [x]
    for step in steps:
        x = _STEPS[step](p, x, lead, n)
        values.append(x)
    if draw(st.booleans()):
        x = p.moved(x, list(reversed(range(len(lead) + 1))), *reversed([*lead, n]))
    kept = draw(st.sampled_from([None, *values[:-1]]))
    view = p.dispatch(x) if kept is None else p.dispatch(x, kept)
    return view, {"m": m} if rows == "m" else {}


def product(p: Program, x: SSAValue, w: SSAValue, lead: Sequence[Size], n: Size) -> SSAValue:
    """`x @ w` over the last dimension."""
    rank = len(lead)
    own = list(range(rank))
    maps = [
        dims_map(rank + 2, [*own, rank + 1]),
        dims_map(rank + 2, [rank + 1, rank]),
        dims_map(rank + 2, [*own, rank]),
    ]
    return p.multiply_add(x, w, p.zeros(*lead, n), maps, "p" * (rank + 1) + "r")


def _plus(p: Program, x: SSAValue, other: SSAValue, dims: Sequence[int], shape: Sequence[Size]) -> SSAValue:
    rank = len(shape)
    maps = [identity_map(rank), dims_map(rank, list(dims)), identity_map(rank)]
    return p.elementwise([x, other], p.empty(*shape), lambda b: b.op(arith.AddfOp, b.args[0], b.args[1]), maps)


def _centre(p: Program, x: SSAValue, lead: Sequence[Size], n: int) -> SSAValue:
    return p.by_row(x, p.reduce(x, combine=arith.MaximumfOp), lambda b: b.op(arith.SubfOp, b.args[0], b.args[1]))


def _row_sum(p: Program, x: SSAValue, lead: Sequence[Size], n: int) -> SSAValue:
    total = p.reduce(x)
    scale = 1 / math.sqrt(n)
    return p.by_row(
        x, total, lambda b: b.op(arith.AddfOp, b.args[0], b.op(arith.MulfOp, b.args[1], b.constant(scale, p.element)))
    )


def _silu(p: Program, x: SSAValue, lead: Sequence[Size], n: int) -> SSAValue:
    return p.elementwise([x], p.empty(*lead, n), lambda b: silu(b, b.args[0]), [identity_map(len(lead) + 1)] * 2)


_STEPS = {
    "softmax": lambda p, x, lead, n: p.softmax(x),
    "norm": lambda p, x, lead, n: row_norm(p, x, n, 0.01),  # so that a row of almost 0 is not blown up
    "silu": _silu,
    "row": _row_sum,
    "column": lambda p, x, lead, n: _plus(p, x, p.x[2], [len(lead)], [*lead, n]),
    "whole": lambda p, x, lead, n: _plus(p, x, p.x[3], list(range(len(lead) + 1)), [*lead, n]),
    "product": lambda p, x, lead, n: product(p, x, p.x[4], lead, n),
    "centre": _centre,
}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(chains(), st.sampled_from([1, 2, 3, 8]), st.booleans())
def test_random_chains(chain: tuple[DispatchView, dict[str, int]], threads: int, at_end: bool):
    view, sizes = chain
    family = BlockedFamily(Policy(threads=threads))
    if isinstance(family.accepts(view, machine()), Refusal):  # everything follows the product, or n is 1
        return
    arrays = arrays_for(view, sizes)
    wanted = evaluate_function(view.entry, [*arrays, *(np.asarray(sizes[name], np.int64) for name in view.size_names)])
    for found, expected in zip(Runner(family, view)(*arrays, sizes=sizes, at_end=at_end), wanted, strict=True):
        assert_close(found, np.asarray(expected), bits=13)
