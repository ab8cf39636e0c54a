"""Placement of transients: no overlap for any size, alignment, in-place pairs."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.passes.schedule.plan_transients import ArenaPlan, Transient, plan_transients

N, M = d.symbol("n"), d.symbol("m")
BOUNDED = d.symbol("b", 1, 40)

SIZES = st.one_of(
    st.integers(0, 5000),
    st.sampled_from(
        [
            d.mul(N, 4),
            d.mul(N, 96),
            d.mul(d.mul(N, M), 4),
            d.mul(d.mul(N, N), 12),
            d.add(d.mul(N, 4), 8),
            d.mul(BOUNDED, 36),
        ]
    ),
    st.sampled_from(
        [d.mul(d.floor_div(d.add(N, 1), 2), 20), d.maximum(d.mul(N, 4), d.mul(M, 8)), d.add(d.mul(N, 6), d.mul(M, 10))]
    ),
)
LIVES = st.tuples(st.integers(0, 8), st.integers(0, 4))
TRANSIENTS = st.lists(
    st.builds(lambda size, life: Transient(size, life[0], life[0] + life[1]), SIZES, LIVES), max_size=14
)


def _check(plan: ArenaPlan, transients: list[Transient], values: dict[str, int]) -> None:
    def at(size: Dim) -> int:
        return d.evaluate(size, values)

    spans = [(at(offset), at(offset) + at(t.bytes)) for offset, t in zip(plan.offsets, transients, strict=True)]
    for start, stop in spans:
        assert start % 64 == 0 and 0 <= start and stop <= at(plan.bytes)
    for (a, first), (b, second) in combinations(zip(spans, transients, strict=True), 2):
        assert first.last < second.first or second.last < first.first or a[1] <= b[0] or b[1] <= a[0]


@given(TRANSIENTS, st.integers(1, 300), st.integers(1, 300), st.integers(1, 40))
def test_live_buffers_never_overlap(transients: list[Transient], n: int, m: int, b: int) -> None:
    _check(plan_transients(transients), transients, {"n": n, "m": m, "b": b})


def test_static_sizes_give_a_static_plan() -> None:
    plan = plan_transients([Transient(100, 0, 1), Transient(d.mul(BOUNDED, 8), 1, 2)])
    assert plan.bytes == plan.bytes_at(-1) == 128 + 320 and all(isinstance(offset, int) for offset in plan.offsets)


def test_a_gap_is_filled_by_the_tightest_fit() -> None:
    wide, narrow = Transient(640, 0, 9), Transient(64, 0, 9)
    holes = [Transient(256, 0, 1), narrow, Transient(128, 0, 1), wide]
    plan = plan_transients([*holes, Transient(128, 2, 3), Transient(256, 2, 3)])
    assert plan.bytes == 640 + 64 + 256 + 128


def test_kinds_of_sizes_lie_in_regions_of_their_own() -> None:
    transients = [
        Transient(d.mul(N, 64), 0, 1),
        Transient(d.mul(N, 128), 2, 3),
        Transient(d.mul(d.mul(N, N), 4), 0, 3),
        Transient(64, 0, 0),
    ]
    plan = plan_transients(transients)
    assert d.evaluate(plan.bytes, {"n": 10}) == 64 + 1280 + 448


def test_regions_known_later_lie_behind() -> None:
    transients = [
        Transient(d.mul(M, 64), 2, 3),
        Transient(d.mul(N, 64), 0, 1),
        Transient(64, 0, 3),
        Transient(d.mul(d.mul(M, N), 64), 2, 3),
    ]
    plan = plan_transients(transients, known_at={"m": 1})
    assert [d.symbols(offset) for offset in plan.offsets[1:3]] == [set(), set()]
    early, late = plan.bytes_at(-1), plan.bytes_at(1)
    assert d.evaluate(early, {"n": 5}) == 64 + 320 and plan.bytes_at(0) == early and late == plan.bytes
    assert d.evaluate(late, {"n": 5, "m": 3}) == 64 + 320 + 192 + 960


def test_in_place_pairs_share_memory() -> None:
    transients = [Transient(128, 0, 1), Transient(128, 1, 2), Transient(128, 2, 3)]
    plan = plan_transients(transients, [(1, 0), (2, 1)])
    assert plan.offsets == (0, 0, 0) and plan.bytes == 128


def test_in_place_is_refused_where_it_would_be_wrong() -> None:
    lives_on = [Transient(128, 0, 2), Transient(128, 1, 2)]
    smaller = [Transient(64, 0, 1), Transient(128, 1, 2)]
    taken_twice = [Transient(64, 0, 1), Transient(64, 1, 2), Transient(64, 1, 2)]
    for transients, pairs in ((lives_on, [(1, 0)]), (smaller, [(1, 0)]), (taken_twice, [(1, 0), (2, 0)])):
        plan = plan_transients(transients, pairs)
        assert len(set(plan.offsets)) >= 2


def test_nothing_to_place() -> None:
    assert plan_transients([]) == ArenaPlan((), 0)
