"""Calls, host operators, branches and loops in the evaluator, and what it says where they do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
    f32,
    i8,
    i64,
)
from xdsl.dialects.func import FuncOp

from fuseline.errors import FuselineError
from fuseline.evaluation import evaluate_module, main_function
from fuseline.evaluation.calls import entry_function
from fuseline.evaluation.constants import constant_value, dense_array
from fuseline.evaluation.control import branch, loop
from fuseline.evaluation.program import Program, Scope, evaluates, is_evaluable
from fuseline.ir.context import new_context
from fuseline.ir.declared_types import declare_dtypes
from fuseline.ir.flow import DispatchOp
from fuseline.ir.text import parse_module

HOST = """func.func @main(%x: tensor<3xi8>) -> tensor<3xi8> {
  %r = func.call @host(%x) : (tensor<3xi8>) -> tensor<3xi8>
  return %r : tensor<3xi8>
}
func.func private @host(tensor<3xi8>) -> tensor<3xi8>"""
DISPATCH = """flow.executable private @e {
  builtin.module {
    func.func @inner(%x: tensor<3xi8>) -> tensor<3xi8> { return %x : tensor<3xi8> }
  }
}
func.func @main(%x: tensor<3xi8>) -> tensor<3xi8> {
  %r = flow.dispatch @e::@inner(%x) : (tensor<3xi8>) -> tensor<3xi8>
  return %r : tensor<3xi8>
}"""
X = np.array([1, -1, 127], np.int8)


def _host(answer: Any, dtype: str | None = None) -> tuple[Any, list[Any]]:
    seen: list[Any] = []

    def call(callee: FuncOp, arguments: list[Any]) -> list[Any]:
        assert callee.sym_name.data == "host"
        seen.extend(arguments)
        return answer

    module = parse_module(HOST, new_context())
    if dtype is not None:
        declared = next(op for op in module.ops if isinstance(op, FuncOp) and op.is_declaration)
        declare_dtypes(declared, [dtype], [""])
    return evaluate_module(module, [X], host_call=call)[0], seen


def test_host_operators_take_and_give_what_they_declare():
    got, seen = _host([np.array([255, 0, 128], np.uint8)], "uint8")
    np.testing.assert_array_equal(seen[0], np.array([1, 255, 127], np.uint8))
    assert seen[0].dtype == np.uint8 and got.dtype == np.int8
    np.testing.assert_array_equal(got, [-1, 0, -128])
    got, seen = _host([np.array([1.0, 2.0, -3.0])])
    assert seen[0].dtype == np.int8 and got.dtype == np.int8
    np.testing.assert_array_equal(got, [1, 2, -3])


@pytest.mark.parametrize(
    ("declared", "answer"),
    [("i64", np.array([1.0, 2.0, -3.0])), ("i8", np.array([1, 2, -3])), ("f64", np.array([1, 2, -3]))],
    ids=["floats-as-wide", "wider-integers", "integers-as-wide"],
)
def test_what_a_host_operator_gives_in_another_type_is_converted(declared: str, answer: Any):
    """Only integers of one width are read as each other, bit by bit."""
    text = HOST.replace("i8", declared).replace(f"@main(%x: tensor<3x{declared}>)", "@main(%x: tensor<3xi8>)")
    text = text.replace(f"@host(%x) : (tensor<3x{declared}>)", "@host(%x) : (tensor<3xi8>)")
    text = text.replace(f"@host(tensor<3x{declared}>)", "@host(tensor<3xi8>)")
    module = parse_module(text, new_context())
    (got,) = evaluate_module(module, [X], host_call=lambda _callee, _arguments: [answer])
    assert got.dtype == {"i64": np.int64, "i8": np.int8, "f64": np.float64}[declared]
    np.testing.assert_array_equal(got, [1, 2, -3])


def test_a_function_takes_as_many_arguments_as_it_has():
    module = parse_module(DISPATCH, new_context())
    with pytest.raises(FuselineError, match=r"E0305.*@main takes 1 arguments, got 2"):
        evaluate_module(module, [X, X])


def test_values_are_dropped_after_their_last_use():
    """A block keeps no more arrays than it still needs: of a whole model they would not fit into memory."""
    text = """func.func @main(%x: f32) -> f32 {
      %unused = arith.negf %x : f32
      %a = arith.addf %x, %x : f32
      %b = arith.mulf %a, %x : f32
      return %b : f32
    }"""
    module = parse_module(text, new_context())
    block = main_function(module).body.block
    program = Program()
    scope = Scope(program)
    scope.bind(block.args, [np.array(3.0, np.float32)])
    assert program.run_block(block, scope) == [18.0]
    assert [str(value.name_hint) for value in scope.values] == ["b"]


def test_host_operators_give_as_many_results_as_they_declare():
    with pytest.raises(FuselineError, match=r"E0305.*host gave 2 results, expected 1"):
        _host([X, X])


def test_host_operators_need_a_host():
    with pytest.raises(FuselineError, match=r"E0305.*host runs on the host and no host was given"):
        evaluate_module(parse_module(HOST, new_context()), [X])


def test_a_function_that_is_not_there():
    module = parse_module(HOST, new_context())
    module.body.block.erase_op(next(op for op in module.ops if isinstance(op, FuncOp) and op.is_declaration))
    with pytest.raises(FuselineError, match=r"E0305.*no function @host"):
        evaluate_module(module, [X])


@pytest.mark.parametrize("gone", ["flow.executable private @e", "func.func @inner"])
def test_an_executable_that_is_not_there(gone: str):
    module = parse_module(DISPATCH, new_context())
    (got,) = evaluate_module(module, [X])
    np.testing.assert_array_equal(got, X)
    op = next(op for op in module.walk() if isinstance(op, DispatchOp))
    assert entry_function(op).sym_name.data == "inner"
    named = gone.split("@")[1]
    renamed = next(
        op
        for op in module.walk()
        if isinstance(name := op.properties.get("sym_name"), StringAttr) and name.data == named
    )
    renamed.properties["sym_name"] = StringAttr("other")
    with pytest.raises(FuselineError, match=r"E0305.*no executable entry @e::@inner"):
        evaluate_module(module, [X])


IF = """func.func @main(%c: i1, %x: tensor<3xf32>) -> tensor<3xf32> {
  %r = scf.if %c -> (tensor<3xf32>) {
    scf.yield %x : tensor<3xf32>
  } else {
    %e = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
    scf.yield %e : tensor<3xf32>
  }
  return %r : tensor<3xf32>
}"""


@pytest.mark.parametrize("condition", [False, True])
def test_branches(condition: bool):
    x = np.array([7, 8, 9], np.float32)
    (got,) = evaluate_module(parse_module(IF, new_context()), [np.bool_(condition), x])
    np.testing.assert_array_equal(got, x if condition else [1, 2, 3])


FOR = """func.func @main(%low: index, %high: index, %step: index) -> (i64, i64) {
  %a = arith.constant 1 : i64
  %b = arith.constant 0 : i64
  %r:2 = scf.for %i = %low to %high step %step iter_args(%p = %a, %n = %b) -> (i64, i64) {
    %c = arith.index_cast %i : index to i64
    %q = arith.muli %p, %c : i64
    %one = arith.constant 1 : i64
    %m = arith.addi %n, %one : i64
    scf.yield %q, %m : i64, i64
  }
  return %r#0, %r#1 : i64, i64
}"""


@pytest.mark.parametrize(
    ("bounds", "expected"), [((2, 7, 2), (48, 3)), ((2, 6, 2), (8, 2)), ((5, 5, 1), (1, 0)), ((5, 2, 1), (1, 0))]
)
def test_counted_loops(bounds: tuple[int, int, int], expected: tuple[int, int]):
    assert tuple(evaluate_module(parse_module(FOR, new_context()), list(bounds))) == expected


@pytest.mark.parametrize("step", [0, -1])
def test_loops_that_would_not_end_are_refused(step: int):
    with pytest.raises(FuselineError, match=rf"E0305.*the step is {step}"):
        evaluate_module(parse_module(FOR, new_context()), [0, 3, step])


def test_every_op_has_one_evaluation():
    module = parse_module(IF, new_context())
    assert not is_evaluable(module)
    assert is_evaluable(next(op for op in module.walk() if op.name == "scf.if"))
    for name, handler in (("scf.if", branch), ("scf.for", loop)):
        with pytest.raises(KeyError, match=f"two evaluations of {name}"):
            evaluates(name)(handler)


@pytest.mark.parametrize(
    ("number", "bits", "expected"),
    [(-1, 8, -1), (255, 8, -1), (128, 8, -128), (-(2**63), 64, -(2**63)), (2**64 - 1, 64, -1)],
)
def test_integers_wrap(number: int, bits: int, expected: int):
    text = f"func.func @main() -> i{bits} {{ %r = arith.constant {number} : i{bits}\n return %r : i{bits} }}"
    (found,) = evaluate_module(parse_module(text, new_context()), [])
    assert found == expected and found.dtype == np.dtype(f"int{bits}")


def test_dense_constants_keep_their_shape():
    type_ = TensorType(f32, [2, 3])
    many, one = (
        DenseIntOrFPElementsAttr.from_list(type_, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        DenseIntOrFPElementsAttr.from_list(type_, [7.0]),
    )
    np.testing.assert_array_equal(dense_array(many), [[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(dense_array(one), np.full((2, 3), 7))
    assert dense_array(DenseIntOrFPElementsAttr.from_list(TensorType(i8, [1]), [5])).dtype == np.int8
    with pytest.raises(FuselineError, match=r"E0305.*constants of this kind cannot be evaluated: string"):
        constant_value(arith.ConstantOp(IntegerAttr(0, i64)), StringAttr("text"), Program())


WEIGHT = (
    "func.func @main() -> tensor<2x2xi8> { %r = arith.constant dense_resource<w> : tensor<2x2xi8>\n return %r : "
    "tensor<2x2xi8> }"
)


def test_weights_are_looked_up_and_checked():
    module = parse_module(WEIGHT, new_context())
    (got,) = evaluate_module(module, [], {"w": np.array([1, 2, 255, 4], np.uint8)})
    np.testing.assert_array_equal(got, np.array([[1, 2], [-1, 4]], np.int8))
    with pytest.raises(FuselineError, match=r"E0305.*no data for dense_resource<w>"):
        evaluate_module(module, [], {})
    with pytest.raises(FuselineError, match=r"E0305.*dense_resource<w> has 3 elements, its type tensor<2x2xi8>"):
        evaluate_module(module, [], {"w": np.zeros(3, np.int8)})


FUNCTIONS = {
    "main": "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  return %x : tensor<2xf32>\n}\n",
    "other": "func.func @other(%x: tensor<2xf32>) -> tensor<2xf32> {\n  return %x : tensor<2xf32>\n}\n",
    "mine": "func.func private @mine(%x: tensor<2xf32>) -> tensor<2xf32> {\n  return %x : tensor<2xf32>\n}\n",
    "declared": "func.func @declared(tensor<2xf32>) -> tensor<2xf32>\n",
}


@pytest.mark.parametrize(
    ("functions", "entry"),
    [
        (("other", "main"), "main"),
        (("other", "mine"), "other"),
        (("mine", "declared", "other"), "other"),
        (("mine", "declared"), "found 0"),
    ],
)
def test_the_entry_of_a_program(functions: tuple[str, ...], entry: str):
    module = parse_module("".join(FUNCTIONS[name] for name in functions), new_context())
    if entry in FUNCTIONS:
        assert main_function(module).sym_name.data == entry
        return
    with pytest.raises(FuselineError, match=entry) as caught:
        main_function(module)
    assert caught.value.code == "E0305"


def test_results_have_the_types_that_the_function_says() -> None:
    text = """func.func @main(%x: tensor<3xf32>, %i: tensor<2xi64>)
        -> (tensor<3xf32>, tensor<2xi64> {fuseline.dtype = "uint64"}) {
      return %x, %i : tensor<3xf32>, tensor<2xi64>
    }"""
    module, feeds = parse_module(text, new_context()), [np.ones(3, np.float32), np.array([1, -1])]
    assert [result.dtype for result in evaluate_module(module, feeds)] == [np.float32, np.uint64]
    assert evaluate_module(module, feeds, double=True)[0].dtype == np.float64
    with pytest.raises(FuselineError, match=r"argument 1 of @main is tensor<2xi64>, got int32") as caught:
        evaluate_module(module, [feeds[0], np.zeros(2, np.int32)])
    assert caught.value.code == "E0305"
