"""Operands are defined before they are read."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from fuseline.errors import FuselineError
from fuseline.ir.verify_definitions import verify_definitions
from tests.graphs.program import Program


def _module() -> tuple[ModuleOp, Block, Operation, Operation]:
    """A module, its block, and two ops of that, of which the second reads the first."""
    p = Program((4, 5))
    made = p.relu(p.x[0])
    read = p.unary(made)
    p.block.add_op(func.ReturnOp(read))
    before, behind = made.owner, read.owner
    assert isinstance(before, Operation) and isinstance(behind, Operation)
    return p.module, p.block, before, behind


def test_a_program_whose_values_are_defined() -> None:
    verify_definitions(_module()[0])


def _detach(block: Block, before: Operation, behind: Operation) -> None:
    before.detach()


def _swap(block: Block, before: Operation, behind: Operation) -> None:
    before.detach()
    block.insert_op_after(before, behind)


@pytest.mark.parametrize(("spoil", "where"), [(_detach, "nowhere"), (_swap, "elsewhere")])
def test_a_value_that_is_not_defined_where_it_is_read(
    spoil: Callable[[Block, Operation, Operation], None], where: str
) -> None:
    module, block, before, behind = _module()
    spoil(block, before, behind)
    with pytest.raises(FuselineError, match=where) as caught:
        verify_definitions(module)
    assert caught.value.code == "E0901"
