"""Scalars of a function: what they are, and what stands for one as a tensor or as a size."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.ir import Operation

from fuseline.ir.build import Emitter
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.dim import symbol
from fuseline.ir.text import parse_module
from fuseline.passes.cleanup import scalar_values
from tests.unit.passes.cleanup.expanding import numbers, run

TEXT = """func.func @main(%x: tensor<3x4xf32>, %i: index, %a: f32) -> tensor<3x4xf32> {
  %one = arith.constant 1 : index
  %k = arith.constant 2.5 : f32
  %w = arith.constant dense<1.0> : tensor<2xf32>
  %n = tensor.dim %x, %one : tensor<3x4xf32>
  %m = arith.addi %n, %i : index
  %s = arith.mulf %a, %k : f32
  %c = arith.cmpi slt, %m, %i : index
  %e = tensor.empty() : tensor<3x4xf32>
  %r = linalg.fill ins(%s : f32) outs(%e : tensor<3x4xf32>) -> tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}"""


def _ops(text: str = TEXT) -> tuple[ModuleOp, list[Operation]]:
    module = parse_module(text, new_context())
    (function,) = [op for op in module.ops if isinstance(op, func.FuncOp)]
    return module, list(function.body.block.ops)


def test_which_ops_make_scalars_only() -> None:
    _, ops = _ops()
    assert {op.results[0].name_hint for op in ops if op.results and scalar_values.is_scalar_op(op)} >= {"m", "s", "c"}
    assert not any(scalar_values.is_scalar_op(op) for op in ops if op.name in ("linalg.fill", "func.return"))


def test_which_arithmetic_sizes_have() -> None:
    _, ops = _ops()
    of_sizes = {op.results[0].name_hint for op in ops if op.results and scalar_values.is_size_arithmetic(op)}
    assert {"n", "m", "one"} <= of_sizes and of_sizes.isdisjoint({"s", "c", "r", "e"})


def test_a_size_and_a_constant_as_tensors_without_dimensions() -> None:
    text = """func.func @main(%n: index) -> tensor<index> {
  %e = tensor.empty() : tensor<index>
  return %e : tensor<index>
}"""
    module, (empty, end) = _ops(text)
    (function,) = [op for op in module.ops if isinstance(op, func.FuncOp)]
    end.operands[0] = scalar_values.rank_zero(Emitter.before(empty), function.args[0])
    module.verify()
    np.testing.assert_array_equal(run(module, 7), np.array(7))


@pytest.mark.parametrize(("type_", "value"), [("f32", "2.5 : f32"), ("i64", "-3 : i64"), ("i1", "true")])
def test_a_constant_as_a_tensor(type_: str, value: str) -> None:
    text = f"""func.func @main() -> tensor<{type_}> {{
  %k = arith.constant {value}
  %e = tensor.empty() : tensor<{type_}>
  return %e : tensor<{type_}>
}}"""
    module, (constant, _, end) = _ops(text)
    assert isinstance(constant, arith.ConstantOp)
    end.operands[0] = scalar_values.constant_scalar(constant)
    module.verify()
    assert run(module) == {"f32": 2.5, "i64": -3, "i1": True}[type_]
    assert run(module).shape == ()


def _extract(indices: str, type_: str = "3x4", constants: tuple[int, ...] = ()) -> tuple[ModuleOp, tensor.ExtractOp]:
    lines = "\n".join(f"  %c{i} = arith.constant {number} : index" for i, number in enumerate(constants))
    text = f"""func.func @main(%x: tensor<{type_}xf32>, %i: index) -> tensor<f32> {{
{lines}
  %v = tensor.extract %x[{indices}] : tensor<{type_}xf32>
  %e = tensor.empty() : tensor<f32>
  return %e : tensor<f32>
}}"""
    module, ops = _ops(text)
    (read,) = [op for op in ops if isinstance(op, tensor.ExtractOp)]
    return module, read


@pytest.mark.parametrize(("type_", "position"), [("3x4", (2, 1)), ("?x4", (2, 3)), ("1x1", (0, 0)), ("1x?", (0, 1))])
def test_an_element_at_a_known_place(type_: str, position: tuple[int, int]) -> None:
    module, read = _extract("%c0, %c1", type_, position)
    made = scalar_values.extracted(read)
    assert made is not None and made.type == TensorType(f32, [])
    list(module.walk())[-1].operands[0] = made
    x = numbers(3, 4)[: 1 if type_[0] == "1" else 3, : 1 if type_ == "1x1" else 4]
    np.testing.assert_array_equal(run(module, x, 0), x[position])


@pytest.mark.parametrize("position", [(3, 0), (0, 4), (-1, 0)])
def test_a_place_outside_has_no_element(position: tuple[int, int]) -> None:
    module, read = _extract("%c0, %c1", "3x4", position)
    before = len(list(module.walk()))
    assert scalar_values.extracted(read) is None
    assert len(list(module.walk())) == before


def test_a_computed_place_is_not_read_here() -> None:
    _, read = _extract("%i, %c0", constants=(0,))
    assert scalar_values.extracted(read) is None


def test_a_tensor_without_dimensions_is_its_element() -> None:
    text = """func.func @main(%x: tensor<f32>) -> f32 {
  %v = tensor.extract %x[] : tensor<f32>
  return %v : f32
}"""
    _, (read, _) = _ops(text)
    assert isinstance(read, tensor.ExtractOp)
    assert scalar_values.extracted(read) is read.tensor


def test_each_number_that_is_read_is_a_size_of_its_own() -> None:
    text = """func.func @main(%x: tensor<i64>, %y: tensor<i32>) -> tensor<i64> {
  return %x : tensor<i64>
}"""
    ctx = new_context()
    ctx.symbols["index0"] = symbol("index0")  # the model's own
    module = parse_module(text, ctx)
    assert isinstance(ctx, CompilerContext)
    (main,) = [op for op in module.ops if isinstance(op, func.FuncOp)]
    (end,) = main.body.block.ops
    reads = scalar_values.IndexReads(module, ctx)
    made = [reads.read(Emitter.before(end), argument) for argument in main.args]
    module.verify()
    assert [str(value.type) for value in made] == ["index", "index"]
    assert ctx.symbols["index1"] == symbol("index1", 0) and "index2" in ctx.symbols
    declared = {op.sym_name.data: op for op in module.ops if isinstance(op, func.FuncOp) and op.is_declaration}
    calls = [op for op in main.walk() if isinstance(op, func.CallOp)]
    assert [call.callee.string_value() for call in calls] == list(declared) and len(declared) == 2
    assert [str(op.attributes["fuseline.executor"]) for op in declared.values()] == ['"index"'] * 2
