"""Kernels built from plans, without the families that choose them, and the plans themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.analysis.structured import StructuredOp, is_generic
from fuseline.dispatch.view import DispatchView
from fuseline.evaluation import evaluate_function
from fuseline.ir.build import dims_map
from fuseline.ir.dim import evaluate as evaluate_size
from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.emit.coordinates import Index
from fuseline.targets.cpu.emit.pair_packing import PairPacker
from fuseline.targets.cpu.families.blocked.block import choose_tiles
from fuseline.targets.cpu.families.blocked.dispatch import blocked_dispatch
from fuseline.targets.cpu.families.blocked.family import BlockedFamily
from fuseline.targets.cpu.families.blocked.kernel import BlockedKernel
from fuseline.targets.cpu.families.blocked.phases import streamed_phases
from fuseline.targets.cpu.families.blocked.plan import BlockedPlan
from fuseline.targets.cpu.families.blocked.streaming import streamed
from fuseline.targets.cpu.families.contraction.loops import contraction_loops
from fuseline.targets.cpu.families.contraction.plan import ContractionPlan, plan_contraction
from fuseline.targets.cpu.families.contraction.results import result_paths
from fuseline.targets.cpu.families.contraction.rows import ROW_SLACK, RowReader
from fuseline.targets.cpu.families.contraction.tile import RowTile, TileRows, place
from fuseline.targets.cpu.families.family import Plan, Policy
from fuseline.targets.cpu.families.nests.reducing import for_each_point, reduce_together
from fuseline.targets.cpu.families.root.kernel import RootKernel
from fuseline.targets.cpu.families.root.results import RootResults
from fuseline.targets.cpu.families.window.copied_kernel import CopiedWindowKernel
from fuseline.targets.cpu.families.window.groups import grouped_window_loops, plan_groups
from fuseline.targets.cpu.families.window.kernel import WindowKernel
from fuseline.targets.cpu.families.window.loops import window_loops
from fuseline.targets.cpu.families.window.plan import plan_window
from fuseline.targets.cpu.families.winograd.kernel import WinogradKernel
from fuseline.targets.cpu.families.winograd.plan import WinogradPlan
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand
from fuseline.targets.target import Refusal
from tests.graphs.program import Program
from tests.kernel_ir.evaluate import evaluate
from tests.kernels import arrays_for, assert_close, packed
from tests.unit.targets.cpu.emit.pulled import pulled
from tests.unit.targets.cpu.winograd.convolutions import Case, Forced

AVX2 = machine("avx2")
Build = Callable[[Any, KernelBuilder], Any]


def _runs(view: DispatchView, plan: Plan | Refusal, kernel: Build, *, bits: int = 18) -> None:
    """What the kernel of a plan computes, all workgroups at once and one by one, is what the dispatch means."""
    assert not isinstance(plan, Refusal), plan
    k = KernelBuilder("k", AVX2)
    kernel(plan, k).emit()
    built, arrays = k.finish(), arrays_for(view)
    expected = evaluate_function(view.entry, arrays)
    operands = [packed(a, plan.constant_layouts[i]) if i in plan.constant_layouts else a for i, a in enumerate(arrays)]
    count = evaluate_size(plan.workgroups, {})
    for ranges in ([(0, count)], [(i, i + 1) for i in range(count)]):
        outs = [np.full(one.shape, np.nan, np.float32) for one in expected]
        for begin, end in ranges:
            evaluate(built, [*(a.copy() for a in operands), *outs], [], begin, end)
        for found, wanted in zip(outs, expected, strict=True):
            assert_close(found, wanted, bits=bits)


dim = AffineExpr.dimension


def _depthwise(height: int, width: int, channels: int, taps: int, *, constant: bool = True) -> DispatchView:
    """`out[h, w, c] = sum over i, j of x[h + i, w + j, c] * f[i, j, c]`, then Relu."""
    p = Program((height, width, channels), (taps, taps, channels), constants=[1] if constant else [])
    maps = [
        AffineMap(5, 0, (dim(0) + dim(3), dim(1) + dim(4), dim(2))),
        dims_map(5, [3, 4, 2]),
        dims_map(5, [0, 1, 2]),
    ]
    out = p.zeros(height - taps + 1, width - taps + 1, channels)
    return p.dispatch(p.relu(p.multiply_add(p.x[0], p.x[1], out, maps, "ppprr")))


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("width", "channels"), [(9, 8), (7, 13)])
def test_a_window_channel_by_channel(width: int, channels: int, constant: bool) -> None:
    view = _depthwise(6, width, channels, 3, constant=constant)
    loops = window_loops(view)
    assert not isinstance(loops, Refusal)
    _runs(view, plan_window(loops, AVX2), WindowKernel)


@pytest.mark.parametrize(("combine", "start"), [(arith.MaximumfOp, -9.0), (arith.AddfOp, 0.5)])
def test_a_pooling(combine: Any, start: float) -> None:
    p = Program((7, 10, 8), (3, 3))
    maps = [
        AffineMap(5, 0, (dim(0) * 2 + dim(3), dim(1) * 2 + dim(4), dim(2))),
        dims_map(5, [3, 4]),
        dims_map(5, [0, 1, 2]),
    ]
    value = p.generic(
        [p.x[0], p.x[1]],
        [p.zeros(3, 4, 8, value=start)],
        maps,
        "ppprr",
        lambda b: [b.op(combine, b.args[2], b.args[0])],
    )[0]
    view = p.dispatch(value)
    loops = window_loops(view)
    assert not isinstance(loops, Refusal) and loops.filter is None
    _runs(view, plan_window(loops, AVX2), WindowKernel)


def _grouped(groups: int, inputs: int, outputs: int, *, width: int = 7, taps: int = 3) -> DispatchView:
    """`out[h, w, g, o] = sum over i, j, c of x[h + i, w + j, g, c] * f[i, j, c, g, o]`."""
    p = Program((5, width, groups, inputs), (taps, taps, inputs, groups, outputs), constants=[1])
    maps = [
        AffineMap(7, 0, (dim(0) + dim(4), dim(1) + dim(5), dim(2), dim(6))),
        dims_map(7, [4, 5, 6, 2, 3]),
        dims_map(7, [0, 1, 2, 3]),
    ]
    out = p.zeros(5 - taps + 1, width - taps + 1, groups, outputs)
    return p.dispatch(p.multiply_add(p.x[0], p.x[1], out, maps, "pppprrr"))


@pytest.mark.parametrize(("groups", "inputs", "outputs"), [(4, 4, 4), (3, 2, 8), (8, 3, 2)])
def test_a_window_over_narrow_groups(groups: int, inputs: int, outputs: int) -> None:
    view = _grouped(groups, inputs, outputs)
    loops = grouped_window_loops(view)
    assert not isinstance(loops, Refusal) and loops.groups is not None
    assert (loops.groups.inputs, loops.groups.outputs) == (inputs, outputs)
    _runs(view, plan_groups(loops, AVX2), CopiedWindowKernel)


@pytest.mark.parametrize(
    ("view", "code"),
    [
        (lambda: _depthwise(6, 9, 8, 3), "not-a-convolution"),
        (lambda: _grouped(4, 32, 12), None),
        (lambda: _grouped(2, 4, 7), None),
    ],
)
def test_what_is_done_in_another_way(view: Callable[[], DispatchView], code: str | None) -> None:
    loops = grouped_window_loops(view())
    found = loops if isinstance(loops, Refusal) else plan_groups(loops, AVX2)
    assert isinstance(found, Refusal)
    assert found.code == (code or {12: "long-groups", 7: "uneven-groups"}[_outputs(view())])


def _outputs(view: DispatchView) -> int:
    size = view.shapes.dims(view.results[0])[-1]
    assert isinstance(size, int)
    return size


@pytest.mark.parametrize(("image", "channels"), [((7, 9), (8, 16)), ((6, 6), (5, 8))])
def test_a_convolution_by_minimal_filtering(image: tuple[int, int], channels: tuple[int, int]) -> None:
    view = Case(image, channels).view
    plan = Forced(outputs=2, tiles=3).accepts(view, AVX2)
    assert isinstance(plan, WinogradPlan)
    _runs(view, plan, WinogradKernel, bits=13)


# several roots --------------------------------------------------------------------------------------------------------


def _two_products() -> DispatchView:
    p = Program((40, 12), (12, 24), (24, 8))
    return p.dispatch(p.matmul(p.relu(p.matmul(p.x[0], p.x[1])), p.x[2]))


@pytest.mark.parametrize("threads", [1, 4])
def test_sub_kernels_run_block_by_block(threads: int) -> None:
    view = _two_products()
    plan = BlockedFamily(Policy(threads=threads)).accepts(view, AVX2)
    assert isinstance(plan, BlockedPlan) and len(plan.sub_kernels) == 2
    _runs(view, plan, BlockedKernel, bits=16)


def test_blocks_are_chosen_within_their_loops() -> None:
    view = _two_products()
    dispatch = blocked_dispatch(view)
    for threads in (1, 2, 16):
        found = choose_tiles(dispatch, [], AVX2, Policy(threads=threads))
        assert not isinstance(found, Refusal) and found.price[0] == 0 and found.price[1] > 0
        for axis, tile in found.tiles.items():
            assert tile.full == dispatch.axes.extents[axis] == 40 and 1 <= tile.size < 40
            assert (tile.rest is None) == (40 % tile.size == 0 or tile.size == 1)
    nothing = Program((0, 12), (12, 24), (24, 8))
    empty = nothing.dispatch(nothing.matmul(nothing.relu(nothing.matmul(nothing.x[0], nothing.x[1])), nothing.x[2]))
    refused = choose_tiles(blocked_dispatch(empty), [], AVX2, Policy(threads=1))
    assert isinstance(refused, Refusal) and refused.code == "empty"


def test_a_dispatch_without_a_softmax_has_nothing_to_stream() -> None:
    assert not [found for found in streamed(_two_products()) if streamed_phases(found) is not None]


# roots ----------------------------------------------------------------------------------------------------------------


class _Naive(RootKernel):
    """A product without tiles: one row per workgroup, a vector of columns after the other."""

    def workgroup(self, number: Operand) -> tuple[Operand, ...]:
        kernel, buffers = self.kernel, self.buffers
        a, b = (buffers.argument(value) for value in self.root.inputs)  # pyright: ignore[reportArgumentType]
        (_, depth), (_, width) = ([buffers.operand(size) for size in buffers.dims(v)] for v in self.root.inputs)

        def columns(at: Operand) -> tuple[()]:
            loops: list[Any] = [Index(number), Index(at, 1), Index(0)]
            (start,) = self.results.starts(1, [None], lambda row, v: loops)

            def step(i: Operand, total: Any) -> tuple[Any, ...]:
                left = kernel.load(a, kernel.add(kernel.mul(number, depth), i))
                right = kernel.load(b, kernel.add(kernel.mul(i, width), at), 8)
                return (kernel.fma(kernel.splat(left, 8), right, total),)

            (total,) = kernel.loop(0, depth, 1, step, [start])  # pyright: ignore[reportArgumentType]
            self.results.store([total], [None], lambda row, v: loops)
            return ()

        kernel.loop(0, width, 8, columns)  # pyright: ignore[reportArgumentType]
        return ()


class _InRuns(_Naive):
    """The same, the rows of a run counted from the first of them, which is found as the run is entered."""

    first: Operand = 0

    def enter(self, run: Operand) -> None:
        self.first = self.kernel.mul(run, self.shared_by or 1)

    def workgroup(self, number: Operand) -> tuple[Operand, ...]:
        return super().workgroup(number if self.shared_by is None else self.kernel.add(self.first, number))


@pytest.mark.parametrize("shared_by", [None, 1, 2, 5])
@pytest.mark.parametrize("start", ["number", "tensor"])
def test_the_skeleton_of_a_root(start: str, shared_by: int | None) -> None:
    p = Program((5, 6), (6, 16), (16,), (5, 16))
    maps = [dims_map(3, [0, 2]), dims_map(3, [2, 1]), dims_map(3, [0, 1])]
    init = p.zeros(5, 16, value=1.5) if start == "number" else p.x[3]
    product = p.multiply_add(p.x[0], p.x[1], init, maps, "ppr")
    biased = p.relu(p.bias(product, p.x[2], 1))
    view = p.dispatch(biased, product)
    root, paths = view.root_view, result_paths(view)
    assert root is not None and not isinstance(paths, Refusal)
    plan = Plan(view=view, workgroups=5)

    class Skeleton:
        """The kernel of the plan."""

        def __init__(self, plan: Plan, kernel: KernelBuilder) -> None:
            self.made = _InRuns(plan, kernel, root, paths, 8)
            self.made.shared_by = shared_by

        def emit(self) -> None:
            assert isinstance(self.made.results, RootResults)
            self.made.emit()

    _runs(view, plan, Skeleton)


# contractions ---------------------------------------------------------------------------------------------------------


def _contraction(m: int, k: int, n: int) -> tuple[DispatchView, ContractionPlan]:
    p = Program((m, k), (k, n))
    view = p.dispatch(p.matmul(p.unary(p.x[0]), p.x[1]))
    loops = contraction_loops(view)
    assert not isinstance(loops, Refusal)
    plan = plan_contraction(loops, AVX2)
    assert not isinstance(plan, Refusal)
    return view, plan


@pytest.mark.parametrize(
    ("valid", "expected"), [(None, [10, 11, 12, 13]), (4, [10, 11, 12, 13]), (2, [10, 11, 11, 11]), (1, [10] * 4)]
)
def test_a_row_that_is_missing_repeats_the_last(valid: int | None, expected: list[int]) -> None:
    k = KernelBuilder("k", AVX2)
    tile = RowTile({}, 0, 10, 4, valid)
    assert [tile.position(k, row) for row in range(4)] == expected


def test_the_loops_of_a_row() -> None:
    view, plan = _contraction(37, 12, 48)
    emitter = BodyEmitter(KernelBuilder("k", AVX2), view)
    loops = TileRows.loops(emitter, plan, RowTile({}, 0, 8, 4), 9)
    assert sorted(index.base for index in loops if isinstance(index, Index) and isinstance(index.base, int)) == [
        0,
        0,
        9,
    ]
    at: list[Any] = [Index(0)] * 3
    place(emitter.buffers, at, plan.loops.column, Index(5))
    assert [index.base for index in at] == [0, 5, 0]


def test_packed_rows_lie_apart() -> None:
    view, plan = _contraction(37, 12, 48)
    reader = RowReader(plan, BodyEmitter(KernelBuilder("k", AVX2), view))
    assert plan.lhs_mode == "packed" and reader.row_length == 12 + ROW_SLACK
    assert reader.buffer is not None and reader.padding_row is None and not reader.peels
    assert reader.buffer.extent == plan.blocks.lines * reader.rows_per_line * reader.row_length


# reductions at points, pairs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("taps", [3, 40])
def test_several_points_are_reduced_in_one_walk(taps: int) -> None:
    p = Program((6, taps))
    value = p.reduce(p.x[0])
    view = p.dispatch(value)
    assert is_generic(value.owner)
    op = StructuredOp(value.owner)
    (x,) = arrays_for(view)

    def pull(e: BodyEmitter, v: Any, index: Sequence[Any], lanes: int, active: Any) -> Any:
        points = [[Index(0), Index(0)], [index[0], Index(0)]]
        (_,), (found,) = reduce_together(e, [(op, point) for point in points], lanes, active)
        return found

    for lanes in (1, 4):
        np.testing.assert_allclose(pulled(view, [x], lanes=lanes, pull=pull), x.sum(1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("extents", [[3, 4], [5, 7], [2]])
def test_a_walk_meets_every_tap_in_order(extents: list[int]) -> None:
    p = Program((4, 4))
    view = p.dispatch(p.unary(p.x[0]))
    e = BodyEmitter(KernelBuilder("k", AVX2), view)
    k = e.kernel
    out = k.binding(0, "f32", 64, writable=True)

    def visit(taps: Any, carried: Sequence[Any]) -> Sequence[Any]:
        number: Any = 0
        for loop, extent in enumerate(extents):
            number = k.add(k.mul(number, extent), taps[loop])
        (count,) = carried
        k.store(out, number, k.cast(count, "f32"))
        return (k.add(count, 1),)

    for_each_point(e, list(enumerate(extents)), {}, [k.as_value(0)], visit)
    found = np.full(64, -1, np.float32)
    evaluate(k.finish(), [found])
    total = int(np.prod(extents))
    assert found[:total].tolist() == list(range(total)) and (found[total:] == -1).all()


@pytest.mark.parametrize("steps", [1, 2, 5, 8])
@pytest.mark.parametrize("cuts", [(), (2,)])
def test_pairs_lie_side_by_side(steps: int, cuts: tuple[int, ...]) -> None:
    """`[step / 2][column][2]`; an odd last step stands beside a zero."""
    if any(cut >= steps for cut in cuts):
        cuts = ()
    k = KernelBuilder("k", AVX2)
    source, buffer = k.binding(0, "i16", steps * 8), k.binding(1, "i16", 8 * (steps + steps % 2), writable=True)
    packer = PairPacker(k, buffer, 8, 1)
    packer.copy([steps], [8], [None], lambda at, v, active: k.load(source, k.mul(at[-1], 8), 8), [cuts])
    numbers = np.random.default_rng().integers(-99, 99, (steps, 8)).astype(np.int16)
    found = np.full(8 * (steps + steps % 2), 7, np.int16)
    evaluate(k.finish(), [numbers.reshape(-1), found])
    whole = np.concatenate([numbers, np.zeros((steps % 2, 8), np.int16)])
    np.testing.assert_array_equal(found.reshape(-1, 8, 2), whole.reshape(-1, 2, 8).transpose(0, 2, 1))
