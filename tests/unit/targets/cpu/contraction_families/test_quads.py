"""Products of bytes by fours against NumPy: odd sizes, extremes, every way to read the rows; and what other machines
make of the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i8, i32
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.ir.build import Body, dims_map
from fuseline.targets.cpu.families.contraction.convolution import ConvolutionFamily
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.families.family import Family
from fuseline.targets.cpu.isa import cpu_flags, machine
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from tests.graphs.program import Program
from tests.kernels import Array, Runner

from .narrow import dot, integers, narrow

VNNI = machine("avx512vnni")
WITH_BYTES = ["avx512vnni", "avxvnni"]
FAMILY = ContractionFamily()
SIZES = [
    (1, 8, 3),
    (5, 16, 7),
    (6, 17, 8),
    (13, 1, 9),
    (7, 33, 1),
    (4, 20, 2),
    (49, 40, 65),
    (30, 96, 64),
    (3, 250, 18),
]


def product(
    p: Program,
    maps: Sequence[AffineMap],
    shape: Sequence[int],
    image: SSAValue,
    kinds: str,
    weights: SSAValue | None = None,
) -> SSAValue:
    """`out + u * w` over the argument `image`, without a sign, and the weights, argument 1, with one."""

    def body(b: Body) -> list[SSAValue]:
        wide = [b.op(arith.ExtUIOp, b.args[0], i32), b.op(arith.ExtSIOp, b.args[1], i32)]
        return [b.op(arith.AddiOp, b.args[2], b.op(arith.MuliOp, *wide))]

    iterators = ["parallel" if kind == "p" else "reduction" for kind in kinds]
    return p.emit.generic([image, weights or p.x[1]], [p.zeros(*shape)], list(maps), iterators, body).results[0]


def results(run: Runner, *arrays: Array) -> list[Array]:
    """Natively, beside pages that may not be touched, or evaluated where this processor cannot run the code."""
    if not cpu_flags().issuperset(run.isa.needs):
        return [run.evaluated(*arrays)[0]]
    return [run(*arrays)[0], run(*arrays, at_end=False)[0]]


def unsigned(a: Array) -> Array:
    """The numbers that bytes are without a sign."""
    return a.view(np.uint8).astype(np.int64)


def planned(run: Runner) -> ContractionPlan:
    assert isinstance(run.plan, ContractionPlan)
    return run.plan


@pytest.mark.parametrize("isa", [*WITH_BYTES, ""])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_products_of_any_size(m: int, n: int, k: int, constant: bool, isa: str):
    p = narrow((m, k), (k, n), bits=(8, 8), constants=[1] if constant else [])
    maps = [dims_map(3, [0, 2]), dims_map(3, [2, 1]), dims_map(3, [0, 1])]
    run = Runner(FAMILY, p.dispatch(product(p, maps, (m, n), p.x[0], "ppr")), machine(isa))
    taken = bool(run.isa.quad_dot) and constant and k > 2 and n > 1
    assert (planned(run).together == 4) is taken and (planned(run).loops.elements == ("i8", "i8")) is taken
    a, b = integers((m, k), 8, m + n), integers((k, n), 8, k)
    for found in results(run, a, b):
        np.testing.assert_array_equal(found, dot(unsigned(a), b))
    assert not check_bounds(run.kernel, (), int(str(run.plan.workgroups)))


@pytest.mark.parametrize("isa", [*WITH_BYTES, ""])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    ("turn_a", "turn_b", "turn_c"),
    [(True, False, False), (False, True, False), (True, True, True), (False, True, True)],
)
def test_products_of_any_orientation(turn_a: bool, turn_b: bool, turn_c: bool, constant: bool, isa: str):
    """Rows across memory are turned in 8 bits; where the bytes without a sign are columns, both are widened."""
    m, n, k = 21, 19, 38
    p = narrow(
        (k, m) if turn_a else (m, k), (n, k) if turn_b else (k, n), bits=(8, 8), constants=[1] if constant else []
    )
    maps = [
        dims_map(3, [2, 0] if turn_a else [0, 2]),
        dims_map(3, [1, 2] if turn_b else [2, 1]),
        dims_map(3, [1, 0] if turn_c else [0, 1]),
    ]
    run = Runner(FAMILY, p.dispatch(product(p, maps, (n, m) if turn_c else (m, n), p.x[0], "ppr")), machine(isa))
    assert (planned(run).together == 4) is (bool(run.isa.quad_dot) and constant and not turn_c)
    a, b = integers((m, k), 8, 1), integers((k, n), 8, 2)
    expected = dot(unsigned(a), b)
    for found in results(run, a.T.copy() if turn_a else a, b.T.copy() if turn_b else b):
        np.testing.assert_array_equal(found, expected.T if turn_c else expected)


@pytest.mark.parametrize(("first", "count", "vectors"), [(64, 64, 2), (48, 30, 1), (16, 64, 1), (8, 24, 0)])
def test_a_part_of_the_columns(first: int, count: int, vectors: int):
    """A block of them, as where a product and what follows it run block by block: a panel begins where it does."""
    m, n, k = 20, 128, 24
    p = narrow((m, k), (k, n), bits=(8, 8), constants=[1])
    p.element = i8
    weights = p.columns(p.x[1], first, count)
    p.element = i32
    maps = [dims_map(3, [0, 2]), dims_map(3, [2, 1]), dims_map(3, [0, 1])]
    run = Runner(FAMILY, p.dispatch(product(p, maps, (m, count), p.x[0], "ppr", weights)), VNNI)
    assert (planned(run).together == 4) is bool(vectors) and (not vectors or planned(run).tile.vectors == vectors)
    a, b = integers((m, k), 8, 1), integers((k, n), 8, 2)
    for found in results(run, a, b):
        np.testing.assert_array_equal(found, dot(unsigned(a), b[:, first : first + count]))


WINDOWS = [
    (7, 9, 8, 16, 3, 1, 1),
    (9, 8, 3, 24, 3, 2, 1),
    (12, 6, 1, 8, 5, 1, 2),
    (6, 7, 5, 9, 1, 2, 0),
    (11, 10, 16, 40, 3, 2, 1),
    (8, 9, 6, 33, 3, 1, 1),
]


@pytest.mark.parametrize("isa", [*WITH_BYTES, ""])
@pytest.mark.parametrize(("height", "width", "channels", "filters", "size", "stride", "low"), WINDOWS)
@pytest.mark.parametrize("padding", [0, 3, -1])
def test_convolutions(
    height: int, width: int, channels: int, filters: int, size: int, stride: int, low: int, padding: int, isa: str
):
    """Strides, few and odd channels; borders of any byte, 255 among them."""
    p = narrow((height, width, channels), (size, size, channels, filters), bits=(8, 8), constants=[1])
    p.element = i8
    image = p.pad(p.x[0], [low, low, 0], [low, low, 0], padding)
    p.element = i32
    rows, columns = ((extent + 2 * low - size) // stride + 1 for extent in (height, width))
    d0, d1, d2, d3, d4, d5 = (AffineExpr.dimension(i) for i in range(6))
    maps = [
        AffineMap(6, 0, (d0 * stride + d3, d1 * stride + d4, d5)),
        AffineMap(6, 0, (d3, d4, d5, d2)),
        AffineMap(6, 0, (d0, d1, d2)),
    ]
    family: Family = ConvolutionFamily() if size > 1 or stride > 1 else FAMILY
    run = Runner(family, p.dispatch(product(p, maps, (rows, columns, filters), image, "ppprrr")), machine(isa))
    a, w = integers((height, width, channels), 8, 1), integers((size, size, channels, filters), 8, 2)
    padded = np.pad(unsigned(a), [(low, low), (low, low), (0, 0)], constant_values=padding % 256)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (0, 1))[::stride, ::stride]
    expected = np.einsum("yxcij,ijcf->yxf", windows, w.astype(np.int64)).astype(np.int32)
    for found in results(run, a, w):
        np.testing.assert_array_equal(found, expected)


def test_the_instruction_is_used_and_the_evaluator_knows_it():
    p = narrow((5, 11), (11, 19), bits=(8, 8), constants=[1])
    maps = [dims_map(3, [0, 2]), dims_map(3, [2, 1]), dims_map(3, [0, 1])]
    run = Runner(FAMILY, p.dispatch(product(p, maps, (5, 19), p.x[0], "ppr")), VNNI)
    assert VNNI.quad_dot in print_llvm([run.kernel], VNNI)
    assert planned(run).constant_layouts[1].elements == 12 * 32
    a, b = integers((5, 11), 8, 1), integers((11, 19), 8, 2)
    np.testing.assert_array_equal(run.evaluated(a, b)[0], dot(unsigned(a), b))


def test_signs_decide_what_is_multiplied_by_fours():
    """Bytes with a sign in rows are widened, and so are rows of 16 bits."""
    for bits in (8, 16):
        p = narrow((12, 20), (20, 32), bits=(bits, 8), constants=[1])
        p.element = IntegerType(32)
        plan = planned(Runner(FAMILY, p.dispatch(p.matmul(p.x[0], p.x[1])), VNNI))
        assert plan.pairs and plan.loops.elements == ("i16", "i8")


def test_a_next_panel_is_asked_for_between_fours():
    """Runs between two requests are of whole steps of the kernel, whatever divides the reduction."""
    for k in (3601, 3602, 4095):
        p = narrow((96, k), (k, 1024), bits=(8, 8), constants=[1])
        maps = [dims_map(3, [0, 2]), dims_map(3, [2, 1]), dims_map(3, [0, 1])]
        plan = FAMILY.accepts(p.dispatch(product(p, maps, (96, 1024), p.x[0], "ppr")), VNNI)
        assert isinstance(plan, ContractionPlan) and plan.together == 4
        assert plan.prefetch.period and plan.prefetch.period % 4 == 0
