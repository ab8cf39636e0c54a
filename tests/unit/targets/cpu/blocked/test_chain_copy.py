"""What was recognised in a function is, in its copy, what would be recognised there."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

from fuseline.analysis.online_softmax import online_softmaxes
from fuseline.targets.cpu.families.blocked.chain_copy import copied_chain
from tests.unit.analysis.test_online_softmax import CHOOSE, EXP, SUB, Text

TEXTS = [
    Text(),
    Text(shift=SUB, split=EXP),
    Text(weigh="%v = arith.mulf %i0, %i1 : f32"),
    Text(choose=CHOOSE),
    Text(factor="%v = arith.negf %i0 : f32"),
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_copied_chain_is_the_chain_of_the_copy(text: Text):
    (chain,) = text.chains()
    entry = chain.product.parent_op()
    assert isinstance(entry, FuncOp)
    (chain,) = online_softmaxes(entry.body.block.ops)
    copy = entry.clone()
    (wanted,) = online_softmaxes(copy.body.block.ops)
    found = copied_chain(chain, entry, copy)
    assert found == wanted and found != chain
    assert all(op.parent_op() is copy for op in found.ops) and found.loops == wanted.loops


def test_the_texts_have_all_that_a_chain_can_have():
    """Guards, ops that make a factor of the total, and what stays before the product."""
    found = [weighing for text in TEXTS for chain in text.chains() for weighing in chain.weights]
    assert any(weighing.guard is not None for weighing in found) and any(weighing.rows for weighing in found)
    assert {weighing.deferred for weighing in found} == {False, True}
