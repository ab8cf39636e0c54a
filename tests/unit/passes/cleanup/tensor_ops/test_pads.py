"""Pads whose value is computed, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import tensor

from fuseline.passes.cleanup.tensor_ops.pads import expand_pad
from tests.unit.passes.cleanup.expanding import expanded, names, numbers, run

RAMP = """
    %w = arith.index_cast %a : index to i64
    %v = arith.sitofp %w : i64 to f32"""


def _pad(source: str, low: str, high: str, result: str, body: str = "", value: str = "%p") -> str:
    arguments = ", ".join(f"%{letter}: index" for letter in "abc"[: source.count("x") + 1])
    return f"""func.func @main(%x: tensor<{source}xf32>, %p: f32, %n: index) -> tensor<{result}xf32> {{
  %r = tensor.pad %x low[{low}] high[{high}] {{
  ^bb0({arguments}):{body}
    tensor.yield {value} : f32
  }} : tensor<{source}xf32> to tensor<{result}xf32>
  return %r : tensor<{result}xf32>
}}"""


@settings(max_examples=15)
@given(st.lists(st.integers(0, 3), min_size=6, max_size=6))
def test_a_number_of_the_run_around_the_source(sizes: list[int]) -> None:
    rows, columns, *borders = sizes
    rows, columns = rows + 1, columns + 1
    low, high = borders[:2], borders[2:]
    result = f"{rows + low[0] + high[0]}x{columns + low[1] + high[1]}"
    text = _pad(f"{rows}x{columns}", f"{low[0]}, {low[1]}", f"{high[0]}, {high[1]}", result)
    x = numbers(rows, columns)
    expected = np.pad(x, [(low[0], high[0]), (low[1], high[1])], constant_values=7.5)
    module = expanded(text, tensor.PadOp, expand_pad)
    np.testing.assert_array_equal(run(module, x, np.float32(7.5), 0), expected)


@pytest.mark.parametrize("size", [1, 4])
def test_each_place_may_have_its_own_value(size: int) -> None:
    text = _pad("?", "2", "%n", "?", RAMP, "%v")
    x = numbers(size)
    expected = np.concatenate([[0, 1], x, size + 2 + np.arange(3)]).astype(np.float32)
    module = expanded(text, tensor.PadOp, expand_pad)
    assert "tensor.pad" not in names(module)
    np.testing.assert_array_equal(run(module, x, np.float32(0), 3), expected)


def test_around_nothing_there_is_the_value_only() -> None:
    text = _pad("0", "2", "1", "3")
    module = expanded(text, tensor.PadOp, expand_pad)
    np.testing.assert_array_equal(run(module, numbers(0), np.float32(1.5), 0), np.full(3, 1.5, np.float32))


def test_a_constant_stays() -> None:
    constant = "\n    %v = arith.constant 1.0 : f32"
    text = _pad("4", "1", "1", "6", constant, "%v")
    module = expanded(text, tensor.PadOp, expand_pad)
    assert "tensor.pad" in names(module) and "linalg.generic" not in names(module)


def test_around_a_scalar_there_is_nothing() -> None:
    text = _pad("", "", "", "").replace("tensor<xf32>", "tensor<f32>").replace("^bb0(%a: index):", "")
    module = expanded(text, tensor.PadOp, expand_pad)
    assert "tensor.pad" not in names(module)
    x = numbers()
    np.testing.assert_array_equal(run(module, x, np.float32(1.5), 0), x)
