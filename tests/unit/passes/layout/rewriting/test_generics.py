"""Generics with other operands, maps and loops: what they compute, and what is told of their bodies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import IndexType, StringAttr, f32, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.analysis.structured import StructuredOp
from fuseline.analysis.walks import loops_behind
from fuseline.ir.build import Body, dims_map, identity_map
from fuseline.ir.provenance import provenance
from fuseline.passes.layout.rewriting import generics
from tests.graphs.program import Program
from tests.unit.passes.layout.rewriting.programs import same_results, transposed

CUBE = identity_map(3)


def _generic(p: Program) -> linalg.ops.GenericOp:
    (op,) = [op for op in p.function.walk() if isinstance(op, linalg.ops.GenericOp)]
    return op


def _indexed() -> Program:
    """`x[i, j, k] * (i + 10 k)` and `y` looked up at `j`."""
    p = Program((2, 3, 4), (3,))

    def body(b: Body) -> list[SSAValue]:
        i, j, k = (b.add(linalg.ops.IndexOp(loop)).result for loop in range(3))
        ten = b.op(arith.MuliOp, k, b.constant(10, IndexType()))
        number = b.op(arith.SIToFPOp, b.op(arith.IndexCastOp, b.op(arith.AddiOp, i, ten), i64), f32)
        looked_up = b.add(tensor.ExtractOp(p.x[1], [j], f32)).result
        return [b.op(arith.AddfOp, b.op(arith.MulfOp, b.args[0], number), looked_up)]

    (made,) = p.generic([p.x[0]], [p.empty(2, 3, 4)], [CUBE, CUBE], "ppp", body)
    return p.done(made)


@given(st.permutations(range(3)))
def test_loops_in_any_order(order: list[int]) -> None:
    p = _indexed()
    with same_results(p):
        generics.order_loops(_generic(p), order)
    assert StructuredOp(_generic(p)).maps[0] == dims_map(3, [order.index(loop) for loop in range(3)])


def test_kinds_of_loops_move_with_them() -> None:
    p = Program((3, 4))
    p.done(p.reduce(p.x[0]))
    with same_results(p):
        generics.order_loops(_generic(p), [1, 0])
    assert list(StructuredOp(_generic(p)).iterators) == ["reduction", "parallel"]


def test_a_rebuilt_generic_is_the_same_op() -> None:
    p = _indexed()
    old = _generic(p)
    old.attributes["mark"] = StringAttr("here")
    old.results[0].name_hint = "made"
    nodes = provenance(old)
    with same_results(p):
        new = generics.rebuilt(old, old.inputs, old.outputs, [CUBE, CUBE], ["parallel"] * 3)
        generics.finish(old, new.results)
    assert _generic(p) is new
    assert (new.attributes["mark"], new.results[0].name_hint) == (StringAttr("here"), "made")
    assert provenance(new) == nodes != ()


def test_an_input_is_read_elsewhere() -> None:
    p = Program((3, 4))
    p.done(p.unary(transposed(p, p.x[0], 1, 0)))
    with same_results(p):
        generics.set_input(_generic(p), 0, p.x[0], dims_map(2, [1, 0]))
    assert _generic(p).inputs[0] is p.x[0]


@given(st.permutations(range(4)))
def test_results_of_a_map_in_another_order(order: list[int]) -> None:
    map_ = AffineMap.from_callable(lambda i, j, k: (i + j, k, j * 2, i))
    permuted = generics.permuted_results(map_, order)
    assert permuted.eval([5, 7, 11], []) == tuple(map_.eval([5, 7, 11], [])[axis] for axis in order)


@given(st.lists(st.integers(0, 9), min_size=3, max_size=3))
def test_loops_replaced_by_expressions(at: list[int]) -> None:
    map_ = AffineMap.from_callable(lambda i, j: (i + j, j))
    i, j, k = (AffineExpr.dimension(loop) for loop in range(3))
    renamed = generics.renamed(map_, [i * 4 + k, j], 3)
    assert renamed.num_dims == 3
    assert renamed.eval(at, []) == map_.eval([at[0] * 4 + at[2], at[1]], [])


def test_indices_follow_their_loops() -> None:
    p = _indexed()
    generics.rename_indices(_generic(p), lambda loop: 2 - loop)
    assert [op.dim.value.data for op in generics.index_ops(_generic(p))] == [2, 1, 0]


def test_reads_of_a_captured_tensor() -> None:
    p = _indexed()
    op = _generic(p)
    (extract,) = generics.extracts_of(op, p.x[1])
    assert extract.tensor is p.x[1]
    assert generics.extracts_of(op, p.x[0]) == []


def test_an_extract_outside_is_none_of_the_body() -> None:
    p = Program((4, 4))
    made = p.unary(p.x[0])
    zero = p.emit.index(0)
    p.emit.add(tensor.ExtractOp(p.x[0], [zero, zero], f32))
    assert generics.extracts_of(_generic(p.done(made)), p.x[0]) == []


@pytest.mark.parametrize(
    ("map_", "loops", "full"),
    [
        (dims_map(3, [2, 0, 1]), [2, 0, 1], True),
        (dims_map(3, [2, 0]), [2, 0], False),
        (dims_map(3, []), [], False),
        (dims_map(3, [0, 0]), None, False),
        (dims_map(3, [0, None, 2]), None, False),
        (AffineMap.from_callable(lambda i, j, k: (i + j, k)), None, False),
    ],
)
def test_maps_that_name_loops(map_: AffineMap, loops: list[int] | None, full: bool) -> None:
    assert generics.plain_loops(map_) == loops
    assert generics.is_full(StructuredOp(_generic(_indexed())), map_) == full


def test_the_loops_that_a_scalar_depends_on() -> None:
    op = _generic(_indexed())
    view = StructuredOp(op)
    first, second, third = (index.result for index in generics.index_ops(op))
    assert [loops_behind(view, value) for value in (first, second, third)] == [{0}, {1}, {2}]
    yielded = op.body.block.last_op
    assert yielded is not None and loops_behind(view, yielded.operands[0]) == {0, 1, 2}
    (argument, _) = op.body.block.args
    assert loops_behind(view, argument) == {0, 1, 2}
    assert loops_behind(view, op.inputs[0]) == set()
