"""Regions and their sampler."""

from __future__ import annotations

from fuseline.tuning.attributed import Places
from fuseline.tuning.knob import Knob
from fuseline.tuning.region import MOST_CHANGES, Region, digest_number, regions
from tests.unit.tuning.landscape import GROUPS, KNOBS

PLACES = Places.of(KNOBS, GROUPS)


def test_knobs_that_share_a_dispatch_are_one_region():
    found = [sorted(knob.name for knob in region) for region in regions(KNOBS, PLACES)]
    assert found[0] == ["dedup"]
    assert ["kernel/k", "plan/0", "plan/1"] in found and ["plan/5"] in found and len(found) == 6


def test_proposals_stay_near_and_repeat_with_the_seed():
    knobs = [Knob(f"k{i}", "plan", ("0", "1")) for i in range(20)]
    first, second = Region(knobs), Region(knobs)
    seeds = range(12)
    proposed = [first.proposal({}, seed) for seed in seeds]
    assert proposed == [second.proposal({}, seed) for seed in seeds]
    assert all(len(changes) <= MOST_CHANGES for changes in proposed) and len({str(p) for p in proposed}) > 6


def test_what_was_good_is_proposed_more_often():
    knobs = [Knob(name, "plan", ("0", "1")) for name in ("good", "bad")]
    region = Region(knobs)
    for number in range(12):
        choices = {"good": str(number % 2), "bad": str(number // 2 % 2)}
        region.add(choices, [1.0 - 0.5 * (choices["good"] == "1") + 0.5 * (choices["bad"] == "1")])
    proposed = [region.proposal({}, seed) for seed in range(30)]
    assert sum("good" in changes for changes in proposed) > 2 * sum("bad" in changes for changes in proposed)


def test_numbers_depend_on_nothing_but_the_parts():
    assert digest_number(1, "a") == digest_number(1, "a") != digest_number("a", 1)
