"""Loops and branches of kernel IR: what they give, and what is none."""

from __future__ import annotations

from typing import Any

import pytest

from fuseline.targets.cpu.kernel_ir.control import Control
from fuseline.targets.cpu.kernel_ir.types import I64, Loop, Type, When, While
from tests.unit.targets.cpu.combinators.visits import Visits, visited


@pytest.mark.parametrize(("lo", "hi", "step"), [(0, 5, 1), (2, 11, 3), (0, 1, 1), (3, 4, 8), (5, 5, 1), (6, 2, 1)])
@pytest.mark.parametrize("known", [True, False])
def test_a_loop_counts_as_a_range_does(lo: int, hi: int, step: int, known: bool) -> None:
    def emit(v: Visits) -> None:
        end = hi if known else v.kernel.size(0)
        total = v.kernel.loop(lo, end, step, lambda i, n: (v.note(i), (v.kernel.add(n, i),))[1], (100,))
        v.note(total[0])

    assert visited(emit, [hi]) == [*range(lo, hi, step), 100 + sum(range(lo, hi, step))]


@pytest.mark.parametrize("limit", [0, 1, 7, 100])
def test_a_loop_with_a_condition(limit: int) -> None:
    def emit(v: Visits) -> None:
        k = v.kernel
        end = k.while_(
            lambda i, s: k.compare("lt", s, k.size(0)), lambda i, s: (v.note(i), (k.add(i, 1), k.add(s, i)))[1], (1, 0)
        )
        v.note(*end)

    i, total, seen = 1, 0, list[int]()
    while total < limit:
        seen.append(i)
        i, total = i + 1, total + i
    assert visited(emit, [limit]) == [*seen, i, total]


@pytest.mark.parametrize("size", [3, 4])
@pytest.mark.parametrize("both", [True, False])
def test_a_branch_runs_one_side(size: int, both: bool) -> None:
    def emit(v: Visits) -> None:
        k = v.kernel
        condition = k.compare("lt", k.size(0), 4)
        if both:
            found = k.when(condition, lambda: (v.note(1), (k.size(0), 10))[1], lambda: (v.note(2), (7, 20))[1])
            v.note(*found)
        else:
            assert k.when(condition, lambda: v.note(1)) == ()

    expected = ([1, size, 10] if size < 4 else [2, 7, 20]) if both else [1] * (size < 4)
    assert visited(emit, [size]) == expected


def test_what_is_known_is_no_structure() -> None:
    k = Control()
    one, zero = (k.pure("compare", Type("i1"), (), i) for i in range(2))
    one.op = zero.op = "const"
    one.attr, zero.attr = 1, 0
    assert k.when(one, lambda: (5,), lambda: (6,)) == (5,) and k.when(zero, lambda: (5,), lambda: (6,)) == (6,)
    assert k.when(zero, lambda: (5,)) == ()
    assert k.loop(0, 1, 1, lambda i, x: (x + i + 1,), (4,)) == (5,) and k.loop(3, 3, 1, lambda i, x: (0,), (4,)) == (4,)
    assert k.loop(2, 9, 16, lambda i: (), ()) == ()
    assert not any(isinstance(op, Loop | When | While) for op in k.block.ops)


def test_structures_nest_by_depth() -> None:
    k, depths = Control(), list[Any]()
    n = k.pure("size", I64, (), 0)
    k.loop(
        0,
        n,
        1,
        lambda i: (
            depths.append((k.depth, i.depth)) or k.loop(0, n, 1, lambda j: depths.append((k.depth, j.depth))) or ()
        ),
    )
    assert depths == [(1, 1), (2, 2)] and k.depth == 0
    (outer,) = [op for op in k.block.ops if isinstance(op, Loop)]
    assert any(isinstance(op, Loop) for op in outer.body.ops)


@pytest.mark.parametrize("kind", ["loop", "while", "when"])
def test_what_does_not_fit_is_refused(kind: str) -> None:
    k = Control()
    n, wide = k.pure("size", I64, (), 0), k.pure("load", Type("f32", 8), ())
    condition = k.pure("compare", Type("i1"), (n,), "eq")
    with pytest.raises(TypeError, match=f"{kind} yields"):
        if kind == "loop":
            k.loop(0, n, 1, lambda i, x: (wide,), (n,))
        elif kind == "while":
            k.while_(lambda x: condition, lambda x: (), (n,))
        else:
            k.when(condition, lambda: (n,), lambda: (wide,))
