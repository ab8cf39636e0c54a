"""Random graphs agree with onnxruntime and the interpreter. `make fuzz` runs more of them; test_found.py has what they
showed."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import fuseline
from tests.fuzz.campaign import Campaign, State
from tests.fuzz.case import Case
from tests.fuzz.check import check
from tests.fuzz.generate import make_case
from tests.fuzz.isolate import run_isolated
from tests.fuzz.recipes import RECIPES
from tests.fuzz.shrink import shrink
from tests.graphs.onnx_text import onnx_model

GRAPHS, PARTS, FEW = 300, 6, 8


@pytest.mark.parametrize("part", range(PARTS))
def test_random_graphs(part: int):
    """Each under the levels of fusion and numerics that its seed draws."""
    each = GRAPHS // PARTS
    _require_right(Campaign(None, lambda _: None, shrinks=False).run(part * each, each), each)


@pytest.mark.parametrize("count", [FEW, pytest.param(GRAPHS, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])])
def test_random_graphs_under_every_combination(count: int):
    state = Campaign(None, lambda _: None, fully=True, shrinks=False).run(GRAPHS, count)
    _require_right(state, count)
    assert len(state.combinations) == 9 and min(state.combinations.values()) >= 0.9 * count


def _require_right(state: State, count: int) -> None:
    assert not state.severe, [
        (finding["seed"], finding["kind"], finding["detail"]) for finding in state.findings if finding["severe"]
    ]
    assert state.outcomes["right"] >= 0.9 * count, state.outcomes


def test_at_least_80_operators_are_drawn():
    assert len({entry.op_type for entry in RECIPES}) >= 150
    assert len({name for seed in range(60) for name in make_case(seed).op_types()}) >= 80


def _model() -> Case:
    """Three nodes, two outputs."""
    nodes = "e = Exp(x)  y = Neg(e)  z = Abs(x)"
    model = onnx_model(f"(float[3] x) => (float[3] y, float[3] z) {{ {nodes} }}", opset=17)
    return Case(model, [{"x": np.array([0.5, -1, 2], np.float32)}])


def test_a_wrong_number_is_found(monkeypatch: pytest.MonkeyPatch):
    case, run = _model(), fuseline.CompiledModel.run
    assert check(case) is None

    def slightly_wrong(self: fuseline.CompiledModel, feeds: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value * np.float32(1.001) for name, value in run(self, feeds).items()}

    monkeypatch.setattr(fuseline.CompiledModel, "run", slightly_wrong)
    finding = check(case)
    assert finding is not None and finding.kind == "wrong" and finding.severe


def test_what_dies_or_hangs_is_found():
    def work(item: str, stage: object) -> str:
        if item == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60 if item == "hang" else 0)
        return item

    answers = list(run_isolated(["one", "die", "hang", "two"], work, seconds=2))
    assert [(answer.value, answer.failure) for answer in answers] == [
        ("one", ""),
        (None, "crash"),
        (None, "hang"),
        ("two", ""),
    ]


def test_shrinking_keeps_what_matters():
    case = _model()
    small = shrink(case, lambda smaller: "Neg" in smaller.op_types())
    assert small.op_types() == ["Neg"] and [output.name for output in small.model.graph.output] == ["y"]
