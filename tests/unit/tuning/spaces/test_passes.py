"""Variants of the pipeline: each computes what the default does."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.passes.fusion.rule_choice import known_names
from fuseline.pipeline import PASS_PHASES
from fuseline.report.records import CompileRecord, Decision, Verdict
from fuseline.tuning.spaces.passes import LEVEL, ON, PASSES, RULES, pass_arguments, pass_knobs, pipeline_without
from fuseline.verify.inputs import generate
from tests.small_models import attention, convolutions

VARIANTS = [
    LEVEL,
    *(f"passes/without-rule/{name}" for name in RULES),
    *(f"passes/without-pass/{name}" for name in PASSES),
]


def test_the_tables_name_rules_and_passes_that_there_are():
    assert set(RULES) <= set(known_names([]))
    assert set(PASSES) <= {name for names in PASS_PHASES.values() for name in names}


def test_only_rules_that_did_something_may_be_left_out():
    verdicts: list[tuple[str, Verdict]] = [("root-chain", "fused"), ("row-chain", "missed")]
    fused, missed = (
        Decision(rule=rule, verdict=verdict, producer="a", consumer="b", producer_op="", consumer_op="")
        for rule, verdict in verdicts
    )
    names = [knob.name for knob in pass_knobs(CompileRecord(decisions=[fused, missed]))]
    assert "passes/without-rule/root-chain" in names and "passes/without-rule/row-chain" not in names


def test_rules_of_the_user_stay_left_out():
    found = pass_arguments({"passes/without-rule/row-chain": ON}, {"without_rules": ["small"]})
    assert found == {"without_rules": ["small", "row-chain"]}


def test_a_choice_that_is_off_asks_for_nothing():
    assert pass_arguments({LEVEL: "no", "dedup": "none"}, {}) == {}


def test_the_whole_pipeline_as_text_gives_the_default_partition():
    default = fuseline.compile(convolutions(), target="null").record
    again = fuseline.compile(convolutions(), target="null", passes=pipeline_without([])).record
    assert again.groups == default.groups and again.fingerprint == default.fingerprint


@pytest.mark.parametrize("model", [convolutions, attention])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_computes_the_same(variant: str, model: Callable[[], onnx.ModelProto]):
    feeds, expected = _expected(model)
    program = fuseline.compile(model(), target="interpreter", **pass_arguments({variant: ON}, {}))
    for name, found in program.run(feeds).items():
        np.testing.assert_allclose(found, expected[name], rtol=2e-4, atol=2e-5)


@cache
def _expected(model: Callable[[], onnx.ModelProto]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Random feeds, and the outputs of the default compile, which differ from one another."""
    oracle = fuseline.compile(model(), target="interpreter")
    feeds = generate(oracle.inputs, seed=3)
    outputs = oracle.run(feeds)
    assert all(np.ptp(array) > 0 for array in outputs.values())
    return feeds, outputs
