"""When a second program is compiled, what the record says of it, and what both programs share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuseline.errors import FuselineError
from fuseline.fallback import compile_fallback, share_constants
from fuseline.ir.dim import ceil_div, mul, symbol
from fuseline.report.records import CompileRecord

H = symbol("h")
PAIRS: Any = {(H, mul(ceil_div(H, 2), 2)): "add"}


def _refuses(code: str) -> Any:
    def compile_() -> Any:
        raise FuselineError(code, "it is too long", node="conv")

    return compile_


def test_nothing_is_compiled_where_sizes_are_equal_or_never_1():
    record = CompileRecord()
    assert compile_fallback({}, record, _refuses("E0901")) is None and record.notes == []


def test_a_refusal_is_noted():
    record = CompileRecord()
    assert compile_fallback(PAIRS, record, _refuses("E0107")) is None
    (note,) = record.notes
    assert note.startswith("add: sizes h and 2*((1 + h) // (2)) are taken to be equal")
    assert "runs are refused, for: E0107 [conv]: it is too long" in note


def test_a_failure_of_our_own_is_raised():
    with pytest.raises(FuselineError, match="E0901"):
        compile_fallback(PAIRS, CompileRecord(), _refuses("E0901"))


def test_equal_constants_are_shared():
    rng = np.random.default_rng()
    kept = [rng.integers(0, 255, size, np.uint8) for size in (20000, 20000, 0, 64)]
    middle = kept[0].copy()
    middle[10000] ^= 1  # alike at both ends
    others = [kept[3].copy(), middle, kept[0].copy(), np.zeros(0, np.uint8)]
    shared = share_constants(kept, others)
    assert [a is b for a, b in zip(shared, [kept[3], middle, kept[0], kept[2]], strict=True)] == [True] * 4
