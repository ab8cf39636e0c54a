"""Contractions of narrow integers against NumPy: odd sizes, extremes, every way to read an operand."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, f32, i8, i32
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.ir.build import Body, dims_map
from fuseline.targets.cpu.families.contraction.convolution import ConvolutionFamily
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.isa import cpu_flags, machine
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.target import Refusal
from tests.graphs.program import Program
from tests.kernels import Runner, assert_close, plan_of, random

from .narrow import dot, integers, narrow

FAMILY = ContractionFamily()
SIZES = [
    (1, 1, 1),
    (1, 8, 3),
    (5, 16, 7),
    (6, 17, 8),
    (13, 1, 9),
    (7, 33, 1),
    (49, 40, 65),
    (30, 96, 64),
    (1, 200, 130),
    (3, 250, 17),
    (8, 16, 2),
]


def _plan(run: Runner) -> ContractionPlan:
    assert isinstance(run.plan, ContractionPlan)
    return run.plan


@pytest.mark.parametrize("bits", [(16, 8), (16, 16), (8, 8), (8, 16)])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_products_of_any_size(m: int, n: int, k: int, constant: bool, bits: tuple[int, int]):
    p = narrow((m, k), (k, n), bits=bits, constants=[1] if constant else [])
    run = Runner(FAMILY, p.dispatch(p.matmul(p.x[0], p.x[1])))
    a, b = integers((m, k), bits[0], m + n), integers((k, n), bits[1], k)
    np.testing.assert_array_equal(run(a, b)[0], dot(a, b))
    np.testing.assert_array_equal(run(a, b, at_end=False)[0], dot(a, b))
    assert not check_bounds(run.kernel, (), int(str(run.plan.workgroups)))


@pytest.mark.parametrize("bits", [(16, 8), (8, 16)])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    ("turn_a", "turn_b", "turn_c"),
    [(True, False, False), (False, True, False), (True, True, True), (False, True, True)],
)
def test_products_of_any_orientation(turn_a: bool, turn_b: bool, turn_c: bool, constant: bool, bits: tuple[int, int]):
    m, n, k = 21, 19, 37
    p = narrow((k, m) if turn_a else (m, k), (n, k) if turn_b else (k, n), bits=bits, constants=[1] if constant else [])
    maps = [
        dims_map(3, [2, 0] if turn_a else [0, 2]),
        dims_map(3, [1, 2] if turn_b else [2, 1]),
        dims_map(3, [1, 0] if turn_c else [0, 1]),
    ]
    out = p.multiply_add(p.x[0], p.x[1], p.zeros(*((n, m) if turn_c else (m, n))), maps, "ppr")
    run = Runner(FAMILY, p.dispatch(out))
    a, b = integers((m, k), bits[0], 1), integers((k, n), bits[1], 2)
    found = run(a.T.copy() if turn_a else a, b.T.copy() if turn_b else b)[0]
    np.testing.assert_array_equal(found, dot(a, b).T if turn_c else dot(a, b))


def test_sizes_known_at_run_time():
    n, k = 40, 27
    p = narrow(("m", k), (k, n), bits=(16, 8), constants=[1])
    run = Runner(FAMILY, p.dispatch(p.matmul(p.x[0], p.x[1])))
    for m in (1, 6, 13):
        a, b = integers((m, k), 16, m), integers((k, n), 8, m)
        np.testing.assert_array_equal(run(a, b, sizes={"m": m})[0], dot(a, b))


def test_a_reduction_of_unknown_length_goes_by_single_steps():
    p = narrow((7, "k"), ("k", 24), bits=(16, 8))
    run = Runner(FAMILY, p.dispatch(p.matmul(p.x[0], p.x[1])))
    assert not _plan(run).pairs
    for k in (1, 10, 33):
        a, b = integers((7, k), 16, k), integers((k, 24), 8, k)
        np.testing.assert_array_equal(run(a, b, sizes={"k": k})[0], dot(a, b))


def test_weights_stay_narrow_and_pairs_are_taken():
    p = narrow((12, 20), (20, 32), bits=(16, 8), constants=[1])
    plan = _plan(Runner(FAMILY, p.dispatch(p.matmul(p.x[0], p.x[1]))))
    assert plan.pairs and plan.constant_layouts[1].elements == 20 * 32
    assert plan.loops.elements == ("i16", "i8")


@pytest.mark.parametrize(("borders", "pairs"), [((4, 6), True), ((3, 7), False)])
def test_a_concat_is_read_in_pairs_that_begin_at_even_steps(borders: tuple[int, int], pairs: bool):
    m, n, k = 9, 16, sum(borders)
    p = narrow((m, borders[0]), (m, borders[1]), (k, n), bits=(16, 16, 8), constants=[2])
    p.element = IntegerType(16)
    both = p.concat(p.x[0], p.x[1], axis=1)
    p.element = i32
    run = Runner(FAMILY, p.dispatch(p.matmul(both, p.x[2])))
    assert _plan(run).pairs == pairs
    a, b, w = integers((m, borders[0]), 16, 1), integers((m, borders[1]), 16, 2), integers((k, n), 8, 3)
    np.testing.assert_array_equal(run(a, b, w)[0], dot(np.concatenate([a, b], 1), w))


WINDOWS = [
    (7, 9, 8, 16, 3, 1, 1),
    (9, 8, 3, 24, 3, 2, 1),
    (12, 6, 1, 8, 5, 1, 2),
    (6, 7, 5, 9, 1, 2, 0),
    (11, 10, 16, 40, 3, 2, 1),
]


@pytest.mark.parametrize(("height", "width", "channels", "filters", "size", "stride", "low"), WINDOWS)
@pytest.mark.parametrize("bits", [16, 8])
def test_convolutions(
    height: int, width: int, channels: int, filters: int, size: int, stride: int, low: int, bits: int
):
    """Strides, borders, few and odd channels; the image in 16 bits, or widened on the way."""
    p = narrow((height, width, channels), (size, size, channels, filters), bits=(bits, 8), constants=[1])
    p.element = IntegerType(bits)
    image = p.pad(p.x[0], [low, low, 0], [low, low, 0], 0)
    p.element = i32
    rows, columns = ((extent + 2 * low - size) // stride + 1 for extent in (height, width))
    d0, d1, d2, d3, d4, d5 = (AffineExpr.dimension(i) for i in range(6))
    maps = [
        AffineMap(6, 0, (d0 * stride + d3, d1 * stride + d4, d5)),
        AffineMap(6, 0, (d3, d4, d5, d2)),
        AffineMap(6, 0, (d0, d1, d2)),
    ]
    run = Runner(
        ConvolutionFamily(), p.dispatch(p.multiply_add(image, p.x[1], p.zeros(rows, columns, filters), maps, "ppprrr"))
    )
    a, w = integers((height, width, channels), bits, 1), integers((size, size, channels, filters), 8, 2)
    padded = np.pad(a, [(low, low), (low, low), (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (0, 1))[::stride, ::stride]
    expected = np.einsum("yxcij,ijcf->yxf", windows.astype(np.int64), w.astype(np.int64)).astype(np.int32)
    np.testing.assert_array_equal(run(a, w)[0], expected)
    np.testing.assert_array_equal(run(a, w, at_end=False)[0], expected)


@pytest.mark.parametrize("isa", ["avx512", "neon", "baseline"])
def test_other_machines_compute_the_same(isa: str):
    """On the evaluator: with the instruction for pairs, and without one."""
    m, n, k = 5, 19, 11
    p = narrow((m, k), (k, n), bits=(16, 8), constants=[1])
    run = Runner(FAMILY, p.dispatch(p.matmul(p.x[0], p.x[1])), machine(isa))
    a, b = integers((m, k), 16, 1), integers((k, n), 8, 2)
    np.testing.assert_array_equal(run.evaluated(a, b)[0], dot(a, b))
    pairs = machine(isa).pair_dot
    text = print_llvm([run.kernel], machine(isa))
    assert (pairs in text) if pairs else ("mul <4 x i32>" in text)


def test_baseline_runs_here():
    if not cpu_flags().issuperset(machine("baseline").needs):
        pytest.skip("no x86")
    p = narrow((5, 11), (11, 19), bits=(16, 8), constants=[1])
    run = Runner(FAMILY, p.dispatch(p.matmul(p.x[0], p.x[1])), machine("baseline"))
    a, b = integers((5, 11), 16, 1), integers((11, 19), 8, 2)
    np.testing.assert_array_equal(run(a, b)[0], dot(a, b))


def test_unsigned_extension_is_refused():
    """The tiles extend signs; a body that does not is left to others."""
    p = narrow((4, 6), (6, 8), bits=(16, 8))
    maps = [dims_map(3, [0, 2]), dims_map(3, [2, 1]), dims_map(3, [0, 1])]

    def body(b: Body) -> list[SSAValue]:
        wide = [b.op(arith.ExtUIOp, side, i32) for side in b.args[:2]]
        return [b.op(arith.AddiOp, b.args[2], b.op(arith.MuliOp, *wide))]

    out = p.emit.generic([p.x[0], p.x[1]], [p.zeros(4, 8)], maps, ["parallel", "parallel", "reduction"], body).results[
        0
    ]
    refusal = FAMILY.accepts(p.dispatch(out), machine())
    assert isinstance(refusal, Refusal) and refusal.code == "element-type"


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("swapped", [True, False])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 40, 31), (13, 33, 20), (40, 8, 9)])
def test_floats_times_narrow_weights(m: int, n: int, k: int, swapped: bool, constant: bool):
    """Columns of 8 bits become floats where they are read; so do rows."""
    p = Program((m, k), (k, n), arguments=[f32, i8], constants=[1] if constant else [])

    def body(b: Body) -> list[SSAValue]:
        sides = [b.args[0], b.op(arith.SIToFPOp, b.args[1], f32)]
        return [b.op(arith.AddfOp, b.args[2], b.op(arith.MulfOp, *(reversed(sides) if swapped else sides)))]

    written = [1, 0] if swapped else [0, 1]
    maps = [dims_map(3, [0, 2]), dims_map(3, [2, 1]), dims_map(3, written)]
    start = p.zeros(n, m) if swapped else p.zeros(m, n)
    out = p.emit.generic([p.x[0], p.x[1]], [start], maps, ["parallel", "parallel", "reduction"], body).results[0]
    run = Runner(FAMILY, p.dispatch(out))
    a, b = random((m, k), 1), integers((k, n), 8, 2)
    expected = a.astype(np.float64) @ b
    assert_close(run(a, b)[0], expected.T if swapped else expected)


def test_a_next_panel_is_asked_for_between_pairs():
    """Runs between two requests are of whole pairs, whatever divides the reduction."""
    for k in (1801, 1802, 2047):  # 31 steps would be the most
        p = narrow((48, k), (k, 1024), bits=(16, 8), constants=[1])
        plan = plan_of(FAMILY, p.dispatch(p.matmul(p.x[0], p.x[1])), machine("avx2"))
        assert isinstance(plan, ContractionPlan) and plan.pairs
        assert plan.prefetch.period == 30
    p = narrow((48, 1801), (1801, 1024), bits=(16, 8), constants=[1])
    run = Runner(FAMILY, p.dispatch(p.matmul(p.x[0], p.x[1])))
    a, b = integers((48, 1801), 16, 1), integers((1801, 1024), 8, 2)
    np.testing.assert_array_equal(run(a, b)[0], dot(a, b))
