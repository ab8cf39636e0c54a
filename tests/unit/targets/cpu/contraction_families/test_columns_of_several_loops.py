"""Columns that the result tells apart, as heads and their width: panels of all of them, packed as one, whatever reads
the result by head."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, f64
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.ir.build import dims_map
from fuseline.targets.cpu.families.contraction.convolution import ConvolutionFamily
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.families.winograd.family import WinogradFamily
from fuseline.targets.cpu.families.winograd.plan import WinogradPlan
from tests.draws import RNG
from tests.graphs.program import Program, Size
from tests.kernels import Array, Runner, assert_close, random

from .test_convolution import convolve


def _by_head(p: Program, y: object, scale: object, rank: int, head: int) -> object:
    return p.over(y, (scale, dims_map(rank, [head])), body=lambda b: b.op(arith.MulfOp, *b.args[:2]))  # pyright: ignore


@pytest.mark.parametrize("element", [f32, f64])
@pytest.mark.parametrize("loops", [2, 3])
@pytest.mark.parametrize("width", [1, 5, 12, 24, 64])
def test_heads_and_their_width(width: int, loops: int, element: object):
    """Every panel is full where a head alone would leave lanes idle; where it does not it has panels of its own."""
    m, k = int(RNG.integers(1, 40)), int(RNG.integers(2, 90))
    columns = [int(n) for n in RNG.integers(2, 6, loops - 1)] + [width]
    dtype = np.float32 if element == f32 else np.float64
    p = Program((m, k), (k, *columns), (columns[0],), constants=[1], element=element)  # pyright: ignore
    own = list(range(1, loops + 1))
    maps = [dims_map(loops + 2, [0, loops + 1]), dims_map(loops + 2, [loops + 1, *own])]
    maps.append(dims_map(loops + 2, [0, *own]))
    y = p.multiply_add(p.x[0], p.x[1], p.zeros(m, *columns), maps, "p" * (loops + 1) + "r")
    run = Runner(ContractionFamily(), p.dispatch(_by_head(p, y, p.x[2], loops + 1, 1)))  # pyright: ignore
    a, b, scale = random((m, k), 1, dtype), random((k, *columns), 2, dtype), random((columns[0],), 3, dtype)
    wanted = np.tensordot(a.astype(np.float64), b, 1) * scale.reshape(-1, *[1] * (loops - 1))
    for at_end in (True, False):
        assert_close(run(a, b, scale, at_end=at_end)[0], wanted)
    assert isinstance(run.plan, ContractionPlan)
    if 1 < width and width % 16:
        assert len(run.plan.loops.column.loops) == loops


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(("taps", "step", "named"), [(3, 1, False), (3, 1, True), (5, 1, False), (3, 2, False)])
def test_groups_of_channels_behind_a_convolution(taps: int, step: int, named: bool, first: bool):
    """By minimal filtering or not, written with channels first or last."""
    c, groups, each = int(RNG.integers(33, 60)), int(RNG.integers(2, 5)), int(RNG.choice([3, 8, 16, 21]))
    image = [int(n) for n in RNG.integers(20, 30, 2)]
    out = [(n - taps) // step + 1 for n in image]
    sizes: list[Size] = ["h" if named else image[0], image[1]]
    p = Program((*sizes, c), (taps, taps, c, groups, each), (groups,), ("o",), constants=[1])
    pixels: list[Size] = ["o" if named else out[0], out[1]]
    dim = AffineExpr.dimension
    order = [2, 3, 0, 1] if first else [0, 1, 2, 3]
    maps = [
        AffineMap(7, 0, (dim(0) * step + dim(4), dim(1) * step + dim(5), dim(6))), dims_map(7, [4, 5, 6, 2, 3]),
        dims_map(7, order),
    ]  # fmt: skip
    loops: list[Size] = [*pixels, groups, each]
    y = p.multiply_add(p.x[0], p.x[1], p.zeros(*(loops[i] for i in order)), maps, "ppppr" + "rr")
    view = p.dispatch(_by_head(p, y, p.x[2], 4, order.index(2)))  # pyright: ignore
    run = Runner([WinogradFamily(), ConvolutionFamily()], view)
    assert isinstance(run.plan, WinogradPlan if step == 1 else ContractionPlan)
    a, w, scale = random((*image, c), 1), random((taps, taps, c, groups, each), 2), random((groups,), 3)
    plain = convolve(a[None], w.reshape(taps, taps, c, -1), (step, step), (1, 1))[0]
    wanted = plain.reshape(*out, groups, each) * scale[:, None]
    known = {"h": image[0], "o": out[0]} if named else {"o": 1}
    found: Array = run(a, w, scale, random((out[0] if named else 1,), 4), sizes=known, parts=2)[0]
    assert_close(found, wanted.transpose(order), bits=14, least=1.0)
