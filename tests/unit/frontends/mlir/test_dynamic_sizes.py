"""Sizes, borders and shapes that a text leaves open and does not give, or gives twice, are refused by name and line."""

from __future__ import annotations

from pathlib import Path

import pytest

import fuseline
from fuseline.errors import FuselineError

OPEN = "-9223372036854775808"
PAD = """"tensor.pad"(%a) <{{static_low = array<i64: {low}>, static_high = array<i64: {high}>,
      operandSegmentSizes = array<i32: 1, 0, 0>}}> ({{
  ^bb0(%i: index):
    %z = arith.constant 0.0 : f32
    tensor.yield %z : f32
  }}) : (tensor<4xf32>) -> tensor<?xf32>"""
EXPAND = """"tensor.expand_shape"(%b) <{{reassociation = [[0, 1]],
      static_output_shape = array<i64: {open}, 2>}}> : (tensor<?xf32>) -> tensor<?x2xf32>"""

CASES = {
    "a size": ("tensor.empty() : tensor<4x?xf32>", "its sizes leave 1 open, and 0 operands"),
    "a size twice": ('"tensor.empty"(%n, %n) : (index, index) -> tensor<?xf32>', "its sizes leave 1 open, and 2"),
    "a border": (PAD.format(low=OPEN, high=1), "`static_low` leave 1 open"),
    "a border behind": (PAD.format(low=1, high=OPEN), "`static_high` leave 1 open"),
    "a shape": (EXPAND.format(open=OPEN), "`static_output_shape` leave 1 open"),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_left_open_and_not_given(name: str, tmp_path: Path):
    line, told = CASES[name]
    path = tmp_path / "p.mlir"
    path.write_text(
        "func.func @main(%a: tensor<4xf32>, %b: tensor<?xf32>, %n: index) -> tensor<4xf32> {\n"
        f"  %q = {line}\n  return %a : tensor<4xf32>\n}}\n"
    )
    with pytest.raises(FuselineError, match=r"E0302 \[p.mlir:2:3\]") as caught:
        fuseline.compile(path, target="null")
    assert told in str(caught.value)


def test_what_is_given_is_taken(tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text(
        "func.func @main(%a: tensor<4xf32>, %n: index) -> tensor<?xf32> {\n"
        "  %z = arith.constant 1.5 : f32\n  %q = tensor.empty(%n) : tensor<?xf32>\n"
        "  %r = linalg.fill ins(%z : f32) outs(%q : tensor<?xf32>) -> tensor<?xf32>\n"
        "  return %r : tensor<?xf32>\n}\n"
    )
    assert len(fuseline.compile(path, target="null").record.dispatches) <= 1
