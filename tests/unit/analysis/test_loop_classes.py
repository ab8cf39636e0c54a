"""Which loops are one, which classes are broken, and what all of several ops share."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from fuseline.analysis.loop_classes import LoopClasses
from fuseline.ir.dim import Dim, symbol


@dataclass(frozen=True)
class _Nest:
    loops: tuple[Dim, ...]
    iterators: tuple[str, ...]


def _nest(kinds: str, *loops: Dim) -> _Nest:
    return _Nest(loops, tuple("parallel" if kind == "p" else "reduction" for kind in kinds))


def _softmax_head() -> LoopClasses[str]:
    """exp (r, c), its sum over c, its transpose (c, r)."""
    nests = {"exp": _nest("pp", 5, 7), "sum": _nest("pr", 5, 7), "turn": _nest("pp", 7, 5)}
    steps = [
        (("exp", 0), ("sum", 0)),
        (("exp", 1), ("sum", 1)),
        (("exp", 0), ("turn", 1)),
        (("exp", 1), ("turn", 0)),
    ]
    return LoopClasses(nests, steps)


def test_loops_that_are_read_in_step_are_one_class():
    classes = _softmax_head()
    rows, columns = classes.of(("exp", 0)), classes.of(("exp", 1))
    assert rows != columns and classes.broken == frozenset()
    assert classes.of(("sum", 0)) == classes.of(("turn", 1)) == rows
    assert classes.of(("sum", 1)) == classes.of(("turn", 0)) == columns
    assert [classes.along(owner, rows) for owner in ("exp", "sum", "turn")] == [[0], [0], [1]]
    assert [classes.along(owner, columns) for owner in ("exp", "sum", "turn")] == [[1], [1], [0]]


def test_a_class_that_is_summed_is_shared_by_those_that_do_not_sum_it():
    classes = _softmax_head()
    rows, columns = classes.of(("exp", 0)), classes.of(("exp", 1))
    assert classes.is_shared(rows, ["exp", "sum", "turn"])
    assert classes.is_shared(columns, ["exp", "turn"]) and not classes.is_shared(columns, ["exp", "sum"])
    assert classes.shared(["exp", "sum"]) == classes.shared(["turn", "sum"]) == [rows]
    assert classes.shared(["exp", "turn"]) == [columns, rows] and classes.shared(["turn", "exp"]) == [rows, columns]


def test_a_class_that_an_op_lacks_is_not_shared_with_it():
    nests = {"row": _nest("p", 7), "add": _nest("pp", 5, 7)}
    classes = LoopClasses(nests, [(("row", 0), ("add", 1))])
    assert classes.along("row", classes.of(("add", 0))) == []
    assert classes.shared(["row", "add"]) == [classes.of(("row", 0))]
    assert classes.shared(["add"]) == [classes.of(("add", 0)), classes.of(("add", 1))]


N = symbol("n")


@pytest.mark.parametrize(("written", "read"), [(5, 4), (N, 5), (N, symbol("m"))])
def test_a_loop_that_is_read_to_another_extent_is_broken(written: Dim, read: Dim):
    classes = LoopClasses({"a": _nest("p", written), "b": _nest("p", read)}, [(("a", 0), ("b", 0))])
    assert classes.of(("a", 0)) != classes.of(("b", 0))
    assert classes.broken == {classes.of(("a", 0))}
    assert classes.shared(["b"]) == [classes.of(("b", 0))] and classes.shared(["a"]) == []


def test_one_symbol_is_one_extent():
    classes = LoopClasses({"a": _nest("p", N), "b": _nest("p", N)}, [(("a", 0), ("b", 0))])
    assert classes.of(("a", 0)) == classes.of(("b", 0)) and not classes.broken


def test_one_read_out_of_step_breaks_the_class_for_all():
    nests = {"a": _nest("p", 5), "b": _nest("p", 5), "c": _nest("p", 5)}
    steps = [(("a", 0), None), (("a", 0), ("b", 0)), (("b", 0), ("c", 0))]
    for ordered in (steps, steps[::-1]):
        classes = LoopClasses(nests, ordered)
        assert classes.broken == {classes.of(("c", 0))}
        assert classes.of(("a", 0)) == classes.of(("c", 0)) and classes.shared(["b", "c"]) == []


def test_an_op_that_has_a_class_twice_breaks_it():
    nests = {"a": _nest("pp", 5, 5), "b": _nest("pp", 5, 5), "other": _nest("p", 5)}
    straight = [(("a", 0), ("b", 0)), (("a", 1), ("b", 1))]
    turned = [(("a", 0), ("b", 1)), (("a", 1), ("b", 0))]
    assert not LoopClasses(nests, straight).broken and not LoopClasses(nests, turned).broken
    both = LoopClasses(nests, [*straight, *turned])
    (class_,) = both.broken
    assert both.along("a", class_) == both.along("b", class_) == [0, 1]
    assert both.shared(["a", "b"]) == [] and both.shared(["other"]) == [both.of(("other", 0))]


def test_loops_of_one_step_join_nothing_and_break_nothing():
    nests = {"a": _nest("pp", 1, 5), "b": _nest("pp", 1, 5)}
    classes = LoopClasses(nests, [(("a", 0), ("b", 0)), (("a", 0), None), (("a", 1), ("b", 1))])
    assert classes.of(("a", 0)) != classes.of(("b", 0)) and not classes.broken
    assert classes.shared(["a", "b"]) == [classes.of(("a", 1))]


def test_loops_known_to_be_one_are_joined_sequence_by_sequence():
    nests = {name: _nest("pp", 5, 7) for name in "abc"}
    classes = LoopClasses(nests, [], [[("a", 0), ("b", 0), ("c", 0)], [("a", 1), ("c", 1)], [("b", 1)], []])
    assert classes.of(("a", 0)) == classes.of(("b", 0)) == classes.of(("c", 0))
    assert classes.of(("a", 1)) == classes.of(("c", 1)) != classes.of(("b", 1))
    assert classes.shared(["a", "b", "c"]) == [classes.of(("c", 0))]
    assert classes.shared(["a", "c"]) == [classes.of(("c", 0)), classes.of(("c", 1))]
