"""Values are used behind what makes them, in their own block or around it."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Operation

from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.ir.visible import misplaced_use

TEXT = """
func.func @main(%a: index, %b: index) -> index {
  %zero = arith.constant 0 : index
  %sum = scf.for %i = %zero to %a step %b iter_args(%s = %zero) -> (index) {
    %n = arith.addi %s, %i : index
    scf.yield %n : index
  }
  %r = arith.muli %sum, %b : index
  return %r : index
}
func.func @other(%a: index) -> index {
  return %a : index
}"""


def _module() -> tuple[ModuleOp, dict[type[Operation], Operation]]:
    module = parse_module(TEXT, new_context())
    return module, {type(op): op for op in reversed(list(module.walk()))}


def test_a_program_in_order() -> None:
    assert misplaced_use(_module()[0]) is None


def test_a_value_that_is_made_later() -> None:
    module, ops = _module()
    product, loop = ops[arith.MuliOp], ops[scf.ForOp]
    product.detach()
    assert loop.parent is not None
    loop.parent.insert_op_before(product, loop)
    assert misplaced_use(module) == (product, loop.results[0])


@pytest.mark.parametrize("inner", [scf.ForOp, func.FuncOp])
def test_a_value_of_a_region_is_not_there_outside_or_in_another(inner: type[Operation]) -> None:
    module, ops = _module()
    if inner is scf.ForOp:
        value, user = ops[arith.AddiOp].results[0], ops[arith.MuliOp]
    else:
        value = ops[func.FuncOp].regions[0].block.args[0]
        user = list(module.walk())[-1]
        assert isinstance(user, func.ReturnOp)
    user.operands[0] = value
    assert misplaced_use(module) == (user, value)


def test_an_op_does_not_use_itself() -> None:
    module, ops = _module()
    add = ops[arith.AddiOp]
    add.operands[0] = add.results[0]
    assert misplaced_use(module) == (add, add.results[0])
    assert add.results[0].type == IndexType()
