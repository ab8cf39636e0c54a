"""Configurations as arguments of a compile."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuseline.errors import FuselineError
from fuseline.passes.fusion.plan import read_plan
from fuseline.tuning.knob import Knob
from fuseline.tuning.realize import realized
from fuseline.tuning.setting import SearchSetting
from fuseline.tuning.spaces.single import dedup_knob

KNOBS = (
    dedup_knob(),
    Knob("threads", "threads", ("2", "1")),
    Knob("passes/aggressive", "passes", ("no", "yes")),
    Knob("kernel/contraction.0f9a", "kernels", ("default", "tile=6x32")),
    Knob("plan/apart/a+b", "plan", ("join", "apart"), ops=(("a", "b"),)),
)
PLAN = 'version = 1\n\nforce = []\nforbid = []\n\n[[group]]\nops = [\n    "x.a",\n    "x.b",\n]\n'
SETTING = SearchSetting(model="m.onnx", options={"numerics": "fast", "threads": 2}, knobs=KNOBS, plan=PLAN)


def test_defaults_are_what_every_trial_has(tmp_path: Path):
    assert realized(SETTING, {}, tmp_path) == SETTING.options
    assert realized(SETTING, {knob.name: knob.choices[0] for knob in KNOBS}, tmp_path) == SETTING.options
    assert not list(tmp_path.iterdir())


def test_each_choice_is_an_argument(tmp_path: Path):
    found = realized(SETTING, {knob.name: knob.choices[1] for knob in KNOBS}, tmp_path)
    plan = found.pop("plan")
    assert read_plan(Path(plan)).forbid == (("a", "b"),)
    assert found == {
        "numerics": "fast",
        "threads": 1,
        "dedup": "none",
        "fusion": "aggressive",
        "kernels": {"contraction.0f9a": "tile=6x32"},
    }


@pytest.mark.parametrize("configuration", [{"dedup": "all"}, {"colour": "red"}])
def test_what_the_search_does_not_have_is_refused(configuration: dict[str, str], tmp_path: Path):
    with pytest.raises(FuselineError, match="E0501.*cannot be"):
        realized(SETTING, configuration, tmp_path)
