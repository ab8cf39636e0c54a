"""Products whose result is put elsewhere, over bands of rows: random ones against the interpreter; what stays apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.report.explain import why_not_fused
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

CHEAP = "[costs]\nmemory_bytes_per_ns = 0.001\nstored_bytes_per_ns = 0.001\n"
"""Storing what lies between two dispatches takes longer than all else."""


def _square(mode: str, side: int, *, kernel: int = 3, more: str = "", batch: int = 1, rows: int = 0) -> onnx.ModelProto:
    """A convolution to squares of `side` x `side` pixels; the number of rows is drawn where it is not given."""
    inputs, channels, columns = (int(RNG.integers(low, 3 * low)) for low in (5, 2, 9))
    weights = RNG.standard_normal((channels * side * side, inputs, kernel, kernel)) / np.sqrt(inputs * kernel * kernel)
    given = {"w": weights, "b": RNG.standard_normal(len(weights))}
    text = f"""(float[{batch}, {inputs}, {rows or int(RNG.integers(4, 9)) * 6}, {columns}] x) => (y) {{
        c = Conv<pads = [{", ".join([str(kernel // 2)] * 4)}]>(x, w, b)
        {more or "d = Identity(c)"}
        y = DepthToSpace<blocksize = {side}, mode = "{mode}">(d)
    }}"""
    return onnx_model(text, {name: array.astype(np.float32) for name, array in given.items()}, opset=17)


def _require(model: onnx.ModelProto, dispatches: int, **given: Any) -> fuseline.CompiledModel:
    """So many dispatches, whose results are the interpreter's."""
    program = fuseline.compile(model, **given)
    dims = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    feeds = {"x": RNG.standard_normal(dims).astype(np.float32)}
    expected = fuseline.compile(model, target="interpreter", fusion="none").run(feeds)["y"]
    tolerance = 1e-4 * max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(program.run(feeds)["y"], expected, rtol=0, atol=tolerance)
    assert program.stats["dispatches"] == dispatches
    return program


@pytest.fixture
def target(tmp_path: Path) -> str:
    (tmp_path / "machine.toml").write_text(CHEAP)
    return f"cpu:{tmp_path}/machine.toml"


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("mode", ["CRD", "DCR"])
@pytest.mark.parametrize("side", [2, 3, 4])
def test_squares_of_pixels(side: int, mode: str, kernel: int, threads: int, target: str):
    _require(_square(mode, side, kernel=kernel), 1, target=target, threads=threads, fusion="aggressive")


@pytest.mark.parametrize("more", ["d = Relu(c)", "e = Sigmoid(c)  d = Mul(c, e)"])
def test_what_is_computed_before_the_move(more: str, target: str):
    program = _require(_square("CRD", 2, more=more), 1, target=target, threads=2)
    assert any("bands of" in note for note in program.record.notes)


@pytest.mark.parametrize("batch", [2, 3])
def test_several_images(batch: int, target: str):
    _require(_square("CRD", 2, batch=batch), 1, target=target, threads=2, fusion="aggressive")


@pytest.mark.parametrize("rows", [13, 31])
def test_rows_that_no_number_of_bands_divides_are_bands_of_one(rows: int, target: str):
    _require(_square("CRD", 2, rows=rows, kernel=1), 1, target=target, threads=1, fusion="aggressive")


def test_a_result_in_the_cache_stays_apart_and_says_for_what_price():
    model = _square("DCR", 2)
    apart = _require(model, 2, threads=1)
    (decision,) = [one for one in apart.decisions if one.rule == "fuse-row-bands"]
    assert decision.code == "unprofitable" and decision.numbers["bands"] > 1 and "reshape-between" in decision.detail
    assert any("in bands of rows" in line for line in why_not_fused(apart.record))


def test_it_can_be_switched_off(target: str):
    off = {"fuse-row-bands": {"enabled": False}}
    _require(_square("CRD", 2), 2, target=target, threads=1, pass_options=off)
