"""Scalar arithmetic on whole tensors, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.passes.cleanup.tensor_ops.elementwise import expand_elementwise, is_elementwise
from tests.unit.passes.cleanup.expanding import expanded, names, numbers, run


def _expand(op: Operation) -> None:
    if is_elementwise(op):
        expand_elementwise(op)


def _program(line: str, type_: str = "tensor<2x?xf32>", result: str | None = None) -> ModuleOp:
    text = f"""func.func @main(%x: {type_}, %y: {type_}, %c: i1) -> {result or type_} {{
  %r = {line.replace("T", type_)}
  return %r : {result or type_}
}}"""
    module = expanded(text, Operation, _expand)
    assert names(module) >= {"linalg.generic"}
    return module


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("arith.subf %x, %y : T", lambda x, y: x - y),
        ("math.absf %x : T", lambda x, y: np.abs(x)),
        ("arith.negf %y : T", lambda x, y: -y),
        ("math.fma %x, %y, %x : T", lambda x, y: x * y + x),
    ],
)
def test_each_element_is_computed_on_its_own(line: str, expected: object) -> None:
    x, y = numbers(2, 5), numbers(2, 5, seed=8)
    np.testing.assert_allclose(run(_program(line), x, y, False), expected(x, y), rtol=1e-6)  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("condition", [False, True])
def test_a_scalar_condition_chooses_for_all(condition: bool) -> None:
    x, y = numbers(2, 5), numbers(2, 5, seed=8)
    np.testing.assert_array_equal(run(_program("arith.select %c, %x, %y : T"), x, y, condition), x if condition else y)


def test_the_result_may_have_another_element_type() -> None:
    x, y = numbers(2, 5), numbers(2, 5, seed=8)
    got = run(_program("arith.cmpf olt, %x, %y : T", result="tensor<2x?xi1>"), x, y, False)
    np.testing.assert_array_equal(got, x < y)
    got = run(_program("arith.extf %x : T to tensor<2x?xf64>", result="tensor<2x?xf64>"), x, y, False)
    np.testing.assert_array_equal(got, x.astype(np.float64))


def test_integers_and_no_dimensions() -> None:
    module = _program("arith.muli %x, %y : T", "tensor<i32>")
    np.testing.assert_array_equal(run(module, np.int32(-6), np.int32(7), False), np.int32(-42))


def test_what_is_none() -> None:
    text = """func.func @main(%a: f32, %x: tensor<2xf32>) -> tensor<2xf32> {
  %s = arith.addf %a, %a : f32
  %k = arith.constant dense<1.0> : tensor<2xf32>
  %e = tensor.empty() : tensor<2xf32>
  return %k : tensor<2xf32>
}"""
    assert not any(is_elementwise(op) for op in parse_module(text, new_context()).walk())
