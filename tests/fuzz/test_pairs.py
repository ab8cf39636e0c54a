"""Pairs of operators: a number always stands for the same one, every pair has a number, and a sample of them is right.
`make fuzz PAIRS=1` runs them all."""

from __future__ import annotations

from tests.fuzz.campaign import finding_of
from tests.fuzz.cases import PAIRS, case_of
from tests.fuzz.isolate import run_isolated
from tests.fuzz.pairs import make_pair, pair_count
from tests.fuzz.recipes import RECIPES
from tests.fuzz.work import work_seed

STEP = 797
"""Shares no factor with the count of pairs: every first and every second operator comes by."""


def test_a_number_stands_for_one_case():
    for number in range(0, pair_count(), 50 * STEP):
        first, again = make_pair(number), case_of(PAIRS + number)
        assert first.model.SerializeToString(deterministic=True) == again.model.SerializeToString(deterministic=True)
        assert first.choices == again.choices and first.choices.fusion != "none"


def test_most_pairs_hold_both_operators():
    found = 0
    numbers = range(0, pair_count(), STEP)
    for number in numbers:
        first, second = (RECIPES[index].op_type for index in divmod(number, len(RECIPES)))
        found += {first, second} <= set(make_pair(number).op_types())
    assert found >= 0.75 * len(numbers)


def test_a_sample_is_right():
    seeds = [PAIRS + number for number in range(0, pair_count(), STEP)]
    findings = [(answer.item, finding_of(answer)[0]) for answer in run_isolated(seeds, work_seed, batch=len(seeds))]
    severe = [(seed, finding.detail) for seed, finding in findings if finding is not None and finding.severe]
    assert not severe, severe
