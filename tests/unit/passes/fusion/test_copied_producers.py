"""What several products evaluate from copies of one producer is priced by as many blocks as there may be."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from fuseline.ir.fast.attributes import tensor_type
from fuseline.ir.fast.create import create_constant
from fuseline.ir.splats import splat_attribute
from fuseline.passes.fusion.decision import Legal
from fuseline.passes.fusion.rule import Merge
from fuseline.passes.fusion.rules.read_in_place import ReadInPlace
from tests.draws import RNG

from .programs import TARGET, Program
from .rule_programs import graph_of


def _price(copies: int, rows: int, steps: int) -> float:
    """Of the first of so many equal ops of one tensor, each in a product of its own with a constant."""
    p = Program((rows, steps))
    made = [p.unary(p.x[0]) for _ in range(copies)]
    p.done(*[p.matmul(value, _weights(p, steps)) for value in made])
    graph, groups = graph_of(p)
    for first in groups[:copies]:
        assert graph.has_copies(first.root.op) == (copies > 1)
    product = next(group for group in groups if group.reads_from(groups[0]))
    answer = ReadInPlace().matches(Merge(groups[0], product, TARGET), graph)
    assert isinstance(answer, Legal)
    return answer.numbers["evaluation_ns"]


def _weights(p: Program, steps: int) -> SSAValue:
    type_ = tensor_type(f32, (steps, 640))
    return p.emit.add(create_constant(splat_attribute(type_, 1.5), type_)).results[0]


def test_copies_are_evaluated_for_each_block_of_columns():
    rows, steps = int(RNG.integers(150, 300)), int(RNG.integers(16, 64))
    assert _price(2, rows, steps) > _price(1, rows, steps)


@pytest.mark.parametrize("kind", ["another", "another tensor", "moved"])
def test_what_computes_something_else_is_no_copy(kind: str):
    p = Program((24, 32), (24, 32), constants=())
    mine = p.unary(p.x[0])
    if kind == "another":
        other = p.relu(p.x[0])
    elif kind == "another tensor":
        other = p.unary(p.x[1])
    else:
        other = p.unary(p.columns(p.x[0], 1, 20))
    p.done(mine, other)
    graph, groups = graph_of(p)
    assert not any(graph.has_copies(group.root.op) for group in groups)
