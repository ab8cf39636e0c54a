"""Concats of parts in one piece each, alone in their group: what makes a part ends in it before the copy begins."""

from __future__ import annotations

import pytest
from xdsl.ir import SSAValue

from fuseline.passes.fusion.stacked_concats import only_stacks

from .programs import Program
from .test_rule_answers import graph_of


def _answers(p: Program, result: SSAValue) -> list[bool]:
    return [only_stacks(group) for group in graph_of(p.done(result))[1]]


@pytest.mark.parametrize("shape", [(4, 6), (9,), (2, 3, 5)])
def test_parts_one_behind_the_other(shape: tuple[int, ...]):
    p = Program(shape, shape)
    assert _answers(p, p.concat(p.unary(p.x[0]), p.x[1], axis=0)) == [False, True]


def test_dimensions_of_one_element_before_it_do_not_count():
    p = Program((1, 4, 6), (1, 3, 6))
    assert _answers(p, p.concat(p.unary(p.x[0]), p.x[1], axis=1)) == [False, True]


def test_parts_side_by_side_are_copied():
    p = Program((4, 6), (4, 6))
    assert _answers(p, p.concat(p.unary(p.x[0]), p.x[1], axis=1)) == [False, False]
