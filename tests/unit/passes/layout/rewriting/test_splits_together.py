"""Splits that go together: granted where they end at free reshapes, refused where an op would get a new one."""

from __future__ import annotations

import pytest
from xdsl.dialects import linalg
from xdsl.ir import SSAValue

from fuseline.analysis.structured import is_reduction
from fuseline.passes.layout.rewriting import splits_together
from fuseline.passes.layout.rewriting.reshapes import is_reshape
from fuseline.passes.layout.rewriting.splits_together import SplitsTogether
from tests.graphs.program import Program
from tests.unit.passes.layout.rewriting.programs import constant, same_results, scope_of


def _between(p: Program, made: SSAValue) -> SSAValue:
    """`made` (4 x 6) seen as 12 x 2."""
    return p.expand(p.collapse(made), 12, 2)


def _pair() -> tuple[Program, SSAValue]:
    """x + b over (4, 6), seen as (12, 2), plus c."""
    p = Program((4, 6), (6,), (2,))
    seen = _between(p, p.bias(p.x[0], p.x[1], 1))
    return p.done(p.bias(seen, p.x[2], 1)), seen


def test_both_sides_are_split_and_no_reshape_is_left_between() -> None:
    p, seen = _pair()
    with same_results(p) as scope:
        together = SplitsTogether(scope, seen)
        assert together.granted
        assert sorted(map(sorted, (splits.items() for splits in together.splits.values()))) == [
            [(0, [4, 3])],
            [(1, [3, 2])],
        ]
        together.apply()
    generics = [op for op in p.function.walk() if isinstance(op, linalg.ops.GenericOp)]
    assert all(not is_reshape(value.owner) or value.owner.src in p.x for op in generics for value in op.inputs)  # pyright: ignore[reportArgumentType]


def test_a_split_goes_on_through_the_readers_of_both_sides() -> None:
    p = Program((4, 6), (6,), (2,))
    made = p.bias(p.x[0], p.x[1], 1)
    seen = _between(p, made)
    p.done(p.relu(p.bias(seen, p.x[2], 1)), p.reduce(made))
    together = SplitsTogether(scope_of(p), seen)
    assert together.granted and len(together.splits) == 4


def test_a_reshape_beyond_that_fits_is_crossed_and_one_that_does_not_stays() -> None:
    for shape, count in (((4, 6), 3), ((4, 3, 2), 2), ((3, 8), 2)):
        p = Program((4, 6), (6,), (2,))
        seen = _between(p, p.bias(p.x[0], p.x[1], 1))
        p.done(p.relu(p.expand(p.collapse(p.bias(seen, p.x[2], 1)), *shape)))
        together = SplitsTogether(scope_of(p), seen)
        assert together.granted
        assert len(together.splits) == count


def test_a_concat_would_get_a_reshape() -> None:
    p = Program((4, 6), (6,), (2,))
    made = p.bias(p.x[0], p.x[1], 1)
    seen = _between(p, made)
    p.done(p.bias(seen, p.x[2], 1), p.concat(made, made, axis=0))
    assert not SplitsTogether(scope_of(p), seen).granted


def test_the_summed_loop_of_a_contraction_stays_one() -> None:
    p = Program((4, 6), (6,), (2,))
    made = p.bias(p.x[0], p.x[1], 1)
    seen = _between(p, made)
    p.done(p.bias(seen, p.x[2], 1), p.matmul(made, constant(p, 6, 5)))
    assert not SplitsTogether(scope_of(p), seen).granted


def test_no_sizes_fit_both() -> None:
    p = Program((4, 6), (6,), (8,))
    seen = p.expand(p.collapse(p.bias(p.x[0], p.x[1], 1)), 3, 8)
    p.done(p.bias(seen, p.x[2], 1))
    assert not SplitsTogether(scope_of(p), seen).granted


def test_a_few_questions_only(monkeypatch: pytest.MonkeyPatch) -> None:
    p, seen = _pair()
    monkeypatch.setattr(splits_together, "_MOST_QUESTIONS", 1)
    assert not SplitsTogether(scope_of(p), seen).granted


def _moments_behind_a_window(*, grouped: bool) -> tuple[Program, SSAValue]:
    """Sums of the channels of a convolution (which stay one loop), read in three groups of two; `grouped`: so is the
    image."""
    p = Program((9, 4), (3, 4, 6), (3,), (6,))
    image = p.convolution(p.x[0], p.x[1])
    seen = p.expand(p.relu(p.reduce(image, 0)), 3, 2)
    read = p.expand(image, 7, 3, 2, groups=[[0], [1, 2]])
    scaled = p.bias(read, p.x[2], 1) if grouped else p.bias(image, p.x[3], 1)
    return p.done(scaled, p.reduce(p.bias(seen, p.x[2], 0))), seen


def test_readers_go_over_to_a_reshape_that_others_have() -> None:
    p, seen = _moments_behind_a_window(grouped=True)
    with same_results(p) as scope:
        assert not SplitsTogether(scope, seen).granted
        together = SplitsTogether(scope, seen, joining=True)
        assert together.granted and sorted(map(list, together.splits.values())) == [[0], [1]]
        together.apply()
    reductions = [op for op in p.function.walk() if isinstance(op, linalg.ops.GenericOp) and is_reduction(op)]
    assert [scope.dims(op.inputs[0]) for op in reductions][1:] == [(7, 3, 2), (3, 2)]


def test_no_reader_gets_a_reshape_of_its_own() -> None:
    p, seen = _moments_behind_a_window(grouped=False)
    assert not SplitsTogether(scope_of(p), seen, joining=True).granted
