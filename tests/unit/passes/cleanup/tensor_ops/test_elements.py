"""Tensors made of numbers one by one, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import tensor

from fuseline.ir.tensor_ops import GenerateOp
from fuseline.passes.cleanup.tensor_ops.elements import (
    expand_from_elements,
    expand_generate,
    expand_insert,
    expand_splat,
)
from tests.unit.passes.cleanup.expanding import expanded, names, numbers, run


@pytest.mark.parametrize(("type_", "sizes"), [("tensor<2x3xf32>", ""), ("tensor<?x3xf32>", "[%n]")])
def test_a_splat_is_one_number_everywhere(type_: str, sizes: str) -> None:
    text = f"""func.func @main(%v: f32, %n: index) -> {type_} {{
  %r = tensor.splat %v{sizes} : {type_}
  return %r : {type_}
}}"""
    module = expanded(text, tensor.SplatOp, expand_splat)
    np.testing.assert_array_equal(run(module, np.float32(2.5), 2), np.full((2, 3), 2.5, np.float32))


def _elements(values: str, type_: str, constants: str = "") -> str:
    return f"""func.func @main(%a: f32, %b: f32, %n: index) -> {type_} {{
  {constants}
  %r = tensor.from_elements {values} : {type_}
  return %r : {type_}
}}"""


@pytest.mark.parametrize(
    ("values", "type_", "shape"),
    [("%a, %b", "tensor<2xf32>", (2,)), ("%a", "tensor<f32>", ()), ("%b, %a, %a, %b", "tensor<2x1x2xf32>", (2, 1, 2))],
)
def test_numbers_of_the_run_side_by_side(values: str, type_: str, shape: tuple[int, ...]) -> None:
    given = {"%a": 1.5, "%b": -2.0}
    module = expanded(_elements(values, type_), tensor.FromElementsOp, expand_from_elements)
    assert "tensor.from_elements" not in names(module)
    expected = np.asarray([given[name] for name in values.split(", ")], np.float32).reshape(shape)
    np.testing.assert_array_equal(run(module, np.float32(1.5), np.float32(-2), 0), expected)


def test_known_numbers_are_a_constant() -> None:
    constants = "%c = arith.constant 3.0 : f32\n  %d = arith.constant -1.0 : f32"
    module = expanded(_elements("%c, %d", "tensor<2x1xf32>", constants), tensor.FromElementsOp, expand_from_elements)
    assert names(module).isdisjoint({"tensor.concat", "linalg.fill", "tensor.from_elements"})
    np.testing.assert_array_equal(run(module, np.float32(0), np.float32(0), 0), np.asarray([[3], [-1]], np.float32))


def test_sizes_in_a_row_stay_and_under_another_shape_are_reshaped() -> None:
    row = expanded(_elements("%n, %n", "tensor<2xindex>"), tensor.FromElementsOp, expand_from_elements)
    assert "tensor.from_elements" in names(row)
    grid = expanded(_elements("%n, %n", "tensor<2x1xindex>"), tensor.FromElementsOp, expand_from_elements)
    np.testing.assert_array_equal(run(grid, np.float32(0), np.float32(0), 5), [[5], [5]])


INSERT = """func.func @main(%x: TYPE, %v: f32, %i: index, %j: index) -> TYPE {
  %r = tensor.insert %v into %x[PLACE] : TYPE
  return %r : TYPE
}"""


@pytest.mark.parametrize("type_", ["tensor<3x4xf32>", "tensor<?x?xf32>"])
@pytest.mark.parametrize("position", [(0, 0), (2, 1)])
def test_one_element_is_replaced(type_: str, position: tuple[int, int]) -> None:
    module = expanded(INSERT.replace("TYPE", type_).replace("PLACE", "%i, %j"), tensor.InsertOp, expand_insert)
    x = numbers(3, 4)
    expected = x.copy()
    expected[position] = 9
    np.testing.assert_array_equal(run(module, x, np.float32(9), *position), expected)


def test_the_only_element_is_replaced() -> None:
    module = expanded(INSERT.replace("TYPE", "tensor<f32>").replace("PLACE", ""), tensor.InsertOp, expand_insert)
    np.testing.assert_array_equal(run(module, np.float32(1), np.float32(9), 0, 0), np.float32(9))


@pytest.mark.parametrize("type_", ["tensor<3x?xi64>", "tensor<?x?xi64>"])
def test_each_element_is_what_the_body_makes_of_its_place(type_: str) -> None:
    sizes = ", ".join(["%n", "%m"][2 - type_.count("?") :])
    text = f"""func.func @main(%n: index, %m: index) -> {type_} {{
  %r = tensor.generate {sizes} {{
  ^bb0(%i: index, %j: index):
    %ten = arith.constant 10 : index
    %t = arith.muli %i, %ten : index
    %s = arith.addi %t, %j : index
    %v = arith.index_cast %s : index to i64
    tensor.yield %v : i64
  }} : {type_}
  return %r : {type_}
}}"""
    module = expanded(text, GenerateOp, expand_generate)
    np.testing.assert_array_equal(run(module, 3, 4), 10 * np.arange(3)[:, None] + np.arange(4))


def test_a_body_that_yields_its_place_or_a_number_from_outside() -> None:
    text = """func.func @main(%n: index, %m: index) -> tensor<?xindex> {
  %r = tensor.generate %n {
  ^bb0(%i: index):
    tensor.yield VALUE : index
  } : tensor<?xindex>
  return %r : tensor<?xindex>
}"""
    for value, expected in (("%i", [0, 1, 2]), ("%m", [7, 7, 7])):
        module = expanded(text.replace("VALUE", value), GenerateOp, expand_generate)
        np.testing.assert_array_equal(run(module, 3, 7), expected)
