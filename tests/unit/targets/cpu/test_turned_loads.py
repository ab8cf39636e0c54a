"""Arguments that lie along the rows of a tile: an epilogue reads them transposed in registers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.api import emit
from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.build import dims_map
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.families.root.operand_paths import operand_paths
from fuseline.targets.cpu.isa import ISA_NAMES, machine
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.graphs.program import Program
from tests.kernels import Array, Runner, assert_close, kernel_of, plan_of, random

FAMILY = ContractionFamily()
BITS = 14
"""Of convolutions by minimal filtering, which lose some."""


def _added(m: int | str, n: int | str, k: int, how: str) -> DispatchView:
    """`a @ b` and a matrix of columns by rows, which is added `how`."""
    p = Program((m, k), (k, n), (n, m))
    y, z, turned = p.matmul(p.x[0], p.x[1]), p.x[2], dims_map(2, [1, 0])
    if how == "activated":
        z = p.relu(z)
    made = p.binary(y, z, turned)
    if how == "stored transposed":
        return p.dispatch(p.moved(made, [1, 0], n, m))
    return p.dispatch(p.binary(made, p.x[2], turned) if how == "twice" else made)


def _sum(a: Array, b: Array, z: Array, how: str) -> Array:
    other = np.maximum(z, 0) if how == "activated" else z
    made = a.astype(np.float64) @ b + other.T
    return made.T if how == "stored transposed" else made + z.T if how == "twice" else made


HOW = ["added", "activated", "twice", "stored transposed"]
SIZES = [(33, 48, 16), (64, 21, 9), (14, 16, 40), (1, 40, 8), (19, 5, 70)]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("sizes", SIZES)
def test_a_matrix_of_columns_by_rows(sizes: tuple[int, int, int], how: str):
    m, n, k = sizes
    a, b, z = random((m, k), 1), random((k, n), 2), random((n, m), 3)
    for at_end in (True, False):
        (found,) = Runner(FAMILY, _added(m, n, k, how))(a, b, z, at_end=at_end)
        assert_close(found, _sum(a, b, z, how), least=1.0)


@pytest.mark.parametrize("m", [1, 2, 7, 31, 50])
@pytest.mark.parametrize("how", HOW)
def test_as_many_rows_as_the_run_has(m: int, how: str):
    a, b, z = random((m, 24), 1), random((24, 40), 2), random((40, m), 3)
    (found,) = Runner(FAMILY, _added("m", 40, 24, how))(a, b, z, sizes={"m": m})
    assert_close(found, _sum(a, b, z, how), least=1.0)


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("m", "n"), [(1, 3), (7, 16), (31, 21), (50, 40)])
def test_as_many_columns_as_the_run_has(m: int, n: int, how: str, isa: str):
    """What no loop holds a vector of is not loaded in squares."""
    plan, sizes = plan_of(FAMILY, _added("m", "n", 9, how), machine(isa)), {"m": m, "n": n}
    values = [sizes[name] for name in plan.view.size_names]
    assert check_bounds(kernel_of(FAMILY, plan, machine(isa)), values, d.evaluate(plan.workgroups, sizes)) == []
    if isa == "avx2":
        a, b, z = random((m, 9), 1), random((9, n), 2), random((n, m), 3)
        (found,) = Runner(FAMILY, _added("m", "n", 9, how))(a, b, z, sizes=sizes)
        assert_close(found, _sum(a, b, z, how), least=1.0)


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("sizes", SIZES)
def test_no_access_leaves_its_buffer(sizes: tuple[int, int, int], how: str, isa: str):
    plan = plan_of(FAMILY, _added(*sizes, how), machine(isa))
    assert check_bounds(kernel_of(FAMILY, plan, machine(isa)), [], d.evaluate(plan.workgroups, {})) == []


def _paths(view: DispatchView) -> list[tuple[Any, ...]]:
    plan = plan_of(FAMILY, view, machine("avx2"))
    assert isinstance(plan, ContractionPlan)
    return [path.coordinates for path in operand_paths(view, plan.loops.root, plan.paths)]


def test_where_an_epilogue_reads():
    assert _paths(_added(32, 48, 16, "activated")) == [(1, 0)]
    assert _paths(_added(32, 48, 16, "stored transposed")) == [(1, 0)]


def test_what_is_read_at_two_points_is_read_by_nobody():
    p = Program((32, 16), (16, 32), (32, 32))
    made = p.binary(p.matmul(p.x[0], p.x[1]), p.x[2], dims_map(2, [1, 0]))
    assert _paths(p.dispatch(p.binary(made, p.x[2], dims_map(2, [0, 1])))) == []


def _convolution(channels: int, kernel: int, after: str, element: str = "float") -> tuple[Any, dict[str, Array]]:
    """A convolution to which an argument is added, with its channels first like all of ONNX's."""
    inside, height, width = 24, *(int(n) for n in RNG.integers(9, 40, 2))
    x, z = (1, inside, height, width), (1, channels, height, width)
    pads = ", ".join([str(kernel // 2)] * 4)
    text = f"({element}{list(x)} x, {element}{list(z)} z) => ({element}[] y)"
    text += f" {{ c = Conv<pads=[{pads}]>(x, w, b)  a = Add(c, z)  {after} }}"
    dtype = np.float16 if element == "float16" else np.float32
    weights = {
        "w": (RNG.standard_normal((channels, inside, kernel, kernel)) / kernel / 5).astype(dtype),
        "v": (RNG.standard_normal((8, channels, 1, 1)) / 5).astype(dtype),
        "b": RNG.standard_normal(channels).astype(dtype),
    }
    feeds = {"x": RNG.standard_normal(x).astype(dtype), "z": RNG.standard_normal(z).astype(dtype)}
    return onnx_model(text, weights, opset=20), feeds


AFTER = {"the last": "y = Relu(a)", "another": "r = Relu(a)  y = Conv(r, v)", "both": "r = Sigmoid(a)  y = Mul(r, z)"}


@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("channels", [16, 20, 64])
@pytest.mark.parametrize("threads", [1, 2])
def test_images_with_channels_first(channels: int, kernel: int, after: str, threads: int):
    model, feeds = _convolution(channels, kernel, AFTER[after])
    (found,) = fuseline.compile(model, threads=threads).run(feeds).values()
    (wanted,) = fuseline.compile(model, target="interpreter", fusion="none").run(feeds).values()
    assert_close(found, wanted.astype(np.float64), bits=BITS, least=1.0)


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
@pytest.mark.parametrize("kernel", [1, 3])
def test_nothing_is_gathered_but_patches(kernel: int, isa: str):
    model, _ = _convolution(48, kernel, AFTER["the last"])
    text = emit(model, "kernel", target=f"cpu:{isa}", threads=1)
    assert text.count("gather") == text.count("gather b0[")  # the image that is convolved


@pytest.mark.parametrize("kernel", [1, 3])
def test_halves(kernel: int):
    model, feeds = _convolution(40, kernel, AFTER["the last"], "float16")
    (found,) = fuseline.compile(model, threads=1).run(feeds).values()
    (wanted,) = fuseline.compile(model, target="interpreter", fusion="none").run(feeds).values()
    np.testing.assert_allclose(found.astype(np.float32), wanted.astype(np.float32), rtol=2e-2, atol=2e-2)


def test_what_is_convolved_may_be_added():
    text = "(float[2,32,19,23] x) => (float[] y) { c = Conv<pads=[1,1,1,1]>(x, w)  y = Add(c, x) }"
    model = onnx_model(text, {"w": (RNG.standard_normal((32, 32, 3, 3)) / 15).astype(np.float32)}, opset=20)
    x = RNG.standard_normal((2, 32, 19, 23)).astype(np.float32)
    (found,) = fuseline.compile(model, threads=2).run({"x": x}).values()
    (wanted,) = fuseline.compile(model, target="interpreter", fusion="none").run({"x": x}).values()
    assert_close(found, wanted.astype(np.float64), bits=BITS, least=1.0)
