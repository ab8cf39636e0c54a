"""Entry functions are equal up to extents where nothing else differs."""

from __future__ import annotations

import pytest
from xdsl.dialects import linalg
from xdsl.dialects.func import FuncOp

from fuseline.analysis.extents_key import extents_key, key_around
from fuseline.analysis.structural_key import AttributeNumbers, structural_key
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module

PROGRAM = """func.func @{name}(%a: tensor<{n}x{m}xf32> {{fuseline.dims = ["{n}", "{dim}"]}}) -> tensor<{k}x{m}xf32>
    attributes {{fuseline.loops = {{grids = [["{k}", "{m}"]], members = [array<i64: 0, 1>]}}}} {{
  %c = arith.constant {index} : index
  %z = arith.constant {zero} : f32
  %s = tensor.extract_slice %a[{offset}, 0] [{k}, {m}] [{step}, 1] : tensor<{n}x{m}xf32> to tensor<{k}x{m}xf32>
  %p = tensor.pad %s low[{low}, 0] high[0, 0] {{
  ^bb0(%i: index, %j: index):
    tensor.yield %z : f32
  }} : tensor<{k}x{m}xf32> to tensor<{padded}x{m}xf32>
  %d = tensor.dim %p, %c : tensor<{padded}x{m}xf32>
  return %s : tensor<{k}x{m}xf32>
}}"""

VALUES: dict[str, object] = {
    "name": "f",
    "n": 8,
    "m": 16,
    "k": 4,
    "offset": 2,
    "step": 1,
    "low": 1,
    "padded": 5,
    "index": 0,
    "zero": "0.0",
    "dim": 16,
}


def entry(**other: object) -> FuncOp:
    module = parse_module(PROGRAM.format(**{**VALUES, **other}), new_context())
    return next(op for op in module.ops if isinstance(op, FuncOp))


@pytest.mark.parametrize(
    "other",
    [
        {"name": "g"},
        {"n": 30, "offset": 7},
        {"m": 24, "dim": "24"},
        {"k": 6, "padded": 7},
        {"low": 3, "padded": 7},
        {"index": 1},
    ],
)
def test_extents_do_not_count(other: dict[str, object]):
    numbers = AttributeNumbers()
    assert extents_key(entry(), numbers) == extents_key(entry(**other), numbers)
    same = structural_key(entry(), numbers) == structural_key(entry(**other), numbers)
    assert same is (set(other) == {"name"})


@pytest.mark.parametrize("other", [{"zero": "1.0"}, {"step": 2}, {"dim": "s0"}])
def test_code_counts(other: dict[str, object]):
    numbers = AttributeNumbers()
    assert extents_key(entry(), numbers) != extents_key(entry(**other), numbers)


def test_which_extents_are_operands_counts():
    numbers = AttributeNumbers()
    text = "func.func @f(%a: tensor<{n}x{m}xf32>) -> tensor<{n}x{m}xf32> {{ return %a : tensor<{n}x{m}xf32> }}"
    sizes = [(4, 8), (5, 9), (4, "?"), ("?", 8), (7, "?")]
    modules = [parse_module(text.format(n=n, m=m), new_context()) for n, m in sizes]
    keys = [extents_key(op, numbers) for module in modules for op in module.ops if isinstance(op, FuncOp)]
    assert keys[0] == keys[1] and keys[2] == keys[4] and len(set(keys)) == 3


ROWS = """func.func @f(%a: tensor<{sizes}xf32>, %e: tensor<4x4xf32>) -> tensor<4x4xf32>
    attributes {{fuseline.loops = {{members = [array<i64: {member}>]}}}} {{
  %r = linalg.generic {{indexing_maps = [affine_map<{read}>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%a : tensor<{sizes}xf32>) outs(%e : tensor<4x4xf32>) {{
  ^bb0(%x: f32, %o: f32):
    %v = {op} %x, %x : f32
    linalg.yield %v : f32
  }} -> tensor<4x4xf32>
  %s = linalg.generic {{indexing_maps = [affine_map<{then}>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%r : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) {{
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  }} -> tensor<4x4xf32>
  return %s : tensor<4x4xf32>
}}"""


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        ({"read": "(i, j) -> (2 * i, j)", "sizes": "7x4"}, True),
        ({"member": "0, 2"}, True),
        ({"op": "arith.mulf"}, False),
        ({"then": "(i, j) -> (j, i)"}, False),
    ],
)
def test_how_the_root_walks_its_operands_does_not_count_around_it(other: dict[str, str], alike: bool):
    numbers, identity = AttributeNumbers(), "(i, j) -> (i, j)"
    values = {"read": "(i, j) -> (i, 2 * j)", "sizes": "4x7", "then": identity, "op": "arith.addf", "member": "0, 1"}
    modules = [parse_module(ROWS.format(**{**values, **changed}), new_context()) for changed in ({}, other)]
    entries = [op for module in modules for op in module.ops if isinstance(op, FuncOp)]
    roots = [next(op for op in one.walk() if isinstance(op, linalg.ops.GenericOp)) for one in entries]
    keys = [key_around(root, one, numbers) for root, one in zip(roots, entries, strict=True)]
    assert (keys[0] == keys[1]) is alike
