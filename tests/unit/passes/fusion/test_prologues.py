"""What a root pays for reading through ops, looked up by the ops."""

from __future__ import annotations

import pytest
from xdsl.ir import Operation, SSAValue

from fuseline.analysis.prologue import prologue
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, is_generic
from fuseline.passes.fusion.prologues import Prologues

from .programs import Program


def _root(value: SSAValue) -> StructuredOp:
    assert isinstance(value.owner, Operation) and is_generic(value.owner)
    return StructuredOp(value.owner)


def _product(position: int) -> tuple[StructuredOp, list[Operation]]:
    """A product one of whose operands is the exponential of a pad, and these two ops."""
    p = Program((6, 8), (9, 4)) if position == 0 else Program((6, 9), (8, 4))
    pad = p.pad(p.x[position], [0, 1] if position == 0 else [1, 0], [0, 0])
    made = p.unary(pad)
    sides = [made, p.x[1]] if position == 0 else [p.x[0], made]
    product = p.matmul(sides[0], sides[1])
    p.done(product)
    ops = [value.owner for value in (pad, made)]
    return _root(product), [op for op in ops if isinstance(op, Operation)]


@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize("kept", [0, 1, 2])
def test_a_chain_ends_where_a_value_is_stored(position: int, kept: int):
    root, ops = _product(position)
    members = ops[len(ops) - kept :]
    chain = Prologues(ShapeAnalysis()).chain(root, position, members)
    assert [op for op in ops if op in chain] == members
    assert not Prologues(ShapeAnalysis()).chain(root, 1 - position, members)


@pytest.mark.parametrize("position", [0, 1])
def test_the_answer_is_that_of_the_analysis_and_is_kept(position: int):
    root, ops = _product(position)
    shapes = ShapeAnalysis()
    known = Prologues(shapes)
    whole, part = known.chain(root, position, ops), known.chain(root, position, ops[1:])
    answers = [known.through(root, position, chain) for chain in (whole, part, ())]
    assert answers == [prologue(root, position, frozenset(chain), shapes) for chain in (whole, part, ())]
    assert [answer.operations > 0 for answer in answers] == [True, True, False]
    assert all(
        known.through(root, position, chain) is answer for chain, answer in zip((whole, part, ()), answers, strict=True)
    )


def test_answers_for_one_operand_are_none_for_the_other():
    p = Program((64, 64))
    e = p.unary(p.x[0])
    product = p.matmul(e, e)
    p.done(product)
    root, known = _root(product), Prologues(ShapeAnalysis())
    chain = known.chain(root, 0, root.op.operands[0].owner.parent_block().ops)  # pyright: ignore
    assert known.through(root, 0, chain) is not known.through(root, 1, chain)
