"""What the mutation tool draws and counts; mutmut itself runs in `make mutants` only."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).parents[3] / "tools" / "mutants.py"


@pytest.fixture
def mutants() -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants_tool", TOOL)
    assert spec is not None and spec.loader is not None
    module = sys.modules["mutants_tool"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_results_of_all_files_are_gathered(mutants: ModuleType, tmp_path: Path):
    for name, codes in {"a": {"p.a.x_f__mutmut_1": 1, "p.a.x_f__mutmut_2": None}, "deep/b": {"p.b.x_g__mutmut_1": 0}}.items():
        path = tmp_path / f"{name}.py.meta"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"exit_code_by_key": codes}))
    assert mutants.results(tmp_path) == {"p.a.x_f__mutmut_1": 1, "p.a.x_f__mutmut_2": None, "p.b.x_g__mutmut_1": 0}


def test_a_sample_is_of_the_modules_asked_for_and_the_same_again(mutants: ModuleType):
    names = [f"fuseline.{part}.x_f__mutmut_{i}" for part in ("passes.a", "passes.b", "analysis.c") for i in range(20)]
    drawn = mutants.sample(names, ["fuseline.passes.*"], 10, 3)
    assert len(set(drawn)) == 10 and all(name.startswith("fuseline.passes.") for name in drawn)
    assert drawn == mutants.sample(names[::-1], ["fuseline.passes.*"], 10, 3) != mutants.sample(names, ["fuseline.passes.*"], 10, 4)
    assert len(mutants.sample(names, ["fuseline.analysis.c"], 99, 0)) == 20


def test_unnoticed_and_unreached_mutants_survive(mutants: ModuleType):
    assert mutants.survivors({"killed": 1, "unnoticed": 0, "unreached": 33, "timeout": 36, "signal": -11}) == ["unnoticed", "unreached"]
