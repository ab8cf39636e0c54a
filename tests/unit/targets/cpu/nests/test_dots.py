"""Few rows beside a matrix that the run brings: dot products along memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.targets.cpu.families.family import Plan
from fuseline.targets.cpu.families.nests.dots import LEAST_VECTORS, Dots
from fuseline.targets.cpu.isa import machine
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.kernels import Runner

from .generics import fill, function, generic, tensor
from .texts import inputs, parse

PRODUCT = ("%p = arith.mulf %i0, %i1 : {t}\n%t = arith.addf %o0, %p : {t}", ["%t"])
LANES = machine("avx2").f32_lanes


def _text(rows: int | str, columns: int | str, steps: int, element: str = "f32", *, transposed: bool = False) -> str:
    body, (result,) = PRODUCT
    matrix = (steps, columns) if transposed else (columns, steps)
    maps = ["d0, d2", "d2, d1" if transposed else "d1, d2", "d0, d1"]
    names = sorted({size for size in (rows, columns) if isinstance(size, str)})
    lines = [
        fill("z", "0.5", (rows, columns), element),
        generic(
            "%y", [("%q", tensor((rows, steps), element)), ("%k", tensor(matrix, element))],
            [("%z", tensor((rows, columns), element))], maps, "ppr", body.format(t=element), [(result, element)],
        ),
    ]  # fmt: skip
    return function(
        [("q", (rows, steps), element), ("k", matrix, element)],
        names,
        "\n".join(lines),
        [("%y", tensor((rows, columns), element))],
    )


def _steps(rows: int) -> int:
    return LANES * LEAST_VECTORS[rows] + int(RNG.integers(200))


def _accepted(*shape: Any, **options: Any) -> bool:
    return isinstance(Dots().accepts(parse(_text(*shape, **options)), machine("avx2")), Plan)


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512", "neon"])
@pytest.mark.parametrize("element", ["f32", "f64"])
@pytest.mark.parametrize("rows", LEAST_VECTORS)
@pytest.mark.parametrize("columns", [int(RNG.integers(2, 40)), "n"])
def test_values_between_guard_pages(isa: str, element: str, rows: int, columns: int | str):
    steps = 2 * _steps(rows)
    view = parse(_text(rows, columns, steps, element))
    run = Runner((Dots(),), view, machine(isa))
    sizes = {"n": int(RNG.integers(1, 40))} if columns == "n" else {}
    q, k = inputs(view, sizes, int(RNG.integers(1000)))
    assert run.unproved(sizes) == []
    (found,) = run.evaluated(q, k, sizes=sizes)
    expected = 0.5 + q.astype(np.float64) @ k.T
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
    if isa in ("avx2", "baseline"):
        np.testing.assert_allclose(run(q, k, sizes=sizes)[0], expected, rtol=1e-3, atol=1e-3)


def test_many_rows_and_short_ones_are_made_in_tiles():
    for rows, least in LEAST_VECTORS.items():
        assert _accepted(rows, 300, LANES * least) and _accepted(300, rows, LANES * least)
        assert not _accepted(rows, 300, LANES * least - 1)
    assert not _accepted(max(LEAST_VECTORS) + 1, 300, 2000)
    assert not _accepted("m", 300, 2000)


def test_both_lie_along_the_reduction():
    steps = _steps(1)
    assert _accepted(1, 300, steps) and not _accepted(1, 300, steps, transposed=True)


def _model(body: str, element: str, heads: int, keys: int | str, steps: int, **weights: Any) -> onnx.ModelProto:
    arguments = [f"{element}[{heads}, 1, {steps}] q", f"{element}[{heads}, {keys}, {steps}] k"]
    text = f"({', '.join(arguments[: 1 if weights else 2])}) => ({element}[{heads}, 1, {keys}] y) {{ {body} }}"
    return onnx_model(text, weights)


SCORES = "t = Transpose <perm = [0, 2, 1]> (k)  y = MatMul(q, t)"
BODIES = {
    "scores": SCORES,
    "softmax": SCORES.replace("y =", "s =") + "  y = Softmax <axis = -1> (s)",
    "computed": "r = Relu(q)  " + SCORES.replace("(q", "(r"),
}


def _families(program: Any) -> list[str]:
    return [dispatch.family for dispatch in program.record.dispatches]


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("element", ["float", "float16"])
@pytest.mark.parametrize("symbolic", (False, True))
@pytest.mark.parametrize("threads", (1, 2))
def test_scores_of_keys(body: str, element: str, symbolic: bool, threads: int):
    heads, keys, steps = (int(RNG.integers(*bounds)) for bounds in ((1, 5), (40, 90), (64, 150)))
    model = _model(body, element, heads, "n" if symbolic else keys, steps)
    shapes, dtype = ((heads, 1, steps), (heads, keys, steps)), np.float32 if element == "float" else np.float16
    feeds = {name: RNG.standard_normal(shape).astype(dtype) for name, shape in zip("qk", shapes, strict=True)}
    program = fuseline.compile(model, threads=threads)
    expected = fuseline.compile(model, target="interpreter").run(feeds)["y"]
    tolerance = 1e-4 if element == "float" else 2e-2
    np.testing.assert_allclose(program.run(feeds)["y"], expected, rtol=tolerance, atol=tolerance)
    if body == SCORES:
        assert _families(program) == ["dots"]


def test_constants_are_packed_instead():
    heads, keys, steps = 2, int(RNG.integers(40, 90)), int(RNG.integers(64, 150))
    k = RNG.standard_normal((heads, keys, steps)).astype(np.float32)
    assert _families(fuseline.compile(_model(SCORES, "float", heads, keys, steps, k=k))) == ["contraction"]
