"""Rules of users decide what runs together, never what comes out: with rules that find everything legal, answer by
chance or forbid, outputs are those of the interpreter, or the compile is refused with a code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fuseline
from fuseline.errors import FuselineError
from tests.properties.random_models import RandomModel
from tests.small_models import SMALL_MODELS

RULE = '''
import random
from fuseline.passes.fusion.decision import Forbid, Legal, NotApplicable, WhyNot
from fuseline.passes.fusion.rule import FusionRule, Shape

class Mine(FusionRule):
    """Says {answer}."""

    name = "mine"
    shape = Shape.{shape}
    chance = random.Random(3)

    def matches(self, merge, graph):
        return {answer}

EXPORT = Mine
'''

ANSWERS = ("Legal()", "self.chance.choice([Legal(), Legal(), WhyNot('no-rule', 'by chance'), NotApplicable()])")
FORBIDS = "self.chance.choice([Legal(), Forbid('mine', 'by chance')])"


@pytest.fixture(
    scope="module",
    params=[*[(shape, answer) for shape in ("SHARED", "INLINE_PRODUCER") for answer in ANSWERS], ("SHARED", FORBIDS)],
    ids=lambda p: f"{p[0]}-{'Forbid' if 'Forbid' in p[1] else p[1][:5]}",
)
def rules(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    shape, answer = request.param
    path = tmp_path_factory.mktemp("rules") / "mine.py"
    path.write_text(RULE.format(shape=shape, answer=answer))
    return path


def _feeds(program: fuseline.CompiledModel, seed: int) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    sizes = {item.name: [size if isinstance(size, int) else 5 for size in item.shape] for item in program.inputs}
    return {
        item.name: rng.integers(0, 40, sizes[item.name]).astype(item.dtype)
        if item.dtype.kind == "i"
        else rng.standard_normal(sizes[item.name]).astype(item.dtype)
        for item in program.inputs
    }


def _check(model: onnx.ModelProto, rules: Path, seed: int) -> None:
    reference = fuseline.compile(model, target="interpreter", fusion="none")
    feeds = _feeds(reference, seed)
    try:
        program = fuseline.compile(model, threads=2, rules=[rules])
    except FuselineError as refusal:
        assert refusal.code != "E0901", refusal
        return
    program.run(_feeds(reference, seed + 1))
    expected, got = reference.run(feeds), program.run(feeds)
    for name, values in expected.items():
        np.testing.assert_allclose(
            got[name], values, rtol=0, atol=1e-4 * max(float(np.abs(values).max(initial=0)), 1e-30), err_msg=name
        )


@pytest.mark.parametrize("name", SMALL_MODELS)
def test_small_models(name: str, rules: Path):
    _check(SMALL_MODELS[name](), rules, 7)


numbers = st.integers(0, 40)


@given(program=st.lists(st.tuples(numbers, numbers, numbers), min_size=3, max_size=14), seed=st.integers(0, 1 << 16))
@settings(max_examples=4)
def test_generated_models(program: list[tuple[int, int, int]], seed: int, rules: Path):
    _check(RandomModel(seed).build(program), rules, seed)
