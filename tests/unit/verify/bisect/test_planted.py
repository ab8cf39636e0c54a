"""Planted faults, each found by what it is called: 5 passes, 5 rules, 5 kernel families, in at most
2 * log2(decisions) + 10 runs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import pytest

from fuseline.frontends.onnx import importer
from fuseline.frontends.onnx.registry import lowering_of
from fuseline.ir.fuel import KINDS
from fuseline.passes.fusion.plan import id_of, parse_plan
from fuseline.report.bisect_result import BisectResult, verdict
from fuseline.verify.bisect.finding import Bisection
from fuseline.verify.bisect.trial import Trials
from tests.unit.verify.bisect.faults import wrong_family, wrong_fold, wrong_merge, wrong_pass
from tests.unit.verify.bisect.questions import DENSE, MORE_CHANNELS, TEXT, question


def _found(fault: AbstractContextManager[Any], text: str = TEXT) -> BisectResult:
    asked = question(text)  # what is right is known before anything is wrong
    with fault:
        found = Bisection(asked).result()
    assert found.runs <= 2 * math.log2(found.decisions) + 10, found
    assert found.shown and verdict(found)
    return found


def _replaced(before: str, after: str) -> Callable[[str], str]:
    return lambda text: text.replace(before, after)


def _without_products(text: str) -> str:
    """Every fused multiplication and addition is a difference."""
    pattern = r"call (?:fast )?(<\d+ x float>) @llvm\.fma\.v\d+f32\(<.*?> (\S+), <.*?> (\S+), <.*?> (\S+)\)"
    return re.sub(pattern, r"fsub \1 \3, \4", text)


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "name",
    [
        "collapse-dims",
        pytest.param("cse", marks=SLOW),
        pytest.param("propagate-transposes", marks=SLOW),
        pytest.param("clone-reads", marks=SLOW),
        pytest.param("generalize-tensor-ops", marks=SLOW),
        pytest.param("unify-equal-sizes", marks=SLOW),
    ],
)
def test_a_wrong_pass(name: str) -> None:
    found = _found(wrong_pass(name, "plus"))
    (culprit,) = found.culprits
    assert culprit.kind in ("pass", "needed-pass") and culprit.what == name
    assert culprit.nodes == ["plus"] and culprit.ops == ["linalg.generic"]


@pytest.mark.parametrize("node", ["scale", pytest.param("plus", marks=SLOW), pytest.param("twice", marks=SLOW)])
def test_a_wrong_rule_that_rewrites(node: str) -> None:
    found = _found(wrong_fold(f"drops_{node}", node))
    (culprit,) = found.culprits
    assert (culprit.kind, culprit.what, culprit.nodes) == ("rewrite", f"drops_{node}", [node])
    assert found.lacking == "rewrite" and found.fuel["rewrite"] > 0


@pytest.mark.parametrize(
    ("first", "second", "rule"),
    [("conv2", "plus", "elementwise-epilogue"), pytest.param("fc", "bias", "elementwise-epilogue", marks=SLOW)],
)
def test_a_wrong_rule_that_fuses(first: str, second: str, rule: str) -> None:
    found = _found(wrong_merge(first, second))
    (culprit,) = found.culprits
    assert (culprit.kind, culprit.what) == ("fusion", rule)
    assert {first, second} <= set(culprit.nodes) and len(culprit.ops) == 2
    assert found.lacking == "fusion"
    assert found.alone == "gone" and "this merge alone: gone" in verdict(found)
    (apart,) = parse_plan(found.plan).forbid
    assert set(apart) == {id_of(op) for op in culprit.ops}


@pytest.mark.parametrize(
    ("family", "change", "text"),
    [
        ("window", _replaced("fcmp ogt", "fcmp olt"), TEXT),
        pytest.param("contraction", _without_products, DENSE, marks=SLOW),
        pytest.param("convolution", _without_products, TEXT, marks=SLOW),
        pytest.param("blocked", _replaced(" fmul <", " fadd <"), TEXT, marks=SLOW),
        pytest.param("winograd", _replaced(" fadd <", " fsub <"), MORE_CHANNELS, marks=SLOW),
    ],
)
def test_a_wrong_kernel(family: str, change: Callable[[str], str], text: str) -> None:
    found = _found(wrong_family(family, change), text)
    assert (found.culprits[0].kind, found.culprits[0].what) == ("kernel", family)
    assert found.culprits[0].nodes and found.culprits[0].ops


@SLOW
def test_a_kernel_that_ends_the_process() -> None:
    stores = "store volatile i8 0, ptr inttoptr (i64 16 to ptr)\n  ret void"
    found = _found(wrong_family("window", _replaced("ret void", stores)))
    assert "SIGSEGV" in found.shown
    assert (found.culprits[0].kind, found.culprits[0].what) == ("kernel", "window")


@pytest.mark.parametrize("text", [TEXT, MORE_CHANNELS, DENSE])
def test_a_program_is_right_without_any_decision_that_could_be_left_out(text: str) -> None:
    asked = question(text)
    trials = Trials(asked.source, asked.options, asked.criterion)
    outcome = trials(dict.fromkeys(KINDS, 0))
    assert outcome.compiled and not outcome.shown and not outcome.decisions
    assert trials(dict.fromkeys(KINDS, 0)) is outcome and trials.runs == 1


def test_a_node_that_is_read_wrongly() -> None:
    """Tanh is lowered as a sigmoid; what is right must be told by another runtime."""
    pytest.importorskip("onnxruntime")
    asked = question(DENSE)

    def wrong(domain: str, op_type: str, version: int) -> Any:
        return lowering_of(domain, "Sigmoid" if op_type == "Tanh" else op_type, version)

    with mock.patch.object(importer, "lowering_of", wrong):
        (culprit,) = Bisection(asked).result().culprits
    assert (culprit.kind, culprit.what, culprit.nodes) == ("frontend", "Tanh", ["bend"])
