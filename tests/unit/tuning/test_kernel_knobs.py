"""Knobs about kernels: classes with choices, equal layers as one, named the same in every process; and compiles that
follow them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.tuning.kernel_knobs import KERNEL, MOST_CHOICES, kernel_knobs
from tests.draws import RNG

from .layers import save_layers


@pytest.fixture(name="model")
def _model(tmp_path: Path) -> Path:
    return save_layers(tmp_path / "layers.onnx")


def _compiled(model: Path, **options: Any) -> fuseline.CompiledModel:
    return fuseline.compile(model, threads=1, cache=False, **options)


def test_layers_that_repeat_are_one_knob_with_their_nodes(model: Path):
    knobs = kernel_knobs(model, {"threads": 1})
    (filtered,) = [knob for knob in knobs if any("winograd" in choice for choice in knob.choices)]
    assert "2 times a run" in filtered.detail
    assert len(filtered.nodes) == 4
    for knob in knobs:
        assert knob.name.startswith(KERNEL) and knob.space == "kernels" and knob.choices[0] == "default"
        assert 1 < len(knob.choices) <= MOST_CHOICES + 1
        assert len(set(knob.choices)) == len(knob.choices)
    assert knobs == kernel_knobs(model, {"threads": 1})


def test_every_choice_compiles_to_a_program_that_computes_the_same_and_says_what_it_follows(model: Path):
    x = RNG.standard_normal((1, 5, 31, 31)).astype(np.float32)
    wanted = _compiled(model, numerics="strict").run({"x": x})["y"]
    for knob in kernel_knobs(model, {"threads": 1}):
        name = knob.name.removeprefix(KERNEL)
        for choice in knob.choices[1:]:
            program = _compiled(model, kernels={name: choice})
            assert {name: choice} in [dispatch.choices for dispatch in program.record.dispatches]
            counts = {"followed": 1, "stale": 0, "refused": 0, "other_machines": 0}
            assert program.record.statistics["kernel_choices"] == counts
            np.testing.assert_allclose(program.run({"x": x})["y"], wanted, atol=2e-3 * np.abs(wanted).max())


def test_what_a_program_does_not_follow_is_said(model: Path):
    (filtered,) = [k for k in kernel_knobs(model, {"threads": 1}) if any("winograd" in c for c in k.choices)]
    name = filtered.name.removeprefix(KERNEL)
    program = _compiled(model, kernels={name: "winograd=8", "contraction.0123456789ab": "tile=2x16"})
    remarks = [remark for remark in program.record.remarks if remark.rule == "tuned"]
    assert {remark.code for remark in remarks} == {"choice-error-bound"}
    assert all(remark.nodes and remark.op and remark.dispatch for remark in remarks)
    assert any("contraction.0123456789ab" in line for line in program.record.warnings)
    assert program.record.statistics["kernel_choices"]["refused"] == 1


def test_nothing_is_said_where_nothing_is_asked(model: Path):
    program = _compiled(model, kernels={"contraction.0123456789ab": "default"})
    assert "kernel_choices" not in program.record.statistics
    assert not program.record.warnings


def test_strict_numerics_offer_no_filtering_and_a_target_without_code_nothing(model: Path):
    strict = kernel_knobs(model, {"threads": 1, "numerics": "strict"})
    assert strict and not any("winograd" in choice for knob in strict for choice in knob.choices)
    assert kernel_knobs(model, {"target": "null"}) == []


@pytest.mark.parametrize("kernels", [{"a.b": "tile=4"}, {"a.b": 3}, {3: "direct"}, [("a.b", "direct")]])
def test_what_is_no_choice_is_refused_by_name(model: Path, kernels: Any):
    with pytest.raises(FuselineError, match="kernels") as caught:
        _compiled(model, kernels=kernels)
    assert caught.value.code == "E0501"


def test_the_cache_tells_choices_apart(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("FUSELINE_NO_CACHE", raising=False)
    (filtered,) = [k for k in kernel_knobs(model, {"threads": 1}) if any("winograd" in c for c in k.choices)]
    name = filtered.name.removeprefix(KERNEL)
    for kernels in ({}, {name: filtered.choices[1]}, {name: filtered.choices[2]}):
        first = fuseline.compile(model, threads=1, kernels=kernels)
        again = fuseline.compile(model, threads=1, kernels=kernels)
        assert (first.from_cache, again.from_cache) == (False, True)
        assert [d.choices for d in again.record.dispatches] == [d.choices for d in first.record.dispatches]
