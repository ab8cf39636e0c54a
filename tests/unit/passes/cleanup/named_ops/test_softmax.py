"""`linalg.softmax` as four steps, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.ir.linalg_named import SoftmaxOp
from fuseline.ir.provenance import provenance
from fuseline.passes.cleanup.named_ops.softmax import expand_softmax
from tests.unit.passes.cleanup.expanding import expanded, names, numbers, run


def _text(type_: str, axis: int) -> str:
    return f"""func.func @main(%x: {type_}, %o: {type_}) -> {type_} {{
  %r = linalg.softmax dimension({axis}) ins(%x : {type_}) outs(%o : {type_}) -> {type_} loc("soft")
  return %r : {type_}
}}"""


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    powers = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("type_", ["tensor<2x5x3xf32>", "tensor<?x5x?xf32>"])
def test_any_axis_of_known_and_unknown_sizes(type_: str, axis: int) -> None:
    x = numbers(2, 5, 3)
    module = expanded(_text(type_, axis), SoftmaxOp, expand_softmax)
    assert "linalg.softmax" not in names(module)
    np.testing.assert_allclose(run(module, x, np.zeros_like(x)), _softmax(x, axis), rtol=1e-5)


def test_large_numbers_do_not_overflow() -> None:
    x = np.asarray([[1000.0, 1000.0, -1000.0], [-1e30, 1e30, 0.0]], np.float32)
    module = expanded(_text("tensor<2x3xf32>", 1), SoftmaxOp, expand_softmax)
    np.testing.assert_array_equal(run(module, x, np.zeros_like(x)), np.asarray([[0.5, 0.5, 0], [0, 1, 0]], np.float32))


def test_one_dimension_and_one_element() -> None:
    module = expanded(_text("tensor<1xf32>", 0), SoftmaxOp, expand_softmax)
    np.testing.assert_array_equal(run(module, numbers(1), numbers(1)), np.asarray([1], np.float32))


def test_doubles_keep_their_precision() -> None:
    x = numbers(7).astype(np.float64)
    module = expanded(_text("tensor<7xf64>", 0), SoftmaxOp, expand_softmax)
    np.testing.assert_allclose(run(module, x, x), _softmax(x, 0), rtol=1e-14)


def test_all_steps_come_from_the_same_node() -> None:
    module = expanded(_text("tensor<2x3xf32>", 1), SoftmaxOp, expand_softmax)
    assert {provenance(op) for op in module.walk() if op.name == "linalg.generic"} == {("soft",)}
