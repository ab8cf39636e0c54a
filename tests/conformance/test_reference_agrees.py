"""onnx.reference with our corrections against onnxruntime, on generated calls of every operator: equal, or in the table
of disagreements.

What folds constants and runs host operators is only as right as this. Calls that onnxruntime has no kernel for are left
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fuseline.interop.onnx_reference import evaluator
from tests.conformance.disagreements import SIDES, Disagreement, known_disagreements, operator_of
from tests.conformance.generated_calls import Variant, by_runtime, difference, variants
from tests.conformance.node_calls import STRATEGIES

SHARES = 8
SAMPLED = 17
"""The default run takes every seventeenth call; `-m slow` takes all."""


def _difference(variant: Variant) -> str | None:
    wanted = by_runtime(variant)
    if wanted is None:
        return None
    try:
        with np.errstate(all="ignore"):
            found: Any = evaluator(variant.model()).run(None, variant.feeds())
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        NotImplementedError,
        RuntimeError,
        TypeError,
        ValueError,
    ) as error:
        return f"raises {type(error).__name__}: {error}"
    return difference(wanted, list(found))


def _check(chosen: Sequence[Variant]) -> set[Disagreement]:
    """Fail for what the table does not have; answers what of it occurs."""
    problems: list[str] = []
    met: list[Disagreement] = []
    for variant in chosen:
        text = _difference(variant)
        covering = [entry for entry in known_disagreements() if text is not None and entry.covers(variant, text)]
        met += covering
        if text is not None and not covering:
            problems.append(f"{variant.name}: {text} {dict(variant.call.attributes)}"[:600])
    assert not problems, "\n".join(problems)
    return {entry for entry in known_disagreements() if entry in met}


def test_a_sample_agrees() -> None:
    """A part of all calls."""
    _check(variants()[::SAMPLED])


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_all_agree(share: int) -> None:
    """All of them, and every disagreement of the table occurs."""
    operators = sorted({operator_of(variant) for variant in variants()})[share::SHARES]
    met = _check([variant for variant in variants() if operator_of(variant) in operators])
    stale = [
        f"{entry.op}: {entry.because}" for entry in known_disagreements() if entry.op in operators and entry not in met
    ]
    assert not stale, "these no longer occur: " + "; ".join(stale)


def test_the_table_says_who_is_right() -> None:
    """Entries are about operators that are tested, and decide."""
    names = {f"{domain}.{op_type}" if domain else op_type for domain, op_type in STRATEGIES}
    for entry in known_disagreements():
        assert entry.op in names and entry.right in SIDES and entry.ours in SIDES[:2] and entry.because
        assert entry.right in (entry.ours, "both"), f"{entry.op}: wrong by our own table"
