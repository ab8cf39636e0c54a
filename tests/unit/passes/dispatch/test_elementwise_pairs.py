"""Which two elementwise ops are not made one, and why."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith
from xdsl.dialects import math as mlir_math
from xdsl.ir import OpResult, SSAValue

from fuseline.analysis.structured import is_generic
from fuseline.dispatch.fused_loops import FusedLoops, MemberLoops, Role, members_of
from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import dims_map, identity_map
from fuseline.passes.dispatch.elementwise_pairs import Apart, ElementwisePairs, Generic
from tests.graphs.program import Program


def _op(value: SSAValue) -> Generic:
    assert isinstance(value, OpResult) and is_generic(value.op)
    return value.op


def _asked(
    view: DispatchView, producer: SSAValue, consumer: SSAValue, said: FusedLoops | None = None
) -> tuple[int, ...] | str:
    pairs = ElementwisePairs(view.shapes, view.entry.body.block, said)
    found = pairs.loops(_op(producer), _op(consumer))
    return found.code if isinstance(found, Apart) else found


def test_a_reader_at_its_own_points_is_one_with_what_it_reads():
    p = Program((3, 4, 5))
    a = p.unary(p.x[0])
    b = p.unary(a, arith.NegfOp, permutation=(2, 0, 1))
    assert _asked(p.dispatch(b), a, b) == (1, 2, 0)


def test_what_is_read_by_others_or_returned():
    p = Program((3, 4))
    a = p.unary(p.x[0])
    b = p.unary(a)
    assert _asked(p.dispatch(a, b), a, b) == "multi-use"
    p = Program((3, 4))
    a = p.unary(p.x[0])
    b, c = p.unary(a), p.unary(a)
    assert _asked(p.dispatch(b, c), a, b) == "multi-use"


def test_what_is_the_init_of_its_reader():
    p = Program((3, 4))
    a = p.unary(p.x[0])
    b = p.elementwise([p.x[0]], a, lambda body: body.op(arith.AddfOp, body.args[0], body.args[1]))
    assert _asked(p.dispatch(b), a, b) == "multi-use"


def test_a_body_that_starts_from_its_inits():
    p = Program((3, 4))
    a = p.elementwise([p.x[0]], p.x[0], lambda body: body.op(arith.AddfOp, body.args[0], body.args[1]))
    b = p.unary(a)
    assert _asked(p.dispatch(b), a, b) == "inits"


def test_what_is_read_at_other_points():
    p = Program((3, 4), (4,))
    a = p.unary(p.x[1])
    b = p.binary(p.x[0], a, dims_map(2, [1]))
    assert _asked(p.dispatch(b), a, b) == "indexing-map"
    p = Program((4, 4))
    a = p.unary(p.x[0])
    b = p.binary(a, a, dims_map(2, [1, 0]))
    assert _asked(p.dispatch(b), a, b) == "indexing-map"
    p = Program((3, 4))
    a = p.unary(p.x[0])
    b = p.elementwise(
        [a], p.empty(3, 4), lambda body: body.op(arith.NegfOp, body.args[0]), [dims_map(2, [0, None]), identity_map(2)]
    )
    assert _asked(p.dispatch(b), a, b) == "indexing-map"


@pytest.mark.parametrize("moves_first", [True, False])
def test_what_only_moves_data(moves_first: bool):
    p = Program((3, 4))
    a = p.moved(p.x[0], [1, 0], 4, 3) if moves_first else p.unary(p.x[0])
    b = p.unary(a) if moves_first else p.moved(a, [1, 0], 4, 3)
    assert _asked(p.dispatch(b), a, b) == "not-elementwise"


def test_what_reduces_or_is_reduced():
    p = Program((3, 4))
    a = p.unary(p.x[0])
    b = p.reduce(a)
    c = p.unary(b)
    view = p.dispatch(c)
    assert (_asked(view, a, b), _asked(view, b, c)) == ("not-elementwise", "not-elementwise")


def test_what_follows_a_reduction_before_the_last_that_its_reader_waits_for():
    p = Program((3, 4), (4, 4), (4, 4))
    a = p.unary(p.matmul(p.x[0], p.x[1]))
    b = p.unary(p.matmul(p.x[0], p.x[2]))
    c = p.add(a, b)
    view = p.dispatch(c)
    assert (_asked(view, a, c), _asked(view, b, c)) == ("later-reduction", (0, 1))


def test_what_follows_no_reduction_is_one_with_a_reader_that_does():
    p = Program((3, 4), (4, 4))
    a = p.unary(p.x[0])
    c = p.binary(p.matmul(p.x[0], p.x[1]), a)
    assert _asked(p.dispatch(c), a, c) == (0, 1)


def test_what_streams():
    p = Program((3, 8), (8, 4))
    y = p.unary(p.matmul(p.softmax(p.x[0]), p.x[1]))
    view = p.dispatch(y)
    elementwise = [op for op in members_of(view.entry.body.block) if is_generic(op) and len(op.iterator_types) == 2]
    codes = {
        _asked(view, one.results[0], other.results[0])
        for one in elementwise
        for other in elementwise
        if any(use.operation is other for use in one.results[0].uses)
    }
    assert "online-softmax" in codes and not any(isinstance(code, tuple) for code in codes)


@pytest.mark.parametrize(
    ("made", "read", "code"),
    [
        (MemberLoops((0, None)), MemberLoops((), Role.INLINED), "recompute"),
        (MemberLoops((0, None)), MemberLoops((None, 0)), "grid"),
        (MemberLoops((0, None)), MemberLoops((0, None)), None),
        (MemberLoops((), Role.INLINED), MemberLoops((0, None)), None),
        (MemberLoops((), Role.INLINED), MemberLoops((), Role.INLINED), None),
    ],
)
def test_what_the_grid_evaluates_otherwise_than_its_reader(made: MemberLoops, read: MemberLoops, code: str | None):
    p = Program((4, 4))
    a = p.unary(p.x[0])
    b = p.unary(a, mlir_math.AbsFOp)
    said = FusedLoops(((4,),), (made, read))
    assert _asked(p.dispatch(b), a, b, said) == (code or (0, 1))


def test_what_spells_its_loops_by_another_size():
    """Nobody has said that the sizes are equal: the loops of the dispatch are spelt by its reader."""
    p = Program(("n",), ("m",))
    a = p.elementwise([p.x[0]], p.empty("m"), lambda body: body.op(arith.NegfOp, body.args[0]))
    b = p.binary(a, p.x[1])
    assert _asked(p.dispatch(b), a, b) == "sizes"
