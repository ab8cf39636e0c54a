"""A transpose moved above what makes its operand: the values stay, and it stands before the op."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import linalg, tensor
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from fuseline.evaluation import evaluate_function
from fuseline.ir.context import new_context
from fuseline.ir.fast.direct import replace_uses
from fuseline.ir.text import parse_module
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.transposes_up import bubble_above

PAD = """%c = arith.constant 1.5 : f32
      %p = tensor.pad %x low[3, 0, 1] high[0, 2, 4] {
      ^bb0(%i: index, %j: index, %k: index):
        tensor.yield %c : f32
      } : tensor<2x3x4xf32> to tensor<5x5x9xf32>"""
MADE = {
    "pad": (PAD, "5x5x9", (2, 0, 1)),
    "slice": (
        "%p = tensor.extract_slice %x[1, 0, 2] [1, 3, 2] [1, 1, 1] : tensor<2x3x4xf32> to tensor<1x3x2xf32>",
        "1x3x2",
        (2, 0, 1),
    ),
    "collapse": ("%p = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x3x4xf32> into tensor<6x4xf32>", "6x4", (1, 0)),
    "collapse behind": (
        "%p = tensor.collapse_shape %x [[0], [1, 2]] : tensor<2x3x4xf32> into tensor<2x12xf32>",
        "2x12",
        (1, 0),
    ),
    "expand": (
        (
            "%p = tensor.expand_shape %x [[0], [1], [2, 3]] output_shape [2, 3, 2, 2] : tensor<2x3x4xf32> into "
            "tensor<2x3x2x2xf32>"
        ),
        "2x3x2x2",
        (2, 3, 0, 1),
    ),
    "expand that is torn": (
        (
            "%p = tensor.expand_shape %x [[0], [1], [2, 3]] output_shape [2, 3, 2, 2] : tensor<2x3x4xf32> into "
            "tensor<2x3x2x2xf32>"
        ),
        "2x3x2x2",
        (2, 0, 3, 1),
    ),
    "narrowing slice": (
        "%p = tensor.extract_slice %x[1, 0, 2] [1, 3, 2] [1, 1, 1] : tensor<2x3x4xf32> to tensor<3x2xf32>",
        "3x2",
        (1, 0),
    ),
    "concat": (
        "%p = tensor.concat dim(1) %x, %x : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x6x4xf32>",
        "2x6x4",
        (2, 0, 1),
    ),
}
STAYS = {"expand that is torn", "narrowing slice"}


def _program(name: str) -> tuple[FuncOp, linalg.ops.TransposeOp]:
    made, shape, order = MADE[name]
    sizes = shape.split("x")
    turned = "x".join(sizes[axis] for axis in order)
    text = f"""func.func @main(%x: tensor<2x3x4xf32>) -> tensor<{turned}xf32> {{
      {made}
      %e = tensor.empty() : tensor<{turned}xf32>
      %r = linalg.transpose ins(%p : tensor<{shape}xf32>) outs(%e : tensor<{turned}xf32>) permutation = {list(order)}
      return %r : tensor<{turned}xf32>
    }}"""
    (function,) = [op for op in parse_module(text, new_context()).ops if isinstance(op, FuncOp)]
    (top,) = [op for op in function.walk() if isinstance(op, linalg.ops.TransposeOp)]
    return function, top


@pytest.mark.parametrize("name", MADE)
def test_a_transpose_climbs_above(name: str) -> None:
    x = np.random.default_rng(3).standard_normal((2, 3, 4), np.float32)
    function, top = _program(name)
    (expected,) = evaluate_function(function, [x], {})
    producer = top.operands[0].owner
    assert isinstance(producer, Operation)
    value = bubble_above(Scope(function, new_context()), top, producer)
    assert (value is None) == (name in STAYS)
    if value is not None:
        replace_uses(top.results[0], value)
        function.verify()
        assert isinstance(value.owner, Operation) and not isinstance(value.owner, linalg.ops.TransposeOp)
        (got,) = evaluate_function(function, [x], {})
        np.testing.assert_array_equal(got, expected)


def test_no_transpose_climbs_above_an_empty_tensor() -> None:
    function, top = _program("collapse")
    (empty,) = [op for op in function.walk() if isinstance(op, tensor.EmptyOp)]
    assert bubble_above(Scope(function, new_context()), top, empty) is None
