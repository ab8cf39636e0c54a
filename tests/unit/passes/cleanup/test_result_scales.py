"""A sum of integers times the scales of its operands: numbers, tensors of one element, of rows and of columns."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from fuseline.analysis.structured import is_generic
from fuseline.evaluation import evaluate_module
from fuseline.ir.build import Emitter
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.passes.cleanup.result_scales import Scale, scaled
from tests.draws import generator

PROGRAM = """func.func @main(%total: tensor<3x4xi32>, %given: tensor<4xf32>, %r: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %one = arith.constant dense<[2.0]> : tensor<1xf32>
  %rows = arith.constant dense<[0.5, 4.0, 8.0]> : tensor<3xf32>
  %columns = arith.constant dense<[1.0, 0.25, -2.0, 16.0]> : tensor<4xf32>
  return %r : tensor<3x4xf32>
}"""
GIVEN = np.array([4.0, 0.5, -1.0, 2.0], np.float32)
AXES = {"one": (None,), "rows": (0,), "columns": (1,), "given": (1,)}
FACTORS = {
    "number": np.float32(0.125),
    "one": np.float32(2.0),
    "rows": np.array([[0.5], [4.0], [8.0]], np.float32),
    "columns": np.array([1.0, 0.25, -2.0, 16.0], np.float32),
    "given": GIVEN,
}
JOINED = {("number", "one"), ("number", "rows"), ("number", "columns"), ("one", "rows"), ("one", "columns")}
"""Pairs of constants of which one varies along whatever the other does."""


@pytest.mark.parametrize("pair", list(combinations(FACTORS, 2)))
@pytest.mark.parametrize("turned", [False, True])
def test_any_two_scales(pair: tuple[str, str], turned: bool) -> None:
    """Powers of two: nothing rounds. Constants that can be one are multiplied by themselves first."""
    module = parse_module(PROGRAM, new_context())
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    end = function.body.block.last_op
    assert end is not None
    values: dict[str | None, SSAValue] = {
        value.name_hint: value
        for value in (*function.body.block.args, *(result for op in function.body.block.ops for result in op.results))
    }
    scales = [Scale(values[name], AXES[name]) if name in AXES else Scale(0.125) for name in pair]
    end.operands[0] = scaled(Emitter.before(end), values["total"], scales[::-1] if turned else scales)
    total = generator(f"{pair}").integers(-1000, 1000, (3, 4)).astype(np.int32)
    (found,) = evaluate_module(module, [total, GIVEN, np.zeros((3, 4), np.float32)])
    np.testing.assert_array_equal(found, total * FACTORS[pair[0]] * FACTORS[pair[1]])
    assert sum(is_generic(op) for op in function.body.block.ops) == 1 + (pair in JOINED)
