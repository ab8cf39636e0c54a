"""Generics without their loops of size 1 compute the same."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import IndexType, f32, i64
from xdsl.ir import SSAValue

from fuseline.analysis.structured import StructuredOp
from fuseline.ir.build import Body, dims_map, identity_map, shape_of
from fuseline.passes.layout.rewriting.unit_dims import Squeezer
from fuseline.passes.layout.rewriting.unit_loops import drop_unit_loops
from tests.graphs.program import Program, Size
from tests.unit.passes.layout.rewriting.programs import same_results


def _generics(p: Program) -> list[linalg.ops.GenericOp]:
    return [op for op in p.function.walk() if isinstance(op, linalg.ops.GenericOp)]


def _dropped(p: Program) -> list[list[str]]:
    """The loops of each generic afterwards."""
    with same_results(p) as scope:
        squeezer = Squeezer(scope)
        for op in _generics(p):
            drop_unit_loops(scope, squeezer, op)
        squeezer.close()
        scope.sweep()
    return [list(StructuredOp(op).iterators) for op in _generics(p)]


@pytest.mark.parametrize(
    ("shape", "loops"), [((1, 3, 1, 4), 2), ((1, 1), 1), ((1, "n"), 1), ((3, 4), 2), (("n", 1, "m"), 2)]
)
def test_elementwise(shape: Sequence[Size], loops: int) -> None:
    p = Program(shape)
    assert _dropped(p.done(p.unary(p.x[0]))) == [["parallel"] * loops]


def test_nothing_happens_where_there_are_none() -> None:
    p = Program((3, 4))
    (op,) = _generics(p.done(p.unary(p.x[0])))
    _dropped(p)
    assert _generics(p) == [op]


def test_a_chain_stays_without_them() -> None:
    p = Program((1, 3, 4))
    assert _dropped(p.done(p.reduce(p.unary(p.unary(p.x[0]))))) == [["parallel"] * 2] * 2 + [["parallel", "reduction"]]
    reshapes = [op for op in p.function.walk() if isinstance(op, tensor.CollapseShapeOp | tensor.ExpandShapeOp)]
    assert len(reshapes) == 2  # one on the way in, one on the way out


def test_a_sum_of_one_starts_from_its_start() -> None:
    p = Program((3, 1))
    p.done(p.generic([p.x[0]], [p.zeros(3, value=2.5)], [identity_map(2), dims_map(2, [0])], "pr", _sum)[0])
    assert _dropped(p) == [["parallel"]]


def test_a_sum_into_a_value_of_the_run_keeps_its_loop() -> None:
    p = Program((3, 1), (3,))
    p.done(p.generic([p.x[0]], [p.x[1]], [identity_map(2), dims_map(2, [0])], "pr", _sum)[0])
    assert _dropped(p) == [["parallel", "reduction"]]


def _sum(b: Body) -> list[SSAValue]:
    return [b.op(arith.AddfOp, b.args[1], b.args[0])]


def test_a_dropped_loop_is_at_0_and_the_others_have_new_numbers() -> None:
    p = Program((1, 3, 1, 4))

    def body(b: Body) -> SSAValue:
        total = b.args[0]
        for loop in range(4):
            place = b.op(arith.IndexCastOp, b.add(linalg.ops.IndexOp(loop)).result, i64)
            scaled = b.op(arith.MulfOp, b.op(arith.SIToFPOp, place, f32), b.constant(10.0**loop, f32))
            total = b.op(arith.AddfOp, total, scaled)
        return total

    assert _dropped(p.done(p.over(p.x[0], body=body))) == [["parallel"] * 2]
    places = [op.dim.value.data for op in p.function.walk() if isinstance(op, linalg.ops.IndexOp)]
    assert places == [0, 1]


def test_a_captured_tensor_loses_its_dimensions_too() -> None:
    p = Program((3, 4), (1, 4, 1))

    def body(b: Body) -> SSAValue:
        zero = b.constant(0, IndexType())
        place = b.add(linalg.ops.IndexOp(1)).result
        return b.op(arith.MulfOp, b.args[0], b.add(tensor.ExtractOp(p.x[1], [zero, place, zero], f32)).result)

    p.done(p.over(p.x[0], body=body))
    assert _dropped(p) == [["parallel"] * 2]
    (extract,) = [op for op in p.function.walk() if isinstance(op, tensor.ExtractOp)]
    assert shape_of(extract.tensor) == (4,) and len(extract.indices) == 1


def test_a_window_of_one_that_only_counts_is_left_out() -> None:
    """As the window of a pooling: no element of it is read."""
    p = Program((5, 3), (1,))
    maps = [dims_map(3, [0, 1]), dims_map(3, [2]), dims_map(3, [0, 1])]
    (made,) = p.generic([*p.x], [p.zeros(5, 3)], maps, "ppr", lambda b: [b.op(arith.AddfOp, b.args[2], b.args[0])])
    assert _dropped(p.done(made)) == [["parallel"] * 2]
    assert len(_generics(p)[0].inputs) == 1
