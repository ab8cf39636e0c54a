"""What only the run knows may be little: one batch, a few rows. It is shared out even so."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import fuseline
from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.build import dims_map
from fuseline.ir.costs import SMALL_SIZE, small_sizes
from fuseline.ir.dim import Dim, symbol
from fuseline.targets.cpu.families.blocked.family import BlockedFamily
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.family import Family, Policy
from fuseline.targets.cpu.isa import ISA_NAMES, machine
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.graphs.program import Program
from tests.kernels import plan_of

from .blocked.programs import product_and_norm


def _workgroups(family: Family, view: DispatchView, isa: str, sizes: Mapping[str, int]) -> int:
    return d.evaluate(plan_of(family, view, machine(isa)).workgroups, sizes)


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("threads", [2, 4])
@pytest.mark.parametrize(("batch", "rows"), [("b", "t"), ("b", 64), (1, "t")])
def test_a_product_of_one_batch(batch: int | str, rows: int | str, threads: int, isa: str):
    p = Program((batch, rows, 256), (256, 512), constants=[1])
    maps = [dims_map(4, [0, 1, 3]), dims_map(4, [3, 2]), dims_map(4, [0, 1, 2])]
    view = p.dispatch(p.multiply_add(p.x[0], p.x[1], p.zeros(batch, rows, 512), maps, "pppr"))
    family = ContractionFamily(Policy(threads=threads))
    for count in (1, 64):
        assert _workgroups(family, view, isa, {"b": 1, "t": count}) >= threads


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("threads", [2, 4])
def test_a_block_of_rows(threads: int, isa: str):
    view = product_and_norm("t", 512, 256, constant=True)
    assert _workgroups(BlockedFamily(Policy(threads=threads)), view, isa, {"t": SMALL_SIZE}) >= threads


@pytest.mark.parametrize(
    ("extents", "few"),
    [
        ((7, 9), [7, 9]),
        ((symbol("b"), 128), [1, 128]),
        ((symbol("b"), 4), [4, 4]),
        ((symbol("b"), symbol("t")), [1, SMALL_SIZE]),
        ((symbol("b", 2), symbol("t", 1, 5)), [2, 5]),
        ((symbol("t", 20),), [20]),
    ],
)
def test_few_points(extents: tuple[Dim, ...], few: list[int]):
    assert small_sizes(extents, image=False) == few


def test_few_pixels():
    assert small_sizes([symbol("y"), symbol("x"), 8], image=True) == [SMALL_SIZE, SMALL_SIZE, 8]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_layer_with_any_number_of_rows(threads: int):
    """Norm, product, gate and product, of one row and of many by one program."""
    model = onnx_model(
        "(float[b, t, 48] x) => (y) { h = LayerNormalization(x, s) u = MatMul(h, p) g = MatMul(h, q) e = Sigmoid(g) "
        "m = Mul(u, e) o = MatMul(m, r) y = Add(x, o) }",
        {
            name: RNG.standard_normal(shape).astype(np.float32) / 8
            for name, shape in {"s": (48,), "p": (48, 132), "q": (48, 132), "r": (132, 48)}.items()
        },
    )
    program, reference = fuseline.compile(model, threads=threads), fuseline.compile(model, target="interpreter")
    for batch, rows in [(1, 1), (1, 2), (1, 7), (3, 13), (1, 64), (2, 45)]:
        x = RNG.standard_normal((batch, rows, 48)).astype(np.float32)
        np.testing.assert_allclose(program.run({"x": x})["y"], reference.run({"x": x})["y"], rtol=1e-4, atol=1e-4)
