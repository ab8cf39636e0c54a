"""Reductions too long to be packed whole, of operands that are computed: packed and added up a block at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Attribute

import fuseline
from fuseline.analysis.reduction_block import BLOCK_STEPS
from fuseline.ir.build import dims_map
from fuseline.targets.cpu.families.contraction.convolution import ConvolutionFamily
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan
from fuseline.targets.cpu.families.contraction.reduction_blocks import SUMS_BYTES, with_sums_in_scratch
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.tiles import Blocks, Tile
from tests.draws import RNG
from tests.graphs.program import Program, Size
from tests.kernels import Array, Runner, assert_close, plan_of, random

from .test_convolution import convolve, maps_of

CONTRACTION, CONVOLUTION = ContractionFamily(), ConvolutionFamily()


def exact(a: Array, b: Array) -> Array:
    return np.maximum(a, 0).astype(np.float64) @ b


@pytest.mark.parametrize("k", [1, BLOCK_STEPS - 1, BLOCK_STEPS, BLOCK_STEPS + 1, 3 * BLOCK_STEPS, 1000])
@pytest.mark.parametrize(("m", "n"), [(1, 40), (9, 1), (13, 70), (200, 33), ("m", "n")])
def test_sums_of_unknown_length(m: Size, n: Size, k: int):
    """Rows computed, columns where they lie or packed."""
    p = Program((m, "k"), ("k", n))
    run = Runner(CONTRACTION, p.dispatch(p.matmul(p.relu(p.x[0]), p.x[1])))
    assert run.plan.notes["lhs"] in (("linear", "packed") if 1 in (m, n) else ("packed",))
    rows, columns = m if isinstance(m, int) else 37, n if isinstance(n, int) else 50
    sizes = {"k": k} | ({"m": rows, "n": columns} if m == "m" else {})
    a, b = random((rows, k), 1), random((k, columns), 2)
    assert_close(run(a, b, sizes=sizes)[0], exact(a, b))


def test_no_access_leaves_its_buffer():
    p = Program((11, "k"), (19, "k"))
    maps = [dims_map(3, [0, 2]), dims_map(3, [1, 2]), dims_map(3, [0, 1])]
    run = Runner(CONTRACTION, p.dispatch(p.multiply_add(p.relu(p.x[0]), p.relu(p.x[1]), p.zeros(11, 19), maps, "ppr")))
    assert (run.plan.notes["lhs"], run.plan.notes["rhs"]) == ("packed", "packed")
    for k in (5, BLOCK_STEPS + 3):
        a, b = random((11, k), 1), random((19, k), 2)
        assert_close(run.evaluated(a, b, sizes={"k": k})[0], exact(a, np.maximum(b.T, 0)))


@pytest.mark.parametrize("element", [f32, f64])
@pytest.mark.parametrize("computed", [(True, False), (False, True), (True, True)])
def test_either_operand_may_be_computed(computed: tuple[bool, bool], element: Attribute):
    """Of random sizes; what is not computed starts from another operand's values, with an epilogue behind."""
    dtype = np.float32 if element == f32 else np.float64
    # Rows of up to 5461 steps fit the scratch a tile at a time: beside few columns, they are packed whole.
    m, n, k = (int(RNG.integers(*ends)) for ends in ((80, 150), (33, 130), (5600, 9000)))
    p = Program((m, k), (k, n), (m, n), element=element)
    a, b = (p.relu(x) if how else x for x, how in zip(p.x, computed, strict=False))
    maps = [dims_map(3, [0, 2]), dims_map(3, [2, 1]), dims_map(3, [0, 1])]
    run = Runner(CONTRACTION, p.dispatch(p.relu(p.multiply_add(a, b, p.x[2], maps, "ppr"))))
    assert run.plan.notes["steps"] == f"{BLOCK_STEPS} at a time"
    a, b, c = random((m, k), 1, dtype), random((k, n), 2, dtype), random((m, n), 3, dtype)
    left, right = (np.maximum(x, 0) if how else x for x, how in zip((a, b), computed, strict=True))
    wanted = np.maximum(left.astype(np.float64) @ right + c, 0)
    assert_close(run(a, b, c)[0], wanted)


@pytest.mark.parametrize("computed", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("named", [(), (0,), (1,), (0, 1), (0, 1, 2)])
def test_several_loops_are_cut(named: tuple[int, ...], computed: tuple[bool, bool]):
    """Loops that do not lie as one in both operands, of lengths that are known or not."""
    m, n = (int(RNG.integers(*ends)) for ends in ((60, 130), (33, 90)))
    steps = [int(RNG.integers(*ends)) for ends in ((2, 5), (90, 300), (300, 400))]
    k = [f"k{axis}" if axis in named else size for axis, size in enumerate(steps)]
    p = Program((m, *k), (k[2], k[0], k[1], n))
    maps = [dims_map(5, [0, 2, 3, 4]), dims_map(5, [4, 2, 3, 1]), dims_map(5, [0, 1])]
    a, b = (p.relu(x) if how else x for x, how in zip(p.x, computed, strict=True))
    run = Runner(CONTRACTION, p.dispatch(p.multiply_add(a, b, p.zeros(m, n), maps, "pprrr")))
    assert isinstance(run.plan, ContractionPlan) and run.plan.cut is not None and len(run.plan.cut.steps) > 1
    for ends in (steps, [1, *steps[1:]], [*steps[:2], 7]) if len(named) == 3 else (steps,):
        a, b = random((m, *ends), 1), random((ends[2], *ends[:2], n), 2)
        left, right = (np.maximum(x, 0) if how else x for x, how in zip((a, b), computed, strict=True))
        wanted = np.einsum("mabc,cabn->mn", left.astype(np.float64), right)
        assert_close(run(a, b, sizes=dict(zip(("k0", "k1", "k2"), ends, strict=True)))[0], wanted)


def test_constant_columns_stay_as_they_are_packed():
    p = Program((60, 7000), (7000, 90), constants=[1])
    run = Runner(CONTRACTION, p.dispatch(p.matmul(p.relu(p.x[0]), p.x[1])))
    assert (run.plan.notes["lhs"], run.plan.notes["rhs"]) == ("packed", "constant")
    a, b = random((60, 7000), 1), random((7000, 90), 2)
    assert_close(run(a, b)[0], exact(a, b))


@pytest.mark.parametrize("channels", [1000, 5001])
def test_windows_cut_one_of_their_loops(channels: int):
    p = Program((1, 6, 9, channels), (3, 2, channels, 10))
    y = p.multiply_add(p.relu(p.x[0]), p.relu(p.x[1]), p.zeros(1, 4, 8, 10), maps_of(2, (1, 1), (1, 1)), "pppprrr")
    run = Runner(CONVOLUTION, p.dispatch(y))
    assert run.plan.notes["lhs"] == "boxed" and run.plan.notes["steps"] == "64 at a time"
    a, w = random((1, 6, 9, channels), 0), random((3, 2, channels, 10), 1)
    wanted = convolve(np.maximum(a, 0).astype(np.float64), np.maximum(w, 0), (1, 1), (1, 1))
    assert_close(run(a, w)[0], wanted)


def test_errors_grow_with_the_blocks_and_not_with_the_steps():
    p = Program((3, "k"), ("k", 20))
    run = Runner(CONTRACTION, p.dispatch(p.matmul(p.relu(p.x[0]), p.x[1])))
    k = 100 * BLOCK_STEPS
    a, b = np.abs(random((3, k), 1)), np.abs(random((k, 20), 2))
    found, wanted = run(a, b, sizes={"k": k})[0], exact(a, b)
    one_by_one = np.cumsum(a[:, :, None] * b[None], axis=1, dtype=np.float32)[:, -1]
    assert np.abs(found - wanted).max() < 0.3 * np.abs(one_by_one - wanted).max()


def test_the_sums_of_a_workgroup_fit_their_scratch():
    for blocks in (Blocks(1, 40, 2, columns_outer=True), Blocks(7, 3, 9, columns_outer=False), Blocks(1, 1, 100, True)):
        found = with_sums_in_scratch(blocks, Tile(12, 4), 256)
        assert found.lines * found.tiles * found.panels * 12 * 256 <= SUMS_BYTES
        assert found.lines <= blocks.lines and found.tiles <= blocks.tiles and found.panels <= blocks.panels
    assert with_sums_in_scratch(Blocks(1, 2, 3, columns_outer=True), Tile(12, 4), 256).panels == 3


@pytest.mark.parametrize("k", [64, 700])
def test_what_fits_is_packed_whole(k: int):
    p = Program((36, k), (k, 64))  # in tiles of any number of rows no more than 40
    plan = plan_of(CONTRACTION, p.dispatch(p.matmul(p.relu(p.x[0]), p.x[1])), machine())
    assert isinstance(plan, ContractionPlan) and plan.cut is None and "steps" not in plan.notes


HALVES = """func.func @main(%a: tensor<?x?xf16>, %b: tensor<?x?xf16>) -> tensor<?x?xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %a, %c0 : tensor<?x?xf16>
  %n = tensor.dim %b, %c1 : tensor<?x?xf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%m, %n) : tensor<?x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = linalg.matmul ins(%a, %b : tensor<?x?xf16>, tensor<?x?xf16>) outs(%f : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}"""


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_halves_of_unknown_sizes_are_one_dispatch(tmp_path: Path, threads: int):
    (tmp_path / "halves.mlir").write_text(HALVES)
    program = fuseline.compile(tmp_path / "halves.mlir", threads=threads)
    assert len(program.record.dispatches) == 1
    for shape in [(1, 1, 1), *(tuple(int(size) for size in RNG.integers(1, 700, 3)) for _ in range(4))]:
        a, b = (RNG.standard_normal(s).astype(np.float16) for s in (shape[:2], shape[1:]))
        (found,) = program.run({"a": a, "b": b}).values()
        assert_close(found, a.astype(np.float64) @ b.astype(np.float64))
