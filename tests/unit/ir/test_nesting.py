"""What the ops of a block read is replaced there and nowhere else."""

from __future__ import annotations

from fuseline.ir.context import new_context
from fuseline.ir.fast.nesting import ops_inside, replace_inside, within
from fuseline.ir.text import parse_module

TEXT = """func.func @main(%x: f32, %y: f32, %e: tensor<4xf32>) -> (tensor<4xf32>, f32) {
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      outs(%e : tensor<4xf32>) {
  ^bb0(%out: f32):
    %a = arith.addf %x, %x : f32
    %b = arith.mulf %a, %y : f32
    linalg.yield %b : f32
  } -> tensor<4xf32>
  %outside = arith.negf %x : f32
  return %r, %outside : tensor<4xf32>, f32
}
"""


def test_inside_means_at_any_depth():
    module = parse_module(TEXT, new_context())
    function = next(iter(module.ops))
    names = [op.name for op in ops_inside(function)]
    assert names == ["linalg.generic", "arith.addf", "arith.mulf", "linalg.yield", "arith.negf", "func.return"]
    generic, add = ops_inside(function)[:2]
    assert within(add, function.regions[0].block) and within(add, generic.regions[0].block)
    assert not within(generic, generic.regions[0].block)


def test_uses_outside_stay():
    module = parse_module(TEXT, new_context())
    function = next(iter(module.ops))
    x, y, _ = function.regions[0].block.args
    generic, add, multiply, _, negate, _ = ops_inside(function)
    y.name_hint = None
    replace_inside(generic, {x: y})
    assert list(add.operands) == [y, y]
    assert list(multiply.operands) == [add.results[0], y]
    assert list(negate.operands) == [x]
    assert y.name_hint == "x"
