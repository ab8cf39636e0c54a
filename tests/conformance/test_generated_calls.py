"""Generated calls of every operator: with all inputs in the model, so that they fold, and compiled; right, or refused
with a code.

What onnxruntime answers is what must come out, or what the table of disagreements says instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pytest

from fuseline.errors import FuselineError
from tests.conformance.disagreements import known_disagreements
from tests.conformance.generated_calls import Variant, by_runtime, difference, variants
from tests.conformance.node_cases import interpreted, on_the_cpu

SHARES = 8
COMPILED = 5
"""Of all calls every fifth is compiled: a compile takes several times as long as reading and folding."""

Run: TypeAlias = Callable[[Variant], "list[list[Any]]"]


def folded(variant: Variant) -> list[list[Any]]:
    """With every tensor that it reads as a constant."""
    places = [i for i, value in enumerate(variant.call.inputs) if isinstance(value, np.ndarray)]
    return interpreted(variant.model(places), list(variant.feeds(places).values()))[0]


def compiled(variant: Variant) -> list[list[Any]]:
    """Compiled, and run twice."""
    return on_the_cpu(variant.model(), list(variant.feeds().values()))[0]


def _problem(variant: Variant, run: Run) -> str | None:
    wanted = by_runtime(variant)
    if wanted is None:
        return None
    try:
        answers = run(variant)
    except FuselineError as error:
        return f"{variant.name}: {error}"[:500]
    for found in answers:
        text = difference(wanted, found)
        if text is not None and not any(entry.covers(variant, text) for entry in known_disagreements()):
            return f"{variant.name}: {text} {dict(variant.call.attributes)}"[:500]
    return None


def _check(chosen: Sequence[Variant], run: Run) -> None:
    problems = [problem for variant in chosen if (problem := _problem(variant, run)) is not None]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize(("run", "sampled"), [(folded, 211), (compiled, 509)])
def test_a_sample(run: Run, sampled: int) -> None:
    _check(variants()[::sampled], run)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize(("run", "step"), [(folded, 1), (compiled, COMPILED)])
def test_all(run: Run, step: int, share: int) -> None:
    _check(variants()[::step][share::SHARES], run)
