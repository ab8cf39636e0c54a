"""What only widens elements is read in place by elementwise ops, however often: a load does it on the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseline
from fuseline.analysis.made_ahead import MOST_BYTES
from tests.draws import RNG
from tests.kernels import assert_close

SPREAD = """func.func @main(%x: tensor<{rows}x{columns}xf32>, %y: tensor<{columns}x{narrow}>, %s: tensor<{narrow}>)
    -> tensor<{rows}x{columns}xf32> {{
  %e = tensor.empty() : tensor<{columns}xf32>
  %w = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}} ins(%y : tensor<{columns}x{narrow}>) outs(%e : tensor<{columns}xf32>) {{
  ^bb0(%p: {narrow}, %o: f32):
    {body}
    linalg.yield %v : f32
  }} -> tensor<{columns}xf32>
  %f = tensor.empty() : tensor<{rows}x{columns}xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
      affine_map<(i, j) -> ()>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%x, %w, %s : tensor<{rows}x{columns}xf32>, tensor<{columns}xf32>, tensor<{narrow}>)
      outs(%f : tensor<{rows}x{columns}xf32>) {{
  ^bb0(%p: f32, %q: f32, %t: {narrow}, %o: f32):
    %u = arith.extf %t : {narrow} to f32
    %a = arith.mulf %p, %u : f32
    %b = arith.addf %a, %q : f32
    linalg.yield %b : f32
  }} -> tensor<{rows}x{columns}xf32>
  return %r : tensor<{rows}x{columns}xf32>
}}"""
WIDENED, COMPUTED = (
    "%v = arith.extf %p : f16 to f32",
    "%v1 = arith.extf %p : f16 to f32\n    %v = math.exp %v1 : f32",
)


def _run(rows: int, columns: int, body: str, folder: Path, threads: int) -> tuple[int, np.ndarray, np.ndarray]:
    (folder / "spread.mlir").write_text(SPREAD.format(rows=rows, columns=columns, narrow="f16", body=body))
    program = fuseline.compile(folder / "spread.mlir", threads=threads)
    x = RNG.standard_normal((rows, columns)).astype(np.float32)
    y, s = RNG.standard_normal(columns).astype(np.float16), RNG.standard_normal(()).astype(np.float16)
    (found,) = program.run({"x": x, "y": y, "s": s}).values()
    wide = y.astype(np.float64) if body == WIDENED else np.exp(y.astype(np.float64))
    return len(program.record.dispatches), found, x * float(s) + wide


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (7, 33), (500, 640), (64, 5)])
def test_a_row_that_is_added_to_many(rows: int, columns: int, threads: int, tmp_path: Path):
    dispatches, found, wanted = _run(rows, columns, WIDENED, tmp_path, threads)
    assert_close(found, wanted)
    assert dispatches == 1


@pytest.mark.parametrize(("rows", "columns", "wanted"), [(5000, 640, 1), (300, MOST_BYTES // 4 + 1, 2)])
def test_arithmetic_is_not_repeated(rows: int, columns: int, wanted: int, tmp_path: Path):
    """A short row is made ahead by each thread, a long one stored."""
    dispatches, found, expected = _run(rows, columns, COMPUTED, tmp_path, 2)
    assert_close(found, expected)
    assert dispatches == wanted


TABLE = """func.func @main(%x: tensor<{rows}x{steps}xf32>, %y: tensor<{steps}x{columns}xf16>)
    -> tensor<{rows}x{columns}xf32> {{
  %low = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<{rows}x{columns}xf32>
  %f = linalg.fill ins(%low : f32) outs(%e : tensor<{rows}x{columns}xf32>) -> tensor<{rows}x{columns}xf32>
  %g = tensor.empty() : tensor<{steps}x{columns}xf32>
  %w = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%y : tensor<{steps}x{columns}xf16>)
      outs(%g : tensor<{steps}x{columns}xf32>) {{
  ^bb0(%p: f16, %o: f32):
    %v = arith.extf %p : f16 to f32
    linalg.yield %v : f32
  }} -> tensor<{steps}x{columns}xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
      affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%x, %w : tensor<{rows}x{steps}xf32>, tensor<{steps}x{columns}xf32>)
      outs(%f : tensor<{rows}x{columns}xf32>) {{
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    %m = arith.maximumf %o, %s : f32
    linalg.yield %m : f32
  }} -> tensor<{rows}x{columns}xf32>
  return %r : tensor<{rows}x{columns}xf32>
}}"""  # fmt: skip


def test_a_reduction_over_it_asks_for_each_element_too_often(tmp_path: Path):
    rows, steps, columns = 40, 700, 900
    (tmp_path / "table.mlir").write_text(TABLE.format(rows=rows, steps=steps, columns=columns))
    program = fuseline.compile(tmp_path / "table.mlir", threads=2)
    x, y = RNG.standard_normal((rows, steps)).astype(np.float32), RNG.standard_normal((steps, columns))
    (found,) = program.run({"x": x, "y": y.astype(np.float16)}).values()
    wide = y.astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(found, (x[:, :, None] + wide[None]).max(1))
    assert len(program.record.dispatches) == 2
