"""The plan of a configuration."""

from __future__ import annotations

from pathlib import Path

import fuseline
from fuseline.passes.fusion.plan import parse_plan
from fuseline.pipeline import pipeline_version
from fuseline.tuning.configured_plan import configured_plan
from fuseline.tuning.knob import Knob
from fuseline.tuning.setting import SearchSetting
from fuseline.tuning.spaces.passes import pipeline_without
from tests.small_models import convolutions

PLAN = """\
# a plan
version = 1
pipeline = "0badcafe"

force = []
forbid = []

[[group]]
ops = [
    "contraction.a",  # MatMul [[group]]
    "elementwise.b",
]

[[group]]
ops = [
    "contraction.c",
]
"""
JOIN = Knob("plan/join/b+c", "plan", ("apart", "join"), ops=(("b", "c"),))
APART = Knob("plan/apart/a+b", "plan", ("join", "apart"), ops=(("a", "b"),))
WITHOUT = Knob("passes/without-pass/sink-concats", "passes", ("no", "yes"))
SETTING = SearchSetting(model="m.onnx", options={}, knobs=(JOIN, APART, WITHOUT), plan=PLAN)


def test_no_choice_about_groups_needs_no_plan():
    assert configured_plan(SETTING, {}) == ""
    assert configured_plan(SETTING, {WITHOUT.name: "yes", JOIN.name: "apart"}) == ""


def test_what_is_joined_is_forced_and_groups_stay():
    plan = parse_plan(configured_plan(SETTING, {JOIN.name: "join"}))
    assert plan.force == (("b", "c"),) and plan.groups == (("a", "b"), ("c",)) and plan.pipeline == "0badcafe"


def test_a_group_that_is_broken_is_not_listed():
    plan = parse_plan(configured_plan(SETTING, {APART.name: "apart"}))
    assert plan.forbid == (("a", "b"),) and plan.groups == (("c",),)


def test_another_pipeline_has_only_the_choices():
    chosen = {JOIN.name: "join", WITHOUT.name: "yes"}
    plan = parse_plan(configured_plan(SETTING, chosen))
    assert plan.groups == () and plan.force == (("a", "b", "c"),)
    assert plan.pipeline == pipeline_version(pipeline_without(["sink-concats"]), {})


def test_a_broken_group_is_followed_by_a_compile(tmp_path: Path):
    default = fuseline.compile(convolutions(), target="null")
    (names,) = default.record.groups
    knobs = (Knob("k", "plan", ("join", "apart"), ops=((names[1], names[-1]),)),)
    setting = SearchSetting(model="m", options={}, knobs=knobs, plan=default.plan)
    (tmp_path / "p").write_text(configured_plan(setting, {"k": "apart"}))
    groups = fuseline.compile(convolutions(), target="null", plan=tmp_path / "p").record.groups
    assert len(groups) > 1 and sorted(name for group in groups for name in group) == sorted(names)
    assert not any({names[1], names[-1]} <= set(group) for group in groups)
