"""Faults planted into one of two plans, each found as the decision that the plans do not share, in at most
2 * log2(decisions) + 10 runs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnx
import pytest

from fuseline.compilation import emit
from fuseline.errors import FuselineError
from fuseline.passes.fusion.plan import parse_plan
from fuseline.report.bisect_result import BisectResult, verdict
from fuseline.report.records import decode
from fuseline.runtime.artifact import Artifact
from fuseline.verify.bisect import trial
from fuseline.verify.bisect.criterion import Anything
from fuseline.verify.bisect.finding import Question
from fuseline.verify.bisect.plan_finding import PlanBisection
from fuseline.verify.bisect.plan_sides import plan_sides
from tests.graphs.onnx_text import onnx_model
from tests.unit.verify.bisect.faults import wrong_apart, wrong_family, wrong_merge
from tests.unit.verify.bisect.questions import TEXT, question


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """`whole`: as a compile fuses, `none`: each op alone."""
    folder = tmp_path_factory.mktemp("plans")
    asked = question(TEXT)
    for name, level in (("whole", "default"), ("none", "none")):
        options = replace(asked.options, fusion=level, emit="plan")
        emit(asked.source, options, folder / f"{name}.plan")
    return {name: folder / f"{name}.plan" for name in ("whole", "none")}


def _bisection(before: Path, after: Path, asked: Question, **more: Any) -> PlanBisection:
    options = replace(asked.options, plan=after)
    sides = plan_sides(asked.source, replace(options, plan=before), options)
    return PlanBisection(replace(asked, options=options), *sides, **more)


def _found(fault: AbstractContextManager[Any], before: Path, after: Path) -> BisectResult:
    asked = question(TEXT)
    with fault:
        found = _bisection(before, after, asked).result()
    assert found.runs <= 2 * math.log2(found.decisions) + 10, found
    assert found.plans == [str(before), str(after)] and str(after) in verdict(found)
    return found


def test_a_wrong_merge_is_the_join_that_makes_it(plans: dict[str, Path]) -> None:
    found = _found(wrong_merge("fc", "scale"), plans["none"], plans["whole"])
    (culprit,) = found.culprits
    assert culprit.kind == "join" and {"fc", "bias", "scale"} <= set(culprit.nodes) and "conv" not in culprit.nodes
    assert "by " in culprit.detail and "joining" in verdict(found)
    assert found.alone == "gone"
    kept = parse_plan(found.plan)
    assert len(kept.groups) > len(parse_plan(plans["whole"].read_text()).groups)
    assert {len(ids) for ids in kept.groups} > {1}  # other groups stay as they are


def test_ops_that_are_wrong_apart_are_the_split_that_parts_them(plans: dict[str, Path]) -> None:
    found = _found(wrong_apart("plus", "twice"), plans["whole"], plans["none"])
    (culprit,) = found.culprits
    assert culprit.kind == "split" and {"plus", "twice"} <= set(culprit.nodes) and "fc" not in culprit.nodes
    assert found.alone == "gone" and "splitting" in verdict(found)


def test_the_kernel_of_what_a_join_made_is_named_beside_it(plans: dict[str, Path]) -> None:
    """The row of the softmax is one dispatch of family `blocked` where it is joined, and of no such family before."""
    fault = wrong_family("blocked", lambda text: text.replace(" fmul ", " fadd "))
    found = _found(fault, plans["none"], plans["whole"])
    family, join = found.culprits
    assert (family.kind, family.what, join.kind) == ("family", "blocked", "join")
    assert set(family.nodes) <= set(join.nodes) | {"fc", "bias", "bend", "scale", "soft"}
    assert "the kernel of family blocked, where a plain loop nest is right," in verdict(found)


def test_one_join_of_several_groups_that_differ(plans: dict[str, Path], tmp_path: Path) -> None:
    """Of plans that part different ops, the fault is behind one of several decisions."""
    whole = plans["whole"].read_text()
    groups = parse_plan(whole).groups
    apart = [list(ids[-2:]) for ids in (groups[0], groups[1], groups[3])]
    head = whole.replace("forbid = []", f"forbid = {json.dumps(apart)}").partition("\n[[group]]")[0]
    before = tmp_path / "before.plan"
    before.write_text(f"{head}\n")  # what it does not list is fused as ever
    found = _found(wrong_merge("conv2", "twice"), before, plans["whole"])
    (culprit,) = found.culprits
    assert culprit.kind == "join" and set(culprit.nodes) == {"conv2", "plus", "twice"}
    assert found.decisions >= 3 and found.alone == "gone"


def test_a_choice_beside_groups_is_a_decision(plans: dict[str, Path]) -> None:
    whole = plans["whole"].read_text()
    tuned = plans["whole"].with_name("tuned.plan")
    tuned.write_text(f'{whole}\n[tuned]\ndedup = "none"\n')
    asked = question(TEXT)
    options = replace(asked.options, plan=tuned, dedup="none")
    sides = plan_sides(asked.source, replace(asked.options, plan=plans["whole"]), options)
    shown: Any = _Shows(lambda artifact: "no sharing" if decode(artifact.records).dedup == "none" else "")
    found = PlanBisection(replace(asked, options=options, criterion=shown), *sides).result()
    (culprit,) = found.culprits
    assert (culprit.kind, culprit.what) == ("choice", "dedup: constants -> none") and found.alone == "gone"
    assert "[tuned]" not in found.plan


class _Shows:
    """A criterion by a function of an artifact."""

    def __init__(self, shows: Callable[[Artifact], str]) -> None:
        self.shows = shows


@pytest.mark.parametrize(
    ("shows", "words"),
    [
        (lambda count: "", "--metric time"),
        (lambda count: "wrong", "leave --from-plan out"),
        (lambda count: "wrong" if count > 10 else "", "the other way round"),
    ],
)
def test_nothing_to_look_for(shows: Callable[[int], str], words: str, plans: dict[str, Path]) -> None:
    asked: Any = replace(question(TEXT), criterion=_Shows(lambda one: shows(len(decode(one.records).dispatches))))
    with pytest.raises(FuselineError, match="E0614") as raised:
        _bisection(plans["none"], plans["whole"], asked).result()
    assert words in str(raised.value)


def test_equal_plans_have_no_decision_between_them(plans: dict[str, Path]) -> None:
    with pytest.raises(FuselineError, match="decide the same about all 4 groups") as raised:
        _bisection(plans["whole"], plans["whole"], question(TEXT))
    assert raised.value.code == "E0614"


def test_a_plan_of_another_model(plans: dict[str, Path], tmp_path: Path) -> None:
    other = onnx_model("(float[3, 5] x) => (y) { a = Tanh(x) y = Softmax(a) }")
    path = tmp_path / "other.onnx"
    onnx.save(other, path)
    plan = tmp_path / "other.plan"
    emit(path, replace(question(TEXT).options, emit="plan"), plan)
    for before, after in ((plan, plans["whole"]), (plans["whole"], plan)):
        with pytest.raises(FuselineError) as raised:
            _bisection(before, after, question(TEXT))
        assert raised.value.code == "E0702"


def test_a_compile_that_fails_with_one_of_them(plans: dict[str, Path]) -> None:
    """What the program of the second plan fails with is what is looked for, and no other failure."""

    asked: Any = replace(question(TEXT), criterion=_Shows(lambda one: ""))
    bisection = _bisection(plans["none"], plans["whole"], asked)
    plain = trial.compile_program

    def compiled(source: Any, options: Any) -> Artifact:
        artifact = plain(source, options)
        if _together(artifact, "conv2", "plus"):
            raise FuselineError("E0901", "planted")
        return artifact

    with mock.patch.object(trial, "compile_program", compiled):
        found = bisection.result()
    assert "E0901" in found.shown and found.culprits[-1].kind == "join"
    assert found.alone == "gone" and "conv2" in found.culprits[-1].nodes


def test_programs_that_cannot_be_built_are_passed_over(plans: dict[str, Path]) -> None:
    """Two decisions are only there together: what is told is that it is one of those between the last program that is
    right and the first that is wrong."""
    plain = trial.compile_program

    def compiled(source: Any, options: Any) -> Artifact:
        artifact = plain(source, options)
        if _together(artifact, "conv", "relu") != _together(artifact, "conv2", "plus"):
            raise FuselineError("E0703", "planted")
        return artifact

    with mock.patch.object(trial, "compile_program", compiled):
        found = _found(wrong_merge("conv2", "plus"), plans["none"], plans["whole"])
    assert {culprit.kind for culprit in found.culprits} == {"join"} and len(found.culprits) in (2, 3)
    assert {"conv", "relu", "conv2", "plus"} <= {node for culprit in found.culprits for node in culprit.nodes}
    assert found.alone == "gone" and "joining" in verdict(found)


def _clock(seconds: Callable[[Artifact], float]) -> Callable[[Sequence[Artifact]], list[np.ndarray]]:
    return lambda artifacts: [np.full(9, seconds(artifact)) for artifact in artifacts]


def _together(artifact: Artifact, *nodes: str) -> bool:
    named = ({name for member in one.members for name in member.nodes} for one in decode(artifact.records).dispatches)
    return any(names.issuperset(nodes) for names in named)


def test_a_slow_join_among_others_that_save(plans: dict[str, Path]) -> None:
    def seconds(artifact: Artifact) -> float:
        return len(decode(artifact.records).dispatches) + 9.0 * _together(artifact, "conv2", "plus")

    asked = replace(question(TEXT), criterion=Anything())
    found = _bisection(plans["none"], plans["whole"], asked, keeps=True).slow_result(_clock(seconds))
    (culprit,) = found.culprits
    assert culprit.kind == "join" and {"conv2", "plus"} <= set(culprit.nodes) and "fc" not in culprit.nodes
    assert found.alone == "gone" and found.runs <= 2 * math.log2(found.decisions) + 10
    with pytest.raises(FuselineError, match="E0614"):
        _bisection(plans["none"], plans["whole"], asked, keeps=True).slow_result(_clock(lambda artifact: 1.0))
