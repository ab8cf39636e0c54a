"""Dispatches as MLIR text, run on the kernel evaluator or natively between guard pages, compared with the oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

from fuseline.dispatch.view import DispatchView
from fuseline.evaluation.program import evaluate_function
from fuseline.ir import dim as d
from fuseline.ir.build import element_of
from fuseline.ir.context import new_context
from fuseline.ir.element_types import numpy_dtype
from fuseline.targets.cpu.families.nests.elementwise import Elementwise
from fuseline.targets.cpu.families.nests.loop_nest import LoopNest
from fuseline.targets.cpu.families.nests.rows import Rows
from fuseline.targets.cpu.families.sequential.order import OrderFamily
from fuseline.targets.cpu.families.sequential.scan import ScanFamily
from fuseline.targets.cpu.families.sequential.scatter import ScatterFamily
from fuseline.targets.cpu.families.sequential.selection import SelectionFamily
from fuseline.targets.cpu.isa import Machine, machine
from tests.kernels import Runner, shape_at

Array = NDArray[Any]


def parse(text: str) -> DispatchView:
    """The first function in `text`, verified."""
    module = Parser(new_context(), text).parse_module()
    module.verify()
    return DispatchView(next(op for op in module.ops if isinstance(op, FuncOp)))


NESTS = (ScanFamily(), OrderFamily(), ScatterFamily(), SelectionFamily(), Rows(), Elementwise(), LoopNest())


def build(view: DispatchView, isa: Machine) -> Runner:
    """The kernel of a dispatch, by the first of scan, order, scatter, selection, rows, elementwise and loop nest that
    accepts it."""
    return Runner(NESTS, view, isa)


def inputs(view: DispatchView, sizes: Mapping[str, int], seed: int) -> list[Array]:
    """Random arguments: normal floats, small integers, fair coins."""
    rng = np.random.default_rng(seed)
    return [_random(rng, shape_at(view, value, sizes), numpy_dtype(element_of(value))) for value in view.tensors]


def _random(rng: np.random.Generator, shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind == "i":
        return rng.integers(-9, 10, shape).astype(dtype)
    return (2 * rng.standard_normal(shape)).astype(dtype)


def check(
    text: str,
    *,
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
    isa: Machine | None = None,
    family: str = "",
    bits: int = 17,
    proved: bool = True,
    compiled: bool = False,
) -> None:
    """Run `text`'s function on the evaluator, which checks every access, in one range of workgroups and in several, and
    compare with the oracle; `compiled`: also natively, at both ends of a page."""
    view, sizes = parse(text), dict(sizes or {})
    run = build(view, isa or machine())
    assert family in ("", run.family.name)
    arrays = inputs(view, sizes, seed)
    want = evaluate_function(view.entry, [*arrays, *(np.asarray(sizes[name], np.int64) for name in view.size_names)])
    assert not proved or run.unproved(sizes) == []
    few = d.evaluate(run.plan.workgroups, sizes) < 4  # else each of two ranges has several workgroups
    found = [run.evaluated(*arrays, sizes=sizes, parts=parts) for parts in ((1, 3) if few else (2,))]
    if compiled:
        found += [run(*arrays, sizes=sizes, at_end=at_end, parts=parts) for at_end, parts in ((True, 1), (False, 3))]
    for results in found:
        for one, expected in zip(results, want, strict=True):
            compare(one, expected, bits)


def compare(found: Array, expected: Array, bits: int) -> None:
    """Integers equal; floats equal up to `2**-bits` of the largest magnitude, NaN and infinities where they should
    be."""
    assert found.shape == expected.shape
    if found.dtype.kind not in "fV":
        np.testing.assert_array_equal(found, expected)
        return
    wide, goal = found.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(goal)
    scale = float(np.abs(goal[finite]).max(initial=0.0))
    bits = {2: 7, 4: bits, 8: bits}[found.dtype.itemsize]
    np.testing.assert_allclose(wide, goal, rtol=2.0**-bits, atol=2.0**-bits * max(scale, 1e-30))
