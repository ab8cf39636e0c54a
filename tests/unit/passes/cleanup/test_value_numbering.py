"""When two ops compute the same value, and which ones may go when nothing reads them."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation

from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.text import parse_module
from fuseline.passes.cleanup.elimination import is_dead, is_pure, is_removable, record_eliminated
from fuseline.passes.cleanup.value_numbering import ValueNumbering


def _module(
    body: str, arguments: str = "%x: i32, %y: i32, %f: f32, %g: f32, %t: tensor<4xf32>"
) -> tuple[ModuleOp, list[Operation], CompilerContext]:
    ctx = new_context()
    module = parse_module(f"func.func @main({arguments}) {{ {body}\n return }}", ctx)
    (main,) = (op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == "main")
    return module, list(main.body.block.ops), ctx


def _equal(first: str, second: str) -> bool:
    _, ops, _ = _module(f"{first}\n{second}")
    numbering = ValueNumbering()
    a, b = (numbering.key(op) for op in ops[:2])
    assert (numbering.outside(ops[0]) == numbering.outside(ops[1])) or a != b
    return a == b


@pytest.mark.parametrize("name", ["addi", "muli", "andi", "ori", "xori", "maxsi", "minsi", "maxui", "minui"])
def test_operands_of_commutative_ops_have_no_order(name: str):
    assert _equal(f"%a = arith.{name} %x, %y : i32", f"%b = arith.{name} %y, %x : i32")


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        ("%a = arith.subi %x, %y : i32", "%b = arith.subi %x, %y : i32", True),
        ("%a = arith.subi %x, %y : i32", "%b = arith.subi %y, %x : i32", False),
        ("%a = arith.addf %f, %g : f32", "%b = arith.addf %g, %f : f32", False),
        ("%a = arith.addi %x, %y : i32", "%b = arith.muli %x, %y : i32", False),
        ("%a = arith.constant 1 : i32", "%b = arith.constant 2 : i32", False),
        ("%a = arith.constant 1 : i32", "%b = arith.constant 1 : i64", False),
        ('%a = arith.negf %f : f32 loc("a")', '%b = arith.negf %f : f32 loc("b")', True),
        ("%a = arith.extsi %x : i32 to i64", "%b = arith.extsi %x : i32 to i48", False),
    ],
)
def test_equal_keys_mean_equal_values(first: str, second: str, equal: bool):
    assert _equal(first, second) == equal


def _generic(body: str, name: str, arguments: str = "%p: f32, %q: f32") -> str:
    maps = 'indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]'
    return (
        f"%{name} = linalg.generic {{{maps}}} ins(%t : tensor<4xf32>) outs(%t : tensor<4xf32>) "
        f"{{\n^bb0({arguments}):\n {body} }} -> tensor<4xf32>"
    )


@pytest.mark.parametrize(
    ("other", "equal"),
    [
        ("%s = math.exp %p : f32\n %u = arith.mulf %s, %f : f32\n linalg.yield %u : f32", True),
        ("%s = math.exp %q : f32\n %u = arith.mulf %s, %f : f32\n linalg.yield %u : f32", False),
        ("%s = math.exp %p : f32\n %u = arith.mulf %s, %g : f32\n linalg.yield %u : f32", False),
        ("%s = math.exp %p : f32\n %u = arith.mulf %s, %f : f32\n linalg.yield %s : f32", False),
        ("%s = math.tanh %p : f32\n %u = arith.mulf %s, %f : f32\n linalg.yield %u : f32", False),
    ],
)
def test_bodies_are_compared_by_what_they_compute(other: str, equal: bool):
    first = _generic("%s = math.exp %p : f32\n %u = arith.mulf %s, %f : f32\n linalg.yield %u : f32", "a")
    assert _equal(first, _generic(other, "b")) == equal


CALLS = """func.func private @host(tensor<4xf32>) -> tensor<4xf32> attributes {fuseline.host_op = "Unique"}
func.func private @unknown(tensor<4xf32>) -> tensor<4xf32>
func.func private @part(%p: tensor<4xf32>) -> tensor<4xf32> { return %p : tensor<4xf32> }
func.func @main(%t: tensor<4xf32>) {
  %a = func.call @host(%t) : (tensor<4xf32>) -> tensor<4xf32>
  %b = func.call @unknown(%t) : (tensor<4xf32>) -> tensor<4xf32>
  %c = func.call @part(%t) : (tensor<4xf32>) -> tensor<4xf32>
  return
}"""


def test_calls_may_go_where_what_they_call_only_computes():
    calls = [op for op in parse_module(CALLS, new_context()).walk() if isinstance(op, CallOp)]
    assert [is_removable(call) for call in calls] == [True, False, True] == [is_dead(call) for call in calls]
    assert not any(is_pure(call) for call in calls)


def test_what_is_read_or_has_an_effect_stays():
    _, ops, _ = _module(
        "%a = arith.addi %x, %y : i32\n %b = arith.addi %a, %y : i32\n %e = tensor.empty() : tensor<4xf32>"
    )
    assert [is_dead(op) for op in ops] == [False, True, True, False]
    assert [is_pure(op) for op in ops] == [True, True, True, False]


def test_nodes_that_nothing_carries_are_gone_and_the_first_pass_that_says_so_is_named():
    module, _, ctx = _module(
        '%a = arith.addi %x, %y : i32 loc("kept")\n %e = tensor.empty() : tensor<4xf32> loc("empty")'
    )
    record_eliminated(ctx, module, ["kept", "gone", "empty"], "cse")
    record_eliminated(ctx, module, ["gone"], "dead-code")
    record_eliminated(ctx, module, [], "dead-code")
    assert ctx.records.eliminated == {"gone": "cse", "empty": "cse"}
