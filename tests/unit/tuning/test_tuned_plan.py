"""Plans that a search writes."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import fuseline
from fuseline.passes.fusion.plan import parse_plan
from fuseline.tuning.realize import realized
from fuseline.tuning.space import Space, search_space
from fuseline.tuning.tuned_plan import changes_of, tuned_plan
from tests.small_models import attention


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Space:
    path = tmp_path_factory.mktemp("tuned") / "attention.onnx"
    onnx.save(attention(), path)
    return search_space(path, {"target": "null", "threads": None})


def test_every_choice_is_reproduced(space: Space, tmp_path: Path):
    """Each knob of the space by itself: the program of the plan is that of the trial."""
    for knob in space.setting.knobs:
        configuration = {knob.name: knob.choices[1]}
        trial = _groups(space, realized(space.setting, configuration, tmp_path))
        (tmp_path / "t.plan").write_text(tuned_plan(space.setting, configuration, [], {}))
        assert _groups(space, {**space.setting.options, "plan": tmp_path / "t.plan"}) == trial, knob


def _groups(space: Space, arguments: dict[str, object]) -> object:
    try:
        record = fuseline.compile(space.setting.model, **arguments).record  # pyright: ignore[reportArgumentType]
    except fuseline.FuselineError as error:
        return error.code
    stale = [line for line in record.warnings if "made for" in line or "skipped" in line]
    return record.groups, record.fusion, record.dedup, record.pipeline, stale


def test_no_choice_is_the_default_partition(space: Space):
    plan = parse_plan(tuned_plan(space.setting, {}, [], {"confirmed": False}))
    assert plan.tuned is not None and plan.tuned.options == {} and plan.tuned.measured == {"confirmed": False}
    assert plan.groups == parse_plan(space.setting.plan).groups


def test_changes_say_what_they_gained(space: Space):
    first, second = space.setting.knobs[:2]
    configuration = {first.name: first.choices[1], second.name: second.choices[1]}
    found = changes_of(space.setting.knobs, configuration, {(second.name, second.choices[1]): 0.25}, 2.0)
    assert [(change.knob, change.gain, change.seconds) for change in found] == [
        (second.name, 0.25, 0.5),
        (first.name, 0.0, 0.0),
    ]
    read = parse_plan(tuned_plan(space.setting, configuration, found, {})).tuned
    assert read is not None and [change.knob for change in read.change] == [second.name, first.name]
    assert read.change[0].detail == second.detail


def test_a_search_may_start_from_a_plan(space: Space, tmp_path: Path):
    """What the first plan asks stays, in trials and in the plan that comes of them."""
    first = next(knob for knob in space.setting.knobs if knob.space == "plan")
    (tmp_path / "a.plan").write_text(tuned_plan(space.setting, {first.name: first.choices[1]}, [], {}))
    (tmp_path / "a.plan").write_text((tmp_path / "a.plan").read_text().replace("[tuned]", '[tuned]\ndedup = "none"'))
    again = search_space(space.setting.model, {"target": "null", "plan": str(tmp_path / "a.plan")})
    assert not [knob for knob in again.setting.knobs if knob.space in ("passes", "dedup")]
    knob = next(knob for knob in again.setting.knobs if knob.space == "plan")
    trial = fuseline.compile(
        space.setting.model, **realized(again.setting, {knob.name: knob.choices[1]}, tmp_path)
    ).record
    (tmp_path / "b.plan").write_text(tuned_plan(again.setting, {knob.name: knob.choices[1]}, [], {}))
    record = fuseline.compile(space.setting.model, target="null", plan=tmp_path / "b.plan").record
    assert record.groups == trial.groups and record.dedup == trial.dedup == "none"
    asked, kept = (parse_plan((tmp_path / name).read_text()) for name in ("a.plan", "b.plan"))
    assert set(asked.force) <= set(kept.force) and set(asked.forbid) <= set(kept.forbid)
