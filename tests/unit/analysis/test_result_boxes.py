"""Where a dispatch writes: whole tensors, boxes of them, and what reshapes hide."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.dispatch.result_boxes import box_of, unreshaped
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module

BOX = """%e = tensor.empty() : tensor<4x8xf32>
  %r = tensor.insert_slice %x into %e[1, 2] [2, 5] [1, 1] : tensor<2x5xf32> into tensor<4x8xf32>"""


def _returned(body: str, type_: str = "tensor<4x8xf32>") -> tuple[FuncOp, SSAValue]:
    text = f"func.func @main(%x: tensor<2x5xf32>, %y: tensor<4x8xf32>) -> {type_} {{ {body}\n return %r : {type_} }}"
    (function,) = parse_module(text, new_context()).ops
    assert isinstance(function, FuncOp)
    end = function.body.block.last_op
    assert isinstance(end, ReturnOp)
    return function, end.operands[0]


def test_a_box():
    function, result = _returned(BOX)
    result_box = box_of(ShapeAnalysis(), result)
    assert (result_box.value, result_box.dims, result_box.offsets, result_box.sliced) == (
        function.args[0],
        (4, 8),
        (1, 2),
        True,
    )


def test_reshapes_around_a_box_change_nothing():
    function, result = _returned(
        BOX.replace("%r =", "%b =") + "\n%r = tensor.collapse_shape %b [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>",
        "tensor<32xf32>",
    )
    assert box_of(ShapeAnalysis(), result).value is function.args[0]


@pytest.mark.parametrize(
    "change",
    [
        ("into %e[", "into %y["),
        ("[1, 2] [2, 5] [1, 1]", "[0, 0] [2, 5] [2, 1]"),
        ("[1, 2] [2, 5] [1, 1] : tensor<2x5xf32>", "[1, 0] [1, 5] [1, 1] : tensor<5xf32>"),
    ],
    ids=["over a tensor", "every other row", "a row"],
)
def test_other_slices_are_written_whole(change: tuple[str, str]):
    body = BOX.replace(*change)
    if "tensor<5xf32>" in body:
        body = (
            f"%s = tensor.extract_slice %x[0, 0] [1, 5] [1, 1] : tensor<2x5xf32> to "
            f"tensor<5xf32>\n{body.replace('%x into', '%s into')}"
        )
    _, result = _returned(body)
    result_box = box_of(ShapeAnalysis(), result)
    assert (result_box.value, result_box.dims, result_box.sliced) == (result, (4, 8), False)


def test_the_value_before_reshapes():
    body = """%c = tensor.collapse_shape %y [[0, 1]] : tensor<4x8xf32> into tensor<32xf32>
      %d = tensor.cast %c : tensor<32xf32> to tensor<?xf32>
      %f = tensor.cast %d : tensor<?xf32> to tensor<32xf32>
      %r = tensor.expand_shape %f [[0, 1]] output_shape [4, 8] : tensor<32xf32> into tensor<4x8xf32>"""
    function, result = _returned(body)
    assert unreshaped(result) is function.args[1] is unreshaped(function.args[1])
    _, box = _returned(BOX)
    assert unreshaped(box) is box
