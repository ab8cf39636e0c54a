"""What blocks of columns ask memory for: where loads would be late, and never in place of what is read."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.api import emit
from fuseline.targets.cpu.families.nests.column_prefetch import BLOCKS_AHEAD, LEAST_BYTES, ROWS_AHEAD
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

BODIES = {
    "softmax": "y = Softmax <axis = 0> (x)",
    "norm": "m = ReduceMean <keepdims = 1> (x, a)  d = Sub(x, m)  q = Mul(d, d)  v = ReduceMean <keepdims = 1> (q, a)"
    "  e = Sqrt(v)  y = Div(d, e)",
}
SUM = "y = ReduceSum <keepdims = 1> (x, a)"


def _model(body: str, rows: int | str, columns: int | str, element: str = "float") -> onnx.ModelProto:
    result = f"1, {columns}" if body == SUM else f"{rows}, {columns}"
    text = f"({element}[{rows}, {columns}] x) => ({element}[{result}] y) {{ {body} }}"
    return onnx_model(text, {"a": np.array([0])})


def _asked_ahead(model: onnx.ModelProto) -> list[int]:
    """Elements from each load or store behind a request to what that asks for."""
    code = emit(model, "kernel", target="cpu:avx2", threads=1)
    pattern = r"prefetch\{3\} (b\d)\[(%\d+) \+ (\d+)\].*\n(?:.*\n)??.*\1\[\2(?: \+ (\d+))?\]"
    found = [int(ahead) - int(at or 0) for _, _, ahead, at in re.findall(pattern, code)]
    assert len(found) == code.count("prefetch")
    return found


def _columns(rows: int) -> int:
    return int(RNG.integers(LEAST_BYTES // 4 // rows + 64, LEAST_BYTES // rows)) | 1


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_few_rows_ask_for_the_blocks_after(body: str):
    rows = int(RNG.integers(3, 100))
    asked = _asked_ahead(_model(body, rows, _columns(rows)))
    assert len(asked) >= 2 and len(set(asked)) == 1 and asked[0] % (8 * BLOCKS_AHEAD) == 0 and asked[0] < 1024


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_many_rows_ask_for_those_below(body: str):
    rows = int(RNG.integers(400, 1000))
    columns = _columns(rows)
    asked = _asked_ahead(_model(body, rows, columns))
    assert len(asked) >= 2 and set(asked) == {ROWS_AHEAD * columns}


def test_sums_ask_for_nothing():
    rows = int(RNG.integers(3, 1000))
    assert not _asked_ahead(_model(SUM, rows, _columns(rows)))


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_what_is_in_a_cache_is_not_asked_for(body: str):
    rows = int(RNG.integers(3, 100))
    assert not _asked_ahead(_model(body, rows, LEAST_BYTES // 8 // rows))


def test_rows_on_top_of_each_other_have_no_room():
    """Unless a block is wide, and it asks for rows below."""
    assert not _asked_ahead(_model(BODIES["softmax"], 20, 1024 * int(RNG.integers(50, 90))))
    rows = int(RNG.integers(300, 900))
    code = emit(_model(BODIES["softmax"], rows, 4096), "kernel", target="cpu:avx512", threads=1)
    assert code.count("prefetch") >= 2


@pytest.mark.parametrize("element", ["float", "float16"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize(("least", "most", "symbolic"), [(3, 100, False), (300, 900, False), (3, 900, True)])
@pytest.mark.parametrize("threads", (1, 2))
def test_values(body: str, element: str, least: int, most: int, symbolic: bool, threads: int):
    rows = int(RNG.integers(least, most))
    columns = _columns(rows)
    model = _model(body, *(("rows", "columns") if symbolic else (rows, columns)), element)
    x = RNG.standard_normal((rows, columns)).astype(np.float32 if element == "float" else np.float16)
    expected, found = (
        fuseline.compile(model, target=target, threads=threads).run({"x": x})["y"] for target in ("interpreter", "cpu")
    )
    tolerance = 1e-5 if element == "float" else 2e-3
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
