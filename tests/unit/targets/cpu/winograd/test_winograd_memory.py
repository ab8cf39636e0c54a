"""Transformed filters stay within the memory that a program may take."""

from __future__ import annotations

from math import inf

import pytest

from fuseline.targets.cpu.families.family import Policy, Refusal
from fuseline.targets.cpu.families.winograd.choice import growth
from fuseline.targets.cpu.families.winograd.family import WinogradFamily
from fuseline.targets.cpu.families.winograd.memory import EXTRA_BYTES, filter_growth_limits
from fuseline.targets.cpu.families.winograd.plan import WinogradPlan
from fuseline.targets.cpu.isa import machine
from tests.graphs.program import Program

from .convolutions import Case

ISA = machine("avx2")
CASE = Case((90, 62), (128, 64))
FILTER = 9 * 128 * 64 * 4


def outputs(limit: float) -> int:
    found = WinogradFamily(Policy(filter_growth=limit)).accepts(CASE.view, ISA)
    assert isinstance(found, WinogradPlan), found
    return found.blocking.axes[0].outputs


def test_few_filters_may_grow_as_they_like():
    (limit,) = filter_growth_limits([(CASE.view, 3)], ISA, Policy())
    assert outputs(limit) == outputs(inf) == 6


def test_many_filters_together_take_smaller_tiles():
    """Each launch has a filter of its own: what they take beyond the filters is at most as much again."""
    launches = 3 * EXTRA_BYTES // FILTER
    (limit,) = filter_growth_limits([(CASE.view, launches)], ISA, Policy())
    assert outputs(limit) == 2
    assert (limit - 1) * launches * FILTER <= max(EXTRA_BYTES, launches * FILTER)


def test_the_filter_itself_is_kept_behind_the_transformed_one():
    found = WinogradFamily(Policy()).accepts(CASE.view, ISA)
    assert isinstance(found, WinogradPlan)
    (layout,) = found.constant_layouts.values()
    assert layout.elements == (growth(found.loops, found.blocking) + 1) * FILTER / 4


def test_other_constants_count_as_what_a_program_takes_anyway():
    p = Program((8, 4096), (4096, 8192), constants=[1])
    other = p.dispatch(p.matmul(p.x[0], p.x[1]))
    launches = EXTRA_BYTES // (6 * FILTER)
    several = [(CASE.view, 2 * launches)]
    alone, among = (
        filter_growth_limits(dispatches, ISA, Policy())[0] for dispatches in (several, [*several, (other, 8)])
    )
    assert outputs(alone) < outputs(among)


def test_what_saves_more_per_byte_comes_first():
    """A filter used over a large image against one of equal size used over a small one, wherever they stand."""
    large, small = Case((180, 124), (128, 64)).view, Case((12, 12), (128, 64)).view
    launches = EXTRA_BYTES // (8 * FILTER)
    first = filter_growth_limits([(large, launches), (small, launches)], ISA, Policy())
    assert first[0] > first[1]
    assert filter_growth_limits([(small, launches), (large, launches)], ISA, Policy()) == first[::-1]


@pytest.mark.parametrize("limit", [1.0, 1.7])
def test_filters_that_may_not_grow_are_left_as_they_are(limit: float):
    found = WinogradFamily(Policy(filter_growth=limit)).accepts(CASE.view, ISA)
    assert isinstance(found, Refusal) and found.code == "filter-memory"


def test_no_room_at_all():
    """One step of a filter that is launched very often does not fit; another one, launched once, does."""
    launches = 8 * EXTRA_BYTES // FILTER
    other = Case((12, 12), (256, 256)).view
    found = filter_growth_limits(
        [(CASE.view, launches), (other, 60 * EXTRA_BYTES // (9 * 256 * 256 * 4))], ISA, Policy()
    )
    assert 1.0 in found and max(found) > 1


def test_programs_without_convolutions():
    p = Program((8, 8), (8, 8), constants=[1])
    assert filter_growth_limits([(p.dispatch(p.matmul(p.x[0], p.x[1])), 5)], ISA, Policy()) == [inf]
    assert filter_growth_limits([], ISA, Policy()) == []
    assert filter_growth_limits([(CASE.view, 1)], ISA, Policy("strict")) == [inf]
