"""Values without their dimensions of size 1."""

from __future__ import annotations

from xdsl.dialects import tensor
from xdsl.dialects.math import ExpOp
from xdsl.ir import OpResult, SSAValue

from fuseline.ir.build import Emitter, shape_of
from fuseline.ir.dim import symbol
from fuseline.ir.fast.direct import erase
from fuseline.passes.layout.rewriting.unit_dims import Squeezer, kept_axes
from tests.graphs.program import Program
from tests.unit.passes.layout.rewriting.programs import same_results, scope_of


def _reshapes(p: Program) -> list[tuple[int, ...]]:
    kinds = tensor.ExpandShapeOp | tensor.CollapseShapeOp
    return [shape_of(op.results[0]) for op in p.function.walk() if isinstance(op, kinds)]


def test_the_dimensions_that_are_kept() -> None:
    n = symbol("n")
    assert kept_axes([1, n, 1, 0]) == [1, 3]
    assert kept_axes([1, 1, 1]) == [2]
    assert kept_axes([]) == []


def test_a_value_is_collapsed_once_for_all_that_ask() -> None:
    p = Program((1, 4, 1))
    p.done(p.unary(p.x[0]))
    squeezer = Squeezer(scope_of(p))
    assert squeezer.can(p.x[0])
    flat = squeezer.keep(p.x[0], [1])
    assert shape_of(flat) == (4,)
    assert squeezer.keep(p.x[0], [1]) is flat
    assert shape_of(squeezer.keep(p.x[0], [1, 2])) == (4, 1)
    assert len(_reshapes(p)) == 2
    p.module.verify()


def test_a_value_that_keeps_all_is_itself() -> None:
    p = Program((1, 4))
    p.done(p.unary(p.x[0]))
    assert Squeezer(scope_of(p)).keep(p.x[0], [0, 1]) is p.x[0]
    assert _reshapes(p) == []


def test_a_core_is_read_in_place_of_its_value_and_restored_for_the_rest() -> None:
    p = Program((1, 4))
    whole = p.unary(p.x[0])
    p.done(p.unary(whole), whole)
    with same_results(p) as scope:
        squeezer = Squeezer(scope)
        core = _exponential(p, squeezer.keep(p.x[0], [1]), whole)
        assert isinstance(whole, OpResult)
        squeezer.stand_for(whole, core)
        assert squeezer.keep(whole, [1]) is core
        squeezer.close()
    assert whole.op.parent is None
    assert sorted(_reshapes(p)) == [(1, 4), (4,)]


def test_a_core_that_nothing_reads_whole_is_not_restored() -> None:
    p = Program((1, 4))
    whole = p.unary(p.x[0])
    last = p.collapse(whole, [[0, 1]])
    p.done(last)
    with same_results(p) as scope:
        squeezer = Squeezer(scope)
        core = _exponential(p, squeezer.keep(p.x[0], [1]), whole)
        assert isinstance(whole, OpResult)
        squeezer.stand_for(whole, core)
        last.replace_all_uses_with(squeezer.keep(whole, [1]))
        assert isinstance(last, OpResult)
        erase(last.op)
        squeezer.close()
    assert _reshapes(p) == [(4,)]


def test_a_core_of_the_same_shape_takes_over_at_once() -> None:
    p = Program((1, 4))
    whole = p.unary(p.x[0])
    p.done(whole)
    with same_results(p) as scope:
        squeezer = Squeezer(scope)
        core = _exponential(p, p.x[0], whole)
        assert isinstance(whole, OpResult)
        squeezer.stand_for(whole, core)
        assert whole.first_use is None
        squeezer.close()
    assert _reshapes(p) == []


def _exponential(p: Program, x: SSAValue, before: SSAValue) -> SSAValue:
    """What `before` computes of `x`, made before it."""
    assert isinstance(before, OpResult)
    return p.over(x, body=lambda b: b.op(ExpOp, b.args[0]), emit=Emitter.before(before.op))
