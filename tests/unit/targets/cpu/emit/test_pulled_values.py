"""Any value of a dispatch at any point: through bodies, moves, borders, concats and reductions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import IndexType, f32, i32
from xdsl.ir import OpResult, SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.analysis.structured import StructuredOp, is_generic
from fuseline.dispatch.view import DispatchView
from fuseline.errors import FuselineError
from fuseline.ir.build import dims_map, identity_map
from fuseline.targets.cpu.emit import borders, concats
from fuseline.targets.cpu.emit.body_emitter import NESTED_PULLS, BodyEmitter
from fuseline.targets.cpu.emit.body_point import BodyPoint, narrowed, widened
from fuseline.targets.cpu.emit.coordinates import Index
from fuseline.targets.cpu.emit.lane_coordinates import LaneCoordinates, lane_sources
from fuseline.targets.cpu.emit.pulled_ops import PULLED_OPS, loops_at, reduce_at
from fuseline.targets.cpu.emit.puller import point_key
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Type
from tests.graphs.program import Program
from tests.kernels import arrays_for

from .pulled import check_pulled, pulled

Make = Callable[[Program], SSAValue]

MOVES: dict[str, Make] = {
    "body": lambda p: p.add(p.unary(p.x[0]), p.x[0]),
    "transpose": lambda p: p.unary(p.x[0], permutation=(1, 0)),
    "broadcast": lambda p: p.by_row(p.x[0], p.x[1], lambda b: b.op(arith.SubfOp, *b.args[:2])),
    "slice": lambda p: p.unary(p.slice(p.x[0], [1, 2], [4, 9])),
    "slice with steps": lambda p: p.slice(p.x[0], [0, 1], [3, 5], [2, 2]),
    "collapse": lambda p: p.unary(p.collapse(p.x[0])),
    "expand": lambda p: p.expand(p.unary(p.x[0]), 7, 1, 13, groups=[[0, 1], [2]]),
    "expand and collapse": lambda p: p.collapse(p.expand(p.x[0], 7, 13, 1, groups=[[0], [1, 2]]), [[0, 1], [2]]),
    "pad": lambda p: p.pad(p.x[0], [1, 2], [0, 3], 0.5),
    "pad of a pad": lambda p: p.pad(p.unary(p.pad(p.x[0], [0, 3], [2, 0])), [2, 0], [0, 1], -1.0),
    "concat": lambda p: p.concat(p.x[0], p.unary(p.x[0]), p.slice(p.x[0], [0, 0], [7, 3])),
    "concat of rows": lambda p: p.concat(p.x[0], p.unary(p.x[0]), axis=0),
    "many parts": lambda p: p.concat(*[p.slice(p.x[0], [0, i], [7, 1 + i % 3]) for i in range(10)]),
    "row sums": lambda p: p.reduce(p.unary(p.x[0])),
    "column maxima": lambda p: p.reduce(p.x[0], axis=0, combine=arith.MaximumfOp),
    "softmax": lambda p: p.softmax(p.x[0]),
    "repeated": lambda p: p.repeated(p.x[0], [2, 3]),
    "fill": lambda p: p.add(p.x[0], p.zeros(7, 13, value=1.5)),
    "every other": lambda p: p.elementwise(
        [p.x[0]],
        p.empty(7, 6),
        lambda b: b.args[0],
        [AffineMap.from_callable(lambda i, j: (i, j * 2 + 1)), identity_map(2)],
    ),
    "each twice": lambda p: p.elementwise(
        [p.x[0]],
        p.empty(7, 26),
        lambda b: b.args[0],
        [AffineMap.from_callable(lambda i, j: (i, j // 2)), identity_map(2)],
    ),
    "again and again": lambda p: p.elementwise(
        [p.x[0]],
        p.empty(7, 30),
        lambda b: b.args[0],
        [AffineMap.from_callable(lambda i, j: (i, j % 13)), identity_map(2)],
    ),
}


@pytest.mark.parametrize("name", MOVES)
def test_it_is_what_the_dispatch_means(name: str) -> None:
    p = Program((7, 13), (7,))
    check_pulled(p.dispatch(MOVES[name](p)))


@pytest.mark.parametrize("size", [1, 5, 16])
@pytest.mark.parametrize("name", ["body", "transpose", "row sums", "softmax"])
def test_sizes_that_only_the_run_knows(name: str, size: int) -> None:
    p = Program((7, "n"), (7,))
    check_pulled(p.dispatch(MOVES[name](p)), {"n": size})


def _counted(p: Program) -> SSAValue:
    """`x[i, 12 - j] + i * 13 + j`, all computed in the body."""

    def body(b):  # pyright: ignore
        i, j = (b.add(linalg.ops.IndexOp(axis)).result for axis in (0, 1))
        last = b.constant(12, IndexType())
        read = b.add(tensor.ExtractOp(p.x[0], [i, b.op(arith.SubiOp, last, j)], f32)).result
        number = b.op(arith.AddiOp, b.op(arith.MuliOp, i, b.constant(13, IndexType())), j)
        wide = b.op(arith.SIToFPOp, b.op(arith.IndexCastOp, number, i32), f32)
        return b.op(arith.AddfOp, read, wide)

    return p.elementwise([], p.empty(7, 13), body)


def test_coordinates_and_places_that_a_body_computes() -> None:
    p = Program((7, 13))
    check_pulled(p.dispatch(_counted(p)))


def test_places_in_data() -> None:
    p = Program((5, 6), (8, 3))
    value = p.gathered(p.x[0], p.x[1], 8, 6)
    view = p.dispatch(value)
    table = np.random.default_rng().standard_normal((5, 6)).astype(np.float32)
    rows = np.random.default_rng().integers(0, 5, (8, 3)).astype(np.float32)
    for lanes, axis in ((1, 0), (8, 0), (4, 1)):
        np.testing.assert_array_equal(
            pulled(view, [table, rows], lanes=lanes, axis=axis), table[rows[:, 0].astype(int)]
        )


@pytest.mark.parametrize("length", [NESTED_PULLS - 1, NESTED_PULLS + 1, 5 * NESTED_PULLS])
def test_chains_of_any_length(length: int) -> None:
    p = Program((3, 8))
    value = p.x[0]
    for _ in range(length):
        value = p.unary(value, arith.NegfOp)
    view = p.dispatch(value)
    (x,) = arrays_for(view)
    np.testing.assert_array_equal(pulled(view, [x], lanes=8), x * (-1) ** length)


def _emitter(view: DispatchView) -> BodyEmitter:
    return BodyEmitter(KernelBuilder("k", machine("avx2")), view)


def test_a_point_is_evaluated_once() -> None:
    p = Program((3, 8))
    value = p.unary(p.x[0])
    e = _emitter(p.dispatch(value))
    first = e.value_at(value, [1, Index(0, 1)], 8)
    assert e.value_at(value, [1, Index(0, 1)], 8) is first and e.value_at(value, [2, Index(0, 1)], 8) is not first
    assert point_key(value, [Index(1), Index(0, 1)], 8, None) == point_key(value, [Index(1), Index(0, 1)], 8, None)
    assert point_key(value, [Index(1), Index(0, 1)], 8, None) != point_key(value, [Index(1), Index(0, 2)], 8, None)
    assert point_key(value, [Index(1)], 8, None) != point_key(value, [Index(1)], 8, 3)


def test_what_the_family_holds_is_not_pulled() -> None:
    p = Program((3, 8))
    middle = p.unary(p.x[0])
    view = p.dispatch(p.unary(middle, arith.NegfOp))
    e = _emitter(view)
    held = e.kernel.const(2.5, "f32", 8)
    e.known[middle] = lambda index, lanes, active: held
    assert e.pull(middle, [Index(0), Index(0, 1)], 8, None) is held
    assert e.value_at(view.results[0], [0, Index(0, 1)], 8).args[0] is held


def test_sizes_and_scalars() -> None:
    p = Program(("n", 8))
    value = p.unary(p.x[0])
    n = p.size("n")
    view = p.dispatch(value)
    e = _emitter(view)
    del n
    (size,) = view.sizes
    assert e.size(size) is e.kernel.size(0) and e.scalar(size) is e.kernel.size(0)


def test_maps_are_evaluated_at_a_point() -> None:
    p = Program((3, 8))
    e = _emitter(p.dispatch(p.unary(p.x[0])))
    map_ = AffineMap.from_callable(lambda i, j: (j * 3 + i, i // 2, j % 5, i.ceil_div(4)))
    found = e.through(map_, [Index(7), Index(11)], 1)
    assert [index.base for index in found if isinstance(index, Index)] == [11 * 3 + 7, 3, 1, 2]
    (moving,) = e.through(AffineMap.from_callable(lambda i, j: (j * 3 + i,)), [Index(7), Index(4, 1)], 8)
    assert isinstance(moving, Index) and (moving.base, moving.stride) == (19, 3)


# parts ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ["pad", "concat", "slice"])
def test_moves_are_pulled_by_their_own_rule(make: str) -> None:
    p = Program((7, 13), (7,))
    value = MOVES["pad" if make == "pad" else "concat" if make == "concat" else "slice"](p)
    view = p.dispatch(value)
    rule = {"pad": borders.pad, "concat": concats.concat, "slice": PULLED_OPS[linalg.ops.GenericOp]}[make]
    (expected,) = [pulled(view, arrays_for(view), lanes=8)]
    found = pulled(
        view,
        arrays_for(view),
        lanes=8,
        pull=lambda e, v, i, n, a: rule(e, v, i, n, a) if isinstance(v, OpResult) else e.pull(v, i, n, a),
    )
    np.testing.assert_array_equal(found, expected)


def test_a_part_put_into_another() -> None:
    p = Program((7, 13), (3, 4))
    op = tensor.InsertSliceOp.from_static_parameters(p.x[1], p.x[0], [2, 5], [3, 4])
    value = p.emit.add(op).result
    view = p.dispatch(value)
    x, y = arrays_for(view)
    expected = x.copy()
    expected[2:5, 5:9] = y
    for lanes in (1, 8):
        found = pulled(view, [x, y], lanes=lanes, pull=lambda e, v, i, n, a: borders.insert_slice(e, v, i, n, a))  # pyright: ignore
        np.testing.assert_array_equal(found, expected)


def test_the_loops_behind_an_element() -> None:
    p = Program((3, 5))
    turned, total = p.unary(p.x[0], permutation=(1, 0)), p.reduce(p.x[0])
    view = p.dispatch(turned, total)
    e = _emitter(view)
    at = [Index(1), Index(2)]
    for value, expected in ((turned, at), (total, [at[0]])):
        op = value.owner
        assert is_generic(op)
        found = loops_at(e, StructuredOp(op), 0, at[: len(expected)])
        assert found[: len(expected)] == expected and all(
            isinstance(i, Index) and i.base == 0 for i in found[len(expected) :]
        )


def test_a_result_that_a_sum_of_loops_indexes_is_none() -> None:
    p = Program((6,))
    maps = [AffineMap.from_callable(lambda i: (i,)), AffineMap.from_callable(lambda i: (i + 1,))]
    value = p.elementwise([p.x[0]], p.empty(7), lambda b: b.args[0], maps)
    view = p.dispatch(value)
    op = value.owner
    assert is_generic(op)
    with pytest.raises(FuselineError, match="a result is indexed by") as caught:
        loops_at(_emitter(view), StructuredOp(op), 0, [Index(1)])
    assert caught.value.code == "E0901"


def test_a_reduction_gives_all_its_results_at_one_point() -> None:
    p = Program((3, 5))
    maps = [identity_map(2), dims_map(2, [0]), dims_map(2, [0])]
    first, second = p.generic(
        [p.x[0]], [p.zeros(3), p.zeros(3, value=-9.0)], maps, "pr",
        lambda b: [b.op(arith.AddfOp, b.args[1], b.args[0]), b.op(arith.MaximumfOp, b.args[2], b.args[0])],
    )  # fmt: skip
    view = p.dispatch(second)
    op = first.owner
    assert is_generic(op)
    (x,) = arrays_for(view)

    def pull(number: int):  # pyright: ignore
        return lambda e, v, index, lanes, active: reduce_at(e, StructuredOp(op), [*index, Index(0)], lanes, active)[
            number
        ]  # pyright: ignore

    np.testing.assert_allclose(pulled(view, [x], pull=pull(0)), x.sum(1), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(pulled(view, [x], lanes=4, pull=pull(1)), np.maximum(x.max(1), -9))


def test_a_body_at_one_point_takes_inputs_and_accumulators_that_are_given() -> None:
    p = Program((3, 5))
    total = p.reduce(p.x[0])
    op = total.owner
    assert is_generic(op)
    e = _emitter(p.dispatch(total))
    k = e.kernel
    element, so_far = k.load(k.binding(5, "f32", 1), 0), k.load(k.binding(6, "f32", 1), 0)
    (found,) = BodyPoint(e, StructuredOp(op), [Index(0), Index(0)], 1, None, [so_far], {0: element}).yields()
    assert found.op == "add" and set(found.args) == {element, so_far}


@pytest.mark.parametrize(("dtype", "wide"), [("f16", "f32"), ("bf16", "f32"), ("f32", "f32"), ("i8", "i8")])
def test_halves_are_computed_wide(dtype: str, wide: str) -> None:
    k = KernelBuilder("k", machine("avx2"))
    value = k.load(k.binding(0, dtype, 8), 0, 8)
    assert widened(k, value).type == Type(wide, 8) and narrowed(k, widened(k, value), dtype).type == value.type
    assert (widened(k, value) is value) == (dtype == wide)


def test_coordinates_through_moves() -> None:
    p = Program((6, 8))
    part = p.slice(p.x[0], [2, 3], [4, 4], [1, 1])
    view = p.dispatch(p.unary(part))
    e = _emitter(view)
    op = part.owner
    (source,) = lane_sources(e, op, [Index(1), Index(0, 1)], 4)  # pyright: ignore[reportArgumentType]
    assert source.value is p.x[0] and [(i.base, i.stride) for i in source.at if isinstance(i, Index)] == [
        (3, 0),
        (3, 1),
    ]
    lanes = LaneCoordinates(e.buffers, 4)
    found = [lanes.number(7), lanes.moved(Index(2, 1), 3, 5), lanes.linearized([Index(2), Index(1, 1)], (4, 9))]
    assert [(i.base, i.stride) for i in found if isinstance(i, Index)] == [(7, 0), (11, 3), (19, 1)]
    assert lanes.linearized([Index(0), Index(3, 1)], (1, 9)).key == Index(3, 1).key
    assert [i.key for i in lanes.delinearized(Index(5), (1, 9))] == [Index(0).key, Index(5).key]
