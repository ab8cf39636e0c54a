"""What the keys of ops number: attributes by value, properties by name, whatever their order."""

from __future__ import annotations

from collections.abc import Hashable

import pytest
from xdsl.dialects.builtin import StringAttr, f32, i32
from xdsl.ir import Attribute

from fuseline.analysis.structural_key import AttributeNumbers, structural_key
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module


def test_properties_are_told_apart_by_name_and_value_not_by_order() -> None:
    numbers = AttributeNumbers()
    parts: dict[str, Attribute] = {"b": f32, "a": i32}
    assert numbers.of(parts) == numbers.of({"a": i32, "b": f32})
    assert numbers.of(parts) != numbers.of({"a": f32, "b": i32}) != numbers.of({"a": f32, "c": i32})


def test_ignored_properties_do_not_enter() -> None:
    numbers, ignored = AttributeNumbers(), frozenset({"sym_name"})
    one, other = ({"sym_name": StringAttr(name), "kind": f32} for name in ("first", "second"))
    assert numbers.of(one, ignored) == numbers.of(other, ignored) and numbers.of(one) != numbers.of(other)


def test_equal_attributes_have_one_number() -> None:
    numbers = AttributeNumbers()
    assert numbers.number(StringAttr("x")) == numbers.number(StringAttr("x")) != numbers.number(StringAttr("y"))


PROGRAM = """func.func @{name}(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {{
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {{indexing_maps = [{maps}, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}}
      ins({ins} : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {{
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.{first} %x, %y : f32
    %q = arith.{second} {args} : f32
    linalg.yield {result} : f32
  }} -> tensor<4xf32>
  return %r : tensor<4xf32>
}}"""
PARTS = {
    "name": "f", "maps": "affine_map<(i) -> (i)>", "ins": "%a, %b", "first": "mulf", "second": "addf", "args": "%x, %p",
    "result": "%q",
}  # fmt: skip


def _key(numbers: AttributeNumbers, **changed: str) -> Hashable:
    (function,) = parse_module(PROGRAM.format(**{**PARTS, **changed}), new_context()).body.block.ops
    return structural_key(function, numbers)


@pytest.mark.parametrize(
    "changed",
    [
        {"ins": "%b, %a"},
        {"ins": "%a, %a"},
        {"maps": "affine_map<(i) -> (3 - i)>"},
        {"first": "divf"},
        {"second": "subf"},
        {"args": "%p, %x"},
        {"args": "%y, %p"},
        {"args": "%p, %p"},
        {"result": "%p"},
        {"result": "%o"},
    ],
    ids=str,
)
def test_another_computation_has_another_key(changed: dict[str, str]) -> None:
    numbers = AttributeNumbers()
    assert _key(numbers) == _key(numbers) == _key(numbers, name="g")
    assert _key(numbers, **changed) == _key(numbers, **changed) != _key(numbers)


@pytest.mark.parametrize(
    "line", ["%r = tensor.empty() : tensor<{n}xf32>", "func.func @f(%x: tensor<{n}xf32>) {{\n  return\n}}"]
)
def test_types_are_part_of_a_key(line: str) -> None:
    numbers, keys = AttributeNumbers(), set[Hashable]()
    for n in (4, 5):
        (op,) = parse_module(line.format(n=n), new_context()).body.block.ops
        keys.add(structural_key(op, numbers))
    assert len(keys) == 2
