"""Rows of a product that a reshape makes an image of, which a window reads, before another product: one dispatch over
bands of rows, whatever the sizes; what stays apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.compiled_model import CompiledModel
from tests.draws import RNG

OFF = {"fuse-row-bands": {"enabled": False}}

TEXT = """
#image = affine_map<(h, w, c, k, l) -> (h + k, w + l, c)>
#filter = affine_map<(h, w, c, k, l) -> (k, l, c)>
#window = affine_map<(h, w, c, k, l) -> (h, w, c)>
#id = affine_map<(h, w, c) -> (h, w, c)>
func.func @f(%x: tensor<{pixels}x{deep}x{t}>, %p: tensor<{deep}x{c}x{t}>, %q: tensor<3x3x{c}x{t}>, %r: tensor<{c}x{k}x{t}>) -> tensor<{out}x{k}x{t}> {{
  %zero = arith.constant 0.0 : {t}
  %six = arith.constant 6.0 : {t}
  %e0 = tensor.empty() : tensor<{pixels}x{c}x{t}>
  %i0 = linalg.fill ins(%zero : {t}) outs(%e0 : tensor<{pixels}x{c}x{t}>) -> tensor<{pixels}x{c}x{t}>
  %m = linalg.matmul ins(%x, %p : tensor<{pixels}x{deep}x{t}>, tensor<{deep}x{c}x{t}>) outs(%i0 : tensor<{pixels}x{c}x{t}>) -> tensor<{pixels}x{c}x{t}>
  %image = tensor.expand_shape %m [[0, 1], [2]] output_shape [{rows}, {columns}, {c}] : tensor<{pixels}x{c}x{t}> into tensor<{rows}x{columns}x{c}x{t}>
  %e1 = tensor.empty() : tensor<{h}x{w}x{c}x{t}>
  %i1 = linalg.fill ins(%zero : {t}) outs(%e1 : tensor<{h}x{w}x{c}x{t}>) -> tensor<{h}x{w}x{c}x{t}>
  %d = linalg.generic {{indexing_maps = [#image, #filter, #window], iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}} ins(%image, %q : tensor<{rows}x{columns}x{c}x{t}>, tensor<3x3x{c}x{t}>) outs(%i1 : tensor<{h}x{w}x{c}x{t}>) {{
  ^bb0(%a: {t}, %b: {t}, %o: {t}):
    %v = arith.mulf %a, %b : {t}
    %s = arith.addf %o, %v : {t}
    linalg.yield %s : {t}
  }} -> tensor<{h}x{w}x{c}x{t}>
  %n = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]}} ins(%d : tensor<{h}x{w}x{c}x{t}>) outs(%e1 : tensor<{h}x{w}x{c}x{t}>) {{
  ^bb0(%a: {t}, %o: {t}):
    %v = arith.minimumf %a, %six : {t}
    %s = math.round %v : {t}
    linalg.yield %s : {t}
  }} -> tensor<{h}x{w}x{c}x{t}>
  %flat = tensor.collapse_shape %n [[0, 1], [2]] : tensor<{h}x{w}x{c}x{t}> into tensor<{out}x{c}x{t}>
  %e2 = tensor.empty() : tensor<{out}x{k}x{t}>
  %i2 = linalg.fill ins(%zero : {t}) outs(%e2 : tensor<{out}x{k}x{t}>) -> tensor<{out}x{k}x{t}>
  %y = linalg.matmul ins(%flat, %r : tensor<{out}x{c}x{t}>, tensor<{c}x{k}x{t}>) outs(%i2 : tensor<{out}x{k}x{t}>) -> tensor<{out}x{k}x{t}>
  return %y : tensor<{out}x{k}x{t}>
}}
"""  # noqa: E501


def _model(path: Path, rows: int, columns: int, channels: tuple[int, int, int], element: str = "f32") -> Path:
    deep, c, k = channels
    h, w = rows - 2, columns - 2
    sizes = {"rows": rows, "columns": columns, "pixels": rows * columns, "h": h, "w": w, "out": h * w}
    file = path / "chain.mlir"
    file.write_text(TEXT.format(**sizes, deep=deep, c=c, k=k, t=element))
    return file


def _runs(model: CompiledModel) -> NDArray[Any]:
    rng = np.random.default_rng(5)
    shapes: dict[str, Any] = {one.name: one.shape for one in model.inputs}
    feeds = {one.name: rng.normal(0, 0.3, shapes[one.name]).astype(one.dtype) for one in model.inputs}
    (found,) = model.run(feeds).values()
    return np.asarray(found)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize(
    ("rows", "columns", "channels"),
    [(300, 301, (9, 17, 5)), (259, 257, (16, 32, 24)), (228, 227, (int(RNG.integers(5, 30)), 40, 11))],
)
def test_sizes(rows: int, columns: int, channels: tuple[int, int, int], element: str, threads: int, tmp_path: Path):
    """Results are those of what is apart, to the bit, and no argument of halves is converted before."""
    model = _model(tmp_path, rows, columns, channels, element)
    banded = fuseline.compile(model, threads=threads)
    assert banded.stats["dispatches"] == 1
    assert any("bands of" in note for note in banded.record.notes)
    apart = fuseline.compile(model, threads=threads, pass_options=OFF)
    np.testing.assert_array_equal(_runs(banded), _runs(apart))


def test_a_product_that_costs_more_than_bands_save(tmp_path: Path):
    """It keeps its long rows: the reshape keeps it apart, and the edge says so."""
    found = fuseline.compile(_model(tmp_path, 130, 131, (1500, 32, 24)), target="null", threads=1)
    assert found.stats["dispatches"] == 2
    assert {one.code for one in found.record.decisions if one.verdict == "missed"} == {"reshape-between"}
