"""The first trials."""

from __future__ import annotations

from fuseline.tuning.attributed import Places
from fuseline.tuning.sweep import sweep
from tests.unit.tuning.landscape import GROUPS, KNOBS

PLACES = Places.of(KNOBS, GROUPS)


def test_every_choice_is_made_once():
    for together in (True, False):
        made = [item for trial in sweep(KNOBS, PLACES, together=together) for item in trial.items()]
        assert sorted(made) == sorted((knob.name, choice) for knob in KNOBS for choice in knob.choices[1:])


def test_the_default_comes_first_then_what_changes_everything_alone():
    found = sweep(KNOBS, PLACES, together=True)
    assert found[:2] == [{}, {"dedup": "none"}]


def test_no_two_of_one_trial_change_the_same_dispatch():
    for trial in sweep(KNOBS, PLACES, together=True):
        names = list(trial)
        assert not any(PLACES.overlap(a, b) for i, a in enumerate(names) for b in names[:i])
    assert len(sweep(KNOBS, PLACES, together=True)) == 5


def test_each_by_itself_where_nothing_tells_them_apart():
    assert all(len(trial) <= 1 for trial in sweep(KNOBS, PLACES, together=False))
