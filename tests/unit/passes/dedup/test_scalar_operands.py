"""Constants of bodies become scalars behind the tensors of a function, and calls pass them there."""

from __future__ import annotations

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, TensorType, f32, i32
from xdsl.dialects.func import FuncOp

from fuseline.dispatch.body_constants import body_constants
from fuseline.dispatch.view import DispatchView
from fuseline.ir.context import new_context
from fuseline.ir.flow import DispatchOp
from fuseline.ir.text import parse_module
from fuseline.passes.dedup.scalar_operands import ScalarArguments, add_operands, calls_of

ENTRY = """func.func @main(%x: tensor<?xf32>, %n: index) -> tensor<?xf32> {
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %c = arith.constant 2.0 : f32
    %d = arith.constant 0.5 : f32
    %p = arith.mulf %a, %c : f32
    %q = arith.addf %p, %d : f32
    %v = arith.subf %q, %c : f32
    linalg.yield %v : f32
  } -> tensor<?xf32>
  return %r : tensor<?xf32>
}"""
CALLS = """func.func @main(%x: tensor<3xf32>, %y: tensor<3xf32>) {
  %a = flow.dispatch @e::@e(%x) : (tensor<3xf32>) -> tensor<3xf32>
  %b = flow.dispatch @f::@f(%a) : (tensor<3xf32>) -> tensor<3xf32>
  %c = flow.dispatch @e::@e(%b, %y) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}
func.func @other(%x: tensor<3xf32>) {
  %a = flow.dispatch @e::@e(%x) : (tensor<3xf32>) -> tensor<3xf32>
  return
}"""


def _entry() -> FuncOp:
    (entry,) = parse_module(ENTRY, new_context()).ops
    assert isinstance(entry, FuncOp)
    return entry


def _constants(entry: FuncOp) -> list[float]:
    return [constant.value.value.data for constant in body_constants(entry)]


def test_a_group_of_equal_constants_is_one_scalar_behind_the_tensors():
    entry = _entry()
    factor, term, again = body_constants(entry)
    add_operands(entry, [[factor, again], [term]])
    entry.verify()
    assert [str(type_) for type_ in entry.function_type.inputs] == [
        "tensor<?xf32>",
        "tensor<f32>",
        "tensor<f32>",
        "index",
    ]
    view = DispatchView(entry)
    tensors = [argument for argument in entry.body.block.args if isinstance(argument.type, TensorType)]
    assert [view.is_scalar(argument) for argument in tensors] == [False, True, True]
    assert [view.is_constant(argument) for argument in tensors] == [False, True, True]
    assert _constants(entry) == [] and not any(isinstance(op, arith.ConstantOp) for op in entry.walk())


def test_each_reader_reads_the_argument_of_its_group():
    entry = _entry()
    factor, term, again = body_constants(entry)
    add_operands(entry, [[factor, again], [term]])
    read = [constant.reader.operands[constant.position].owner for constant in (factor, term, again)]
    arguments = entry.body.block.args
    assert [op.tensor for op in read if isinstance(op, tensor.ExtractOp)] == [arguments[1], arguments[2], arguments[1]]


def test_a_constant_with_another_reader_stays_for_it():
    entry = _entry()
    factor = body_constants(entry)[0]
    add_operands(entry, [[factor]])
    entry.verify()
    assert _constants(entry) == [0.5, 2.0]


def test_calls_are_found_by_executable_in_all_functions():
    found = calls_of(parse_module(CALLS, new_context()))
    assert {name: [len(call.arguments) for call in calls] for name, calls in found.items()} == {
        "e": [1, 2, 1],
        "f": [1],
    }


def test_equal_numbers_of_a_function_are_one_constant():
    module = parse_module(CALLS, new_context())
    first, second, elsewhere = calls_of(module)["e"]
    two, half, whole = FloatAttr(2.0, f32), FloatAttr(0.5, f32), IntegerAttr(2, i32)
    scalars = ScalarArguments()
    scalars.append(first, [two, half])
    scalars.append(second, [FloatAttr(2.0, f32), whole])
    scalars.append(elsewhere, [two])
    module.verify()
    assert [str(value.type) for value in second.arguments] == ["tensor<3xf32>"] * 2 + ["tensor<f32>", "tensor<i32>"]
    assert second.arguments[2] is first.arguments[1] is not elsewhere.arguments[1]
    made = [op for op in module.walk() if isinstance(op, arith.ConstantOp)]
    assert len(made) == 4
    assert [op.parent_op() for op in made] == [*[first.parent_op()] * 3, elsewhere.parent_op()]


def test_numbers_come_before_sizes():
    text = """func.func @main(%x: tensor<?xf32>, %n: index) {
      %a = flow.dispatch @e::@e(%x, %n) : (tensor<?xf32>{%n}, index) -> tensor<?xf32>{%n}
      return
    }"""
    module = parse_module(text, new_context())
    (call,) = (op for op in module.walk() if isinstance(op, DispatchOp))
    ScalarArguments().append(call, [FloatAttr(2.0, f32)])
    module.verify()
    assert [str(value.type) for value in call.arguments] == ["tensor<?xf32>", "tensor<f32>", "index"]
    assert (len(call.workload), len(call.argument_dims), len(call.result_dims)) == (0, 1, 1)
