"""Views: which slices move nothing, where they begin, and that a dispatch reads them at their offset."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import tensor
from xdsl.dialects.builtin import ModuleOp

import fuseline
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.views import is_view, view_offset
from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from tests.draws import RNG

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
    assert is_view(op) and view_offset(op, ShapeAnalysis({})) == offset


@pytest.mark.parametrize(
    ("source", "offsets", "sizes", "strides", "returned"),
    [
        ([7, 5], [0, 1], [7, 3], None, "%r"),  # columns
        ([8, 5], [0, 0], [4, 5], [2, 1], "%r"),  # every other row
        ([3, 7, 5], [0, 2, 0], [2, 3, 5], None, "%r"),  # rows of two matrices
    ],
)
def test_other_slices_are_no_views(
    source: list[int], offsets: list[int], sizes: list[int], strides: list[int] | None, returned: str
):
    assert not is_view(_slice_of(_text(source, offsets, sizes, strides, returned)))


@pytest.mark.parametrize("source", ["fed", "computed", "of a body"])
@pytest.mark.parametrize("flat", [False, True], ids=["as it is", "in another shape"])
def test_what_is_returned_is_a_view_of_what_is_fed_only(source: str, flat: bool):
    text = _text([7, 5], [2, 0], [3, 5], returned="%s")
    if flat:
        text = text.replace(
            "%e = ", "%f = tensor.collapse_shape %s [[0, 1]] : tensor<3x5xf32> into tensor<15xf32>\n  %e = "
        )
        text = text.replace("return %s : tensor<3x5xf32>", "return %f : tensor<15xf32>")
        text = text.replace("-> tensor<3x5xf32> {\n  %s", "-> tensor<15xf32> {\n  %s")
    if source == "computed":  # whoever computes it may write the part into the caller's buffer, and nothing else
        made = "linalg.elementwise <abs> ins(%x : tensor<7x5xf32>) outs(%x : tensor<7x5xf32>) -> tensor<7x5xf32>"
        text = text.replace("%s = ", f"%y = {made}\n  %s = ").replace("extract_slice %x", "extract_slice %y")
    if source == "of a body":
        text = text.replace("func.func @main", "func.func private @main")
    assert is_view(_slice_of(text)) == (source == "fed")


RUNTIME = """
func.func @main(%x: tensor<?x3x5xf32>, %o: index, %n: index, %i: tensor<i64>) -> tensor<?x?x?xf32> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %d = tensor.dim %x, %c0 : tensor<?x3x5xf32>
  %rest = arith.subi %d, %o : index
  %data = tensor.extract %i[] : tensor<i64>
  %at = arith.index_cast %data : i64 to index
  %s = tensor.extract_slice %x[{offsets}] [{sizes}] [{strides}] : tensor<?x3x5xf32> to tensor<?x?x?xf32>
  return %s : tensor<?x?x?xf32>
}}
"""


@pytest.mark.parametrize(
    ("offsets", "sizes", "strides", "view"),
    [
        ("%o, 0, 0", "%n, 3, 5", "1, 1, 1", True),
        ("%o, 0, 0", "%rest, 3, 5", "1, 1, 1", True),
        ("%o, 1, 0", "1, %n, 5", "1, 1, 1", True),
        ("%o, 1, %n", "1, 1, 2", "1, 1, 1", True),
        ("0, 0, 0", "%n, %n, 5", "1, 1, 1", False),  # parts of each row
        ("0, 0, %o", "%n, 3, 2", "1, 1, 1", False),
        ("0, 0, 0", "%n, 3, 5", "%o, 1, 1", False),
        ("%at, 0, 0", "%n, 3, 5", "1, 1, 1", False),  # known when it has been read
    ],
)
def test_parts_that_are_told_when_it_runs(offsets: str, sizes: str, strides: str, view: bool):
    assert is_view(_slice_of(RUNTIME.format(offsets=offsets, sizes=sizes, strides=strides))) == view


@pytest.mark.parametrize(("o", "n"), [(2, 4), (0, 9), (9, 0), (8, 1), (0, 1)])
@pytest.mark.parametrize("dtype", ["f32", "f64", "i8"])
def test_a_returned_part_of_an_argument_is_copied(dtype: str, o: int, n: int, tmp_path: Any):
    path = tmp_path / "part.mlir"
    path.write_text(
        """func.func @main(%x: tensor<?x3xf32>, %o: index, %n: index) -> (tensor<?x3xf32>, tensor<?xf32>) {
  %s = tensor.extract_slice %x[%o, 0] [%n, 3] [1, 1] : tensor<?x3xf32> to tensor<?x3xf32>
  %f = tensor.collapse_shape %s [[0, 1]] : tensor<?x3xf32> into tensor<?xf32>
  return %s, %f : tensor<?x3xf32>, tensor<?xf32>
}""".replace("f32", dtype)
    )
    x = RNG.integers(-99, 99, (9, 3)).astype({"f32": "f4", "f64": "f8", "i8": "i1"}[dtype])
    program = fuseline.compile(path)
    rows, flat = program.run({"x": x, "o": np.int64(o), "n": np.int64(n)}).values()
    np.testing.assert_array_equal(rows, x[o : o + n])
    np.testing.assert_array_equal(flat, x[o : o + n].reshape(-1))
    assert program.stats["dispatches"] == 0 and program.stats["copies"] == 2


@pytest.mark.parametrize(("o", "n"), [(5, 5), (10, 0), (-1, 2), (2, -1)])
def test_a_part_that_is_not_there_is_refused(o: int, n: int, tmp_path: Any):
    path = tmp_path / "part.mlir"
    path.write_text(
        """func.func @main(%x: tensor<?x3xf32>, %o: index, %n: index) -> tensor<?x3xf32> {
  %s = tensor.extract_slice %x[%o, 0] [%n, 3] [1, 1] : tensor<?x3xf32> to tensor<?x3xf32>
  return %s : tensor<?x3xf32>
}"""
    )
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(path).run({"x": RNG.random((9, 3), "f4"), "o": np.int64(o), "n": np.int64(n)})
    assert caught.value.code == "E0203"


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
