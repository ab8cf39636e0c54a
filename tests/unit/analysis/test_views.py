"""Views: which slices move nothing, where they begin, and that a dispatch reads them at their offset."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import tensor
from xdsl.dialects.builtin import ModuleOp

import fuseline
from fuseline.analysis.views import is_view, view_offset
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module

SLICE = """
func.func @main(%x: tensor<{source}xf32>) -> tensor<{result}xf32> {{
  %s = tensor.extract_slice %x[{offsets}] [{sizes}] [{strides}] : tensor<{source}xf32> to tensor<{result}xf32>
  %e = tensor.empty() : tensor<{result}xf32>
  %r = linalg.generic {{indexing_maps = [{map}, {map}], iterator_types = [{iterators}]}}
      ins(%s : tensor<{result}xf32>) outs(%e : tensor<{result}xf32>) {{
  ^bb0(%in: f32, %out: f32):
    %v = arith.negf %in : f32
    linalg.yield %v : f32
  }} -> tensor<{result}xf32>
  return {returned} : tensor<{result}xf32>
}}
"""


def _text(
    source: list[int], offsets: list[int], sizes: list[int], strides: list[int] | None = None, returned: str = "%r"
) -> str:
    loops = ", ".join(f"d{i}" for i in range(len(sizes)))
    return SLICE.format(
        source="x".join(map(str, source)),
        result="x".join(map(str, sizes)),
        offsets=", ".join(map(str, offsets)),
        sizes=", ".join(map(str, sizes)),
        strides=", ".join(map(str, strides or [1] * len(sizes))),
        map=f"affine_map<({loops}) -> ({loops})>",
        iterators=", ".join(['"parallel"'] * len(sizes)),
        returned=returned,
    )


def _slice_of(text: str) -> tensor.ExtractSliceOp:
    module: ModuleOp = parse_module(text, new_context())
    return next(op for op in module.walk() if isinstance(op, tensor.ExtractSliceOp))


@pytest.mark.parametrize(
    ("source", "offsets", "sizes", "offset"),
    [
        ([7, 5], [2, 0], [3, 5], 10),
        ([7, 5], [4, 1], [1, 3], 21),
        ([1, 7, 5], [0, 6, 0], [1, 1, 5], 30),
        ([4, 6], [0, 0], [4, 6], 0),
    ],
)
def test_elements_side_by_side_are_a_view(source: list[int], offsets: list[int], sizes: list[int], offset: int):
    op = _slice_of(_text(source, offsets, sizes))
    assert is_view(op) and view_offset(op) == offset


@pytest.mark.parametrize(
    ("source", "offsets", "sizes", "strides", "returned"),
    [
        ([7, 5], [0, 1], [7, 3], None, "%r"),  # columns
        ([8, 5], [0, 0], [4, 5], [2, 1], "%r"),  # every other row
        ([3, 7, 5], [0, 2, 0], [2, 3, 5], None, "%r"),  # rows of two matrices
        ([7, 5], [2, 0], [3, 5], None, "%s"),  # what is returned lies in the caller's buffer
    ],
)
def test_other_slices_are_no_views(
    source: list[int], offsets: list[int], sizes: list[int], strides: list[int] | None, returned: str
):
    assert not is_view(_slice_of(_text(source, offsets, sizes, strides, returned)))


def test_what_is_returned_in_another_shape_is_no_view():
    flat = "%f = tensor.collapse_shape %s [[0, 1]] : tensor<3x5xf32> into tensor<15xf32>\n  "
    seen = _text([7, 5], [2, 0], [3, 5]).replace("%e = ", f"{flat}%e = ")
    assert is_view(_slice_of(seen))
    returned = seen.replace("return %r : tensor<3x5xf32>", "return %f : tensor<15xf32>").replace(
        "-> tensor<3x5xf32> {\n  %s", "-> tensor<15xf32> {\n  %s"
    )
    assert not is_view(_slice_of(returned))


@pytest.mark.parametrize("shape", ["7x5", "35"])
def test_a_part_of_a_constant_is_cut_at_compile_time(shape: str):
    constant = f"%w = arith.constant dense<2.0> : tensor<{shape}xf32>\n  "
    constant += (
        "%back = tensor.expand_shape %w [[0, 1]] output_shape [7, 5] : tensor<35xf32> into tensor<7x5xf32>\n  "
        if shape == "35"
        else ""
    )
    read = "%back" if shape == "35" else "%w"
    assert not is_view(
        _slice_of(
            _text([7, 5], [2, 0], [3, 5])
            .replace("%s =", f"{constant}%s =")
            .replace("extract_slice %x", f"extract_slice {read}")
        )
    )


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
def test_a_dispatch_reads_a_view_at_its_offset(target: str, tmp_path: Any):
    path = tmp_path / "rows.mlir"
    path.write_text(_text([7, 5], [3, 0], [2, 5]))
    x = np.random.default_rng(5).standard_normal((7, 5), np.float32)
    program = fuseline.compile(path, target=target)
    (out,) = program.run({"x": x}).values()
    np.testing.assert_array_equal(out, -x[3:5])
    assert program.stats["dispatches"] == 1 and program.stats["copies"] == 0
