"""Transposes that a generic absorbs: in its operands, in what its body extracts from, and what stays."""

from __future__ import annotations

import pytest
from xdsl.dialects import func, linalg, tensor
from xdsl.dialects.builtin import ModuleOp

from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.passes.layout.rewriting.absorb import absorb_operands, write_results
from fuseline.passes.layout.rewriting.scope import Scope

CAPTURED = """func.func @main(%x: tensor<3x4xf32>, %i: tensor<5xi64>) -> tensor<5xf32> {
  %e = tensor.empty() : tensor<4x3xf32>
  %t = linalg.transpose ins(%x : tensor<3x4xf32>) outs(%e : tensor<4x3xf32>) permutation = [1, 0]
  %f = tensor.empty() : tensor<5xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a) -> (a)>, affine_map<(a) -> (a)>], iterator_types = ["parallel"]}
      ins(%i : tensor<5xi64>) outs(%f : tensor<5xf32>) {
  ^bb0(%p: i64, %out: f32):
    %at = arith.index_cast %p : i64 to index
    %two = arith.constant 2 : index
    %s = tensor.extract %t[%at, %two] : tensor<4x3xf32>
    linalg.yield %s : f32
  } -> tensor<5xf32>
  return %r : tensor<5xf32>
}"""
READ = """func.func @main(%x: tensor<3x4xf32>, %y: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %e = tensor.empty() : tensor<4x3xf32>
  %t = linalg.transpose ins(%x : tensor<3x4xf32>) outs(%e : tensor<4x3xf32>) permutation = [1, 0]
  %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>,
      affine_map<(a, b) -> (a, b)>],
      iterator_types = ["parallel", "parallel"]} ins(%y, OPERAND : tensor<4x3xf32>, tensor<4x3xf32>)
          outs(%e : tensor<4x3xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.subf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}"""


def _generic(text: str) -> tuple[ModuleOp, linalg.ops.GenericOp]:
    module = parse_module(text, new_context())
    (found,) = [op for op in module.walk() if isinstance(op, linalg.ops.GenericOp)]
    return module, found


def test_a_transposed_operand_is_read_where_it_lies() -> None:
    _, op = _generic(READ.replace("OPERAND", "%t"))
    assert absorb_operands(op)
    assert [operand.name_hint for operand in op.inputs] == ["y", "x"]
    assert [str(map_.data) for map_ in op.indexing_maps] == [
        "(d0, d1) -> (d0, d1)",
        "(d0, d1) -> (d1, d0)",
        "(d0, d1) -> (d0, d1)",
    ]
    assert not absorb_operands(op)


def test_what_the_body_extracts_from_is_read_where_it_lies() -> None:
    """That alone is a change as well."""
    module, op = _generic(CAPTURED)
    assert absorb_operands(op)
    (read,) = [inner for inner in module.walk() if isinstance(inner, tensor.ExtractOp)]
    assert read.tensor.name_hint == "x"
    assert [index.name_hint for index in read.indices] == ["two", "at"]
    assert not absorb_operands(op)


@pytest.mark.parametrize(("readers", "absorbed"), [(1, False), (2, False), (3, True)])
def test_a_constant_that_is_only_transposed_is_stored_so(readers: int, absorbed: bool) -> None:
    """Where some reader takes it as it is, both would have to be stored."""
    constant = "%x = arith.constant dense<2.0> : tensor<3x4xf32>\n"
    text = (
        READ.replace("OPERAND", "%t").replace("%x: tensor<3x4xf32>, ", "").replace("  %e =", f"  {constant}  %e =", 1)
    )
    if readers > 1:
        again = (
            "%u = linalg.transpose ins(%x : tensor<3x4xf32>) outs(%e : tensor<4x3xf32>) permutation = [1, 0]\n  %r ="
        )
        text = text.replace("%r =", again, 1)
    if readers > 2:
        text = text.replace("%r =", "%c = tensor.cast %x : tensor<3x4xf32> to tensor<?x4xf32>\n  %r =", 1)
    _, op = _generic(text)
    assert absorb_operands(op) == absorbed


def test_what_restores_a_result_comes_from_the_same_node() -> None:
    text = READ.replace("OPERAND", "%t").replace(
        "-> tensor<4x3xf32>\n  return", '-> tensor<4x3xf32> loc("node")\n  return'
    )
    module, op = _generic(text)
    (function,) = module.ops
    assert isinstance(function, func.FuncOp) and op.location is not None
    new = write_results(Scope(function, new_context()), op, [(1, 0)])
    (restored,) = {use.operation for use in new.results[0].uses}
    assert isinstance(restored, linalg.ops.TransposeOp)
    assert str(new.location) == str(restored.location) and "node" in str(restored.location)
    module.verify()
