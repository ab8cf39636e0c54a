"""The space of a model."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from fuseline.errors import FuselineError
from fuseline.tuning.knob import SPACES
from fuseline.tuning.space import has_code, search_space
from tests.small_models import attention


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("space") / "attention.onnx"
    onnx.save(attention(), path)
    return path


def test_a_space_starts_from_the_default_compile(model: Path):
    space = search_space(model, {"target": "null"}, seed=3)
    assert space.setting.plan == space.default.plan and space.setting.seed == 3
    assert {knob.space for knob in space.setting.knobs} >= {"plan", "passes"}
    assert not has_code(space.default)
    assert all(len(knob.choices) > 1 for knob in space.setting.knobs)


def test_the_same_model_has_the_same_knobs(model: Path):
    first, second = (search_space(model, {"target": "null"}).setting for _ in range(2))
    assert first == second


@pytest.mark.parametrize("space", SPACES)
def test_one_space_has_only_its_knobs(model: Path, space: str):
    assert {knob.space for knob in search_space(model, {"target": "null"}, [space]).setting.knobs} <= {space}


def test_what_the_user_gives_is_not_searched(model: Path):
    given = {"target": "null", "dedup": "none", "threads": 4, "fusion": "default"}
    assert not [k for k in search_space(model, given).setting.knobs if k.space in ("dedup", "threads", "passes")]


def test_a_pass_without_effect_is_no_knob(model: Path):
    names = {knob.name for knob in search_space(model, {"target": "null"}, ["passes"]).setting.knobs}
    assert "passes/without-pass/fuse-row-bands" not in names and names


@pytest.mark.parametrize("spaces", [["plan", "order"], []])
def test_an_unknown_space_is_refused(model: Path, spaces: list[str]):
    with pytest.raises(FuselineError, match="E0501"):
        search_space(model, {"target": "null"}, spaces)
