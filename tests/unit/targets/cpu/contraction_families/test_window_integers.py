"""Windows in f32 over images that are stored as integers, against NumPy: as they lie, over copies, and with their
channels first; every buffer ends at an unreadable page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i8, i16, i32
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import Body, dims_map
from fuseline.targets.cpu.families.family import Family
from fuseline.targets.cpu.families.window.copies import CopiedWindowPlan
from fuseline.targets.cpu.families.window.planes import PlanesPlan
from fuseline.targets.cpu.isa import machine
from fuseline.targets.target import Refusal
from tests.draws import RNG
from tests.graphs.program import Program
from tests.kernels import Runner, assert_close

from .test_window import BODIES, CASES, FAMILY, Array, Case, dim, image_map, taps
from .test_window_copies import COPIED, Copying

ELEMENTS: dict[str, tuple[Any, int]] = {"int8": (i8, -128), "int16": (i16, -(1 << 15))}
SOME = ("3x3", "3x3 stride 2", "dilated", "odd channels", "batch", "2x2 stride 2", "one dimension", "11x11")


def _multiply_add(b: Body) -> Sequence[SSAValue]:
    return [b.op(arith.AddfOp, b.args[2], b.op(arith.MulfOp, b.op(arith.SIToFPOp, b.args[0], f32), b.args[1]))]


def _combine(name: str) -> Callable[[Body], Sequence[SSAValue]]:
    return lambda b: [b.op(BODIES[name][0], b.args[2], b.op(arith.SIToFPOp, b.args[0], f32))]


def _dispatch(case: Case, dtype: str, body: str | None, edge: int) -> DispatchView:
    """`body`: how the window is combined; None: as a depthwise convolution does."""
    element, loops = ELEMENTS[dtype][0], 2 * case.rank + 2
    window = [*range(case.rank + 2, loops)]
    shapes = [case.image, (*case.window, case.image[-1])][: 2 if body is None else 1]
    p = Program(*shapes, constants=[1] if body is None else [], arguments=[element, f32][: len(shapes)])
    filter_ = p.x[1] if body is None else p.empty(*case.window)
    maps = [
        image_map(case.rank, case.stride, case.dilation),
        dims_map(loops, [*window, case.rank + 1]) if body is None else case.window_map,
        case.out_map,
    ]
    out = p.zeros(*case.out, value=0.0 if body is None else BODIES[body][1])
    inside = _multiply_add if body is None else _combine(body)
    return p.dispatch(p.generic([case.padded(p, p.x[0], edge), filter_], [out], maps, case.kinds, inside)[0])


def _image(shape: Sequence[int], dtype: str) -> Array:
    return RNG.integers(-128, 128, shape).astype(dtype)


def _seen(case: Case, x: Array, edge: int) -> list[Array]:
    sides = [(0, 0), *[case.padding] * case.rank, (0, 0)]
    return taps(np.pad(x, sides, constant_values=edge), case.window, case.stride, case.dilation)


def _run(family: Family, case: Case, dtype: str, body: str | None = None, isa: str = "") -> Runner:
    """The dispatch makes what NumPy makes of the same numbers."""
    edge = ELEMENTS[dtype][1] if body == "max" else 0
    x, w = _image(case.image, dtype), RNG.standard_normal((*case.window, case.image[-1])).astype(np.float32)
    seen, filters = _seen(case, x, edge), w.astype(np.float64).reshape(-1, case.image[-1])
    expected = np.full(case.out, 0.0 if body is None else BODIES[body][1])
    for tap, factor in zip(seen, filters, strict=True):
        expected = expected + tap * factor if body is None else BODIES[body][2](expected, tap)
    run = Runner(family, _dispatch(case, dtype, body, edge), machine(isa) if isa else None)
    operands = (x, w) if body is None else (x,)
    if not isa:
        for at_end in (True, False):
            assert_close(run(*operands, at_end=at_end)[0], expected, bits=16)
    assert not run.unproved()
    return run


@pytest.mark.parametrize("dtype", ELEMENTS)
@pytest.mark.parametrize("name", SOME)
def test_depthwise(name: str, dtype: str):
    _run(FAMILY, CASES[name], dtype)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("name", SOME)
def test_pooling(name: str, body: str):
    _run(FAMILY, CASES[name], "int16", body)


@pytest.mark.parametrize("body", [None, "max"])
@pytest.mark.parametrize("dtype", ELEMENTS)
@pytest.mark.parametrize("name", [name for name in SOME if name in COPIED])
def test_over_a_copy(name: str, dtype: str, body: str | None):
    run = _run(Copying(), CASES[name], dtype, body)
    assert isinstance(run.plan, CopiedWindowPlan)


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
@pytest.mark.parametrize("body", [None, "max"])
def test_each_machine_has_a_kernel(isa: str, body: str | None):
    _run(FAMILY, CASES["3x3 stride 2"], "int16", body, isa)


def test_channels_first():
    shape, window = (2, 3, 11, 22), (3, 3)
    p = Program(shape, (3, *window), arguments=[i16, f32])
    image = AffineMap(6, 0, (dim(0), dim(1), dim(2) + dim(4), dim(3) + dim(5)))
    maps = [image, dims_map(6, [1, 4, 5]), dims_map(6, [0, 1, 2, 3])]
    padded = p.pad(p.x[0], [0, 0, 1, 1], [0, 0, 1, 1], 0)
    y = p.generic([padded, p.x[1]], [p.zeros(*shape)], maps, "pppprr", _multiply_add)[0]
    run = Runner(FAMILY, p.dispatch(y))
    assert isinstance(run.plan, PlanesPlan)
    x, w = _image(shape, "int16"), RNG.standard_normal((3, *window)).astype(np.float32)
    seen = taps(np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)]).transpose(0, 2, 3, 1), window, 1, 1)
    expected = sum(tap * w.reshape(3, -1)[:, i].astype(np.float64) for i, tap in enumerate(seen))
    assert_close(run(x, w)[0], np.asarray(expected).transpose(0, 3, 1, 2), bits=16)


def _squared(b: Body) -> Sequence[SSAValue]:
    wide = b.op(arith.SIToFPOp, b.args[0], f32)
    return [b.op(arith.AddfOp, b.args[2], b.op(arith.MulfOp, wide, wide))]


def _centred(b: Body) -> Sequence[SSAValue]:
    wide = b.op(arith.ExtSIOp, b.args[0], i32)
    return [b.op(arith.AddfOp, b.args[2], b.op(arith.SIToFPOp, b.op(arith.AddiOp, wide, wide), f32))]


@pytest.mark.parametrize("body", [_squared, _centred], ids=["squared", "computed"])
def test_a_body_that_does_more_is_refused(body: Callable[[Body], Sequence[SSAValue]]):
    case = CASES["3x3"]
    p = Program(case.image, arguments=[i16])
    maps = [image_map(2, 1, 1), case.window_map, case.out_map]
    x = case.padded(p, p.x[0], 0)
    y = p.generic([x, p.empty(*case.window)], [p.zeros(*case.out)], maps, case.kinds, body)[0]
    found = FAMILY.accepts(p.dispatch(y), machine())
    assert isinstance(found, Refusal) and found.code == "element-type"
