"""What ops say of dimensions fits the ranks of their tensors."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

from fuseline.errors import FuselineError
from fuseline.frontends.mlir.axes import check_axes
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module


def _check(line: str) -> None:
    text = f"""func.func @main(%x: tensor<4x6xf32>, %y: tensor<2x3xf32>, %v: f32, %i: index) {{
  %two = arith.constant 2 : index
  %one = arith.constant 1 : index
  {line}
  return
}}"""
    (main,) = parse_module(text, new_context()).ops
    assert isinstance(main, FuncOp)
    check_axes(main)


@pytest.mark.parametrize(
    "line",
    [
        "%r = tensor.extract_slice %x[0, 0] [2, 3] [1, 1] : tensor<4x6xf32> to tensor<2x3xf32>",
        "%r = tensor.extract_slice %x[0, %i] [1, 3] [1, 2] : tensor<4x6xf32> to tensor<3xf32>",
        "%r = tensor.insert_slice %y into %x[0, 0] [2, 3] [1, 1] : tensor<2x3xf32> into tensor<4x6xf32>",
        "%r = tensor.extract %x[%i, %i] : tensor<4x6xf32>",
        "%r = tensor.insert %v into %x[%i, %i] : tensor<4x6xf32>",
        "%r = tensor.dim %x, %one : tensor<4x6xf32>",
    ],
)
def test_what_fits(line: str) -> None:
    _check(line)


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("%r = tensor.extract_slice %x[0] [2] [1] : tensor<4x6xf32> to tensor<2xf32>", "E0302", "1 offsets for 2 dim"),
        ("%r = tensor.insert_slice %v2 into %x[0] [2] [1] : tensor<2xf32> into tensor<4x6xf32>", "E0302", "1 offsets"),
        ("%r = tensor.extract %x[%i] : tensor<4x6xf32>", "E0302", "1 indices for tensor<4x6xf32>"),
        ("%r = tensor.insert %v into %x[%i, %i, %i] : tensor<4x6xf32>", "E0302", "3 indices"),
        ("%r = tensor.dim %x, %two : tensor<4x6xf32>", "E0302", "dimension 2 of 2"),
        ("%r = tensor.dim %x, %i : tensor<4x6xf32>", "E0306", "which dimension it asks for is computed"),
    ],
)
def test_what_does_not_fit(line: str, code: str, message: str) -> None:
    given = "%v2 = tensor.empty() : tensor<2xf32>\n  " if "%v2" in line else ""
    with pytest.raises(FuselineError, match=message) as caught:
        _check(given + line)
    assert caught.value.code == code and caught.value.node
