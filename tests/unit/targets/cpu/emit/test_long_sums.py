"""Long sums of floats are added up in parts: every term once, whatever the counts, and with the error of short runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import parser

import fuseline
from fuseline.targets.cpu.emit.long_sums import LONG, summed
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from fuseline.targets.cpu.kernel_ir.types import Kernel, Operand, Value
from tests.draws import RNG
from tests.kernel_ir.evaluate import evaluate


def _kernel(low: int, high: int, count: int | None, inside: int | None) -> Kernel:
    """Two sums from 1 and 2: of the elements and of their doubles, `inside` (3 where that is None) at each index."""
    k = KernelBuilder("sums", machine())
    width = 3 if inside is None else inside
    x = k.binding(0, "f64", high * width)
    out = k.binding(1, "f64", 2, writable=True)

    def step(i: Operand, sums: Sequence[Value]) -> Sequence[Value]:
        for j in range(width):
            element = k.load(x, k.add(k.mul(i, width), j))
            sums = [k.add(sums[0], element), k.add(sums[1], k.mul(element, 2.0))]
        return sums

    starts = [k.const(1.0, "f64"), k.const(2.0, "f64")]
    for position, total in enumerate(summed(k, (low, high), (count, inside), starts, step)):
        k.store(out, position, total)
    return k.finish()


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0, 255), (0, 256), (3, 257), (5, 700), (7, 7)])
@pytest.mark.parametrize("inside", [1, 2, 3, None])
@pytest.mark.parametrize("known", [True, False])
def test_every_term_counts_once(low: int, high: int, inside: int | None, known: bool):
    kernel = _kernel(low, high, LONG if known else None, inside)
    assert not list(check_bounds(kernel))
    x, out = RNG.integers(-9, 9, high * (inside or 3)).astype(np.float64), np.zeros(2)
    evaluate(kernel, [x, out], [])
    total = x[low * (inside or 3) :].sum()
    assert out.tolist() == [1 + total, 2 + 2 * total]


@pytest.mark.parametrize(("count", "inside", "loops"), [
    (LONG - 1, 1, 1), (LONG, 1, 2), (None, 1, 2), (None, None, 1), (LONG // 300, 300, 1), (8, 300, 1),
])  # fmt: skip
def test_short_sums_are_one_run(count: int | None, inside: int | None, loops: int):
    """How many loops there are, the step's own apart."""
    k = KernelBuilder("sums", machine())
    runs = list[Operand]()

    def step(i: Operand, sums: Sequence[Value]) -> Sequence[Value]:
        runs.append(i)
        return sums

    high = k.size(0)
    summed(k, (0, high), (count, inside), [k.const(0.0, "f32")], step)
    (index,) = runs
    assert isinstance(index, Value) and index.depth == loops


BODIES = {
    "columns": ("float[100000,16] x", "y = ReduceMean <axes = [0], keepdims = 1> (x)"),
    "symbolic": ("float[N,16] x", "y = ReduceMean <axes = [0], keepdims = 1> (x)"),
    "images": ("float[250,400,16] x", "y = ReduceMean <axes = [0, 1], keepdims = 1> (x)"),
    "squares": ("float[100000,16] x", "r = Sqrt (x) y = ReduceSumSquare <axes = [0]> (r)"),
    "middle": ("float[2,50000,8] x", "y = ReduceSum (x, one)"),
}


@pytest.mark.parametrize("name", BODIES)
def test_the_error_is_that_of_short_runs(name: str):
    """At most a quarter of what one run has: a random walk of 100,000 roundings against one of 400."""
    declared, body = BODIES[name]
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 13]> g ({declared}) => (float y) <int64[1] one = {{1}}> {{ {body} }}'
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    sizes = [int(size) for size in declared.split("[")[1].split("]")[0].replace("N", "100000").split(",")]
    x = (RNG.standard_normal(sizes) + 50).astype(np.float32)
    found = fuseline.compile(model).run({"x": x})["y"].reshape(-1)
    rows = x.swapaxes(0, 1).reshape(50_000, 16) if name == "middle" else x.reshape(100_000, 16)
    exact, run = rows.astype(np.float64).sum(0), np.cumsum(rows, axis=0)[-1].astype(np.float64)
    scale = 1 / len(rows) if "Mean" in body else 1
    assert np.abs(found / scale - exact).max() <= np.abs(run - exact).max() / 4
