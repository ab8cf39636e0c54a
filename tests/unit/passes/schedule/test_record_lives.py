"""The arena's tensors as records: what lies there overlaps nothing that is in use."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import onnx
import pytest

import fuseline
from fuseline.report.records import CompileRecord
from tests.small_models import attention, convolutions, mlp

MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "mlp": mlp,
    "convolutions": convolutions,
    "attention": lambda: attention(2, 7),
    "symbolic": lambda: attention("batch", "length"),
}


def _record(name: str, threads: int) -> CompileRecord:
    return fuseline.compile(MODELS[name](), threads=threads, fusion="none", cache=False).record


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_lives_that_overlap_lie_apart(name: str, threads: int) -> None:
    record = _record(name, threads)
    assert record.transients
    for one, other in combinations(record.transients, 2):
        together = one.first < other.last and other.first < one.last
        assert not (together and one.offset < other.offset + other.bytes and other.offset < one.offset + one.bytes)


@pytest.mark.parametrize("name", ["mlp", "convolutions", "attention"])
def test_they_fill_the_arena_and_name_who_writes(name: str) -> None:
    record = _record(name, 2)
    names = {dispatch.name for dispatch in record.dispatches}
    assert {one.dispatch for one in record.transients if not one.scratch} <= names
    top = max(one.offset + one.bytes for one in record.transients)
    assert record.statistics["arena_bytes"] - 64 < top <= record.statistics["arena_bytes"]


def test_a_tensor_lives_until_its_last_reader() -> None:
    record = _record("mlp", 1)
    for one in record.transients:
        assert 0 <= one.first <= one.last and one.bytes > 0
    written = [one for one in record.transients if not one.scratch]
    assert any(one.last > one.first for one in written)
