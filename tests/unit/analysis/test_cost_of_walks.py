"""Scans, scatters and ranks count as the walks that make them, not as the reductions that they are written as."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from onnx import ModelProto

import fuseline
from tests.graphs.onnx_text import onnx_model

N, C = 96, 8


def scatter() -> ModelProto:
    """One addition per update."""
    matrix = f"[{N}, {C}]"
    return onnx_model(
        f"(float{matrix} x, int64{matrix} i, float{matrix} u) => (float{matrix} y)"
        ' { y = ScatterElements<axis = 0, reduction = "add">(x, i, u) }'
    )


def running_sum() -> ModelProto:
    """One addition per element."""
    return onnx_model(f"(float[{N}, {C}] x) => (float[{N}, {C}] y) {{ y = CumSum(x, axis) }}", axis=0)


def largest() -> ModelProto:
    """Rows of eight elements are sorted."""
    results = f"float[{N}, 4] v, int64[{N}, 4] p"
    return onnx_model(f"(float[{N}, {C}] x) => ({results}) {{ v, p = TopK<axis = 1>(x, k) }}", k=[4])


@pytest.mark.parametrize(("model", "most"), [(scatter, 8 * N * C), (running_sum, 2 * N * C), (largest, 40 * N * C)])
@pytest.mark.parametrize("target", ["null", "cpu"])
def test_operations_grow_with_the_elements(model: Callable[[], ModelProto], most: int, target: str):
    """The quadratic forms have N C N or N C C points, several operations each."""
    program = fuseline.compile(model(), target=target, threads=1)
    total = sum(dispatch.flops for dispatch in program.record.dispatches)
    assert N * C <= total <= most
