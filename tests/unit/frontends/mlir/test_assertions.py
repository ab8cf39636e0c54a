"""What torch-mlir prints around tensor programs: assertions about sizes and globals, taken out or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.draws import RNG

_PROGRAM = """#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1)>
module attributes {torch.debug_module_name = "Net"} {
  ml_program.global private mutable @global_seed(dense<0> : tensor<i64>) : tensor<i64>
  ml_program.global private @bias(dense<[1.0, -2.0, 0.5]> : tensor<3xf32>) : tensor<3xf32>
  func.func @forward(%arg0: tensor<?x3xf32>, %arg1: tensor<?x3xf32>) -> tensor<?x3xf32> {
    %c0 = arith.constant 0 : index
    %cst = arith.constant 0.000000e+00 : f32
    %true = arith.constant true
    %bias = ml_program.global_load_const @bias : tensor<3xf32>
    %dim = tensor.dim %arg0, %c0 : tensor<?x3xf32>
    %dim_0 = tensor.dim %arg1, %c0 : tensor<?x3xf32>
    %0 = arith.index_cast %dim : index to i64
    %1 = arith.index_cast %dim_0 : index to i64
    %2 = arith.cmpi eq, %0, %1 : i64
    cf.assert %2, "mismatched size for broadcast"
    cf.assert %true, "unused"
    %3 = tensor.empty(%dim) : tensor<?x3xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map, #map1, #map], iterator_types = ["parallel", "parallel"]}
      ins(%arg0, %arg1, %bias : tensor<?x3xf32>, tensor<?x3xf32>, tensor<3xf32>) outs(%3 : tensor<?x3xf32>) {
    ^bb0(%in: f32, %in_1: f32, %in_2: f32, %out: f32):
      %5 = arith.addf %in, %in_1 : f32
      %6 = arith.mulf %5, %in_2 : f32
      %7 = arith.cmpf ugt, %6, %cst : f32
      %8 = arith.select %7, %6, %cst : f32
      linalg.yield %8 : f32
    } -> tensor<?x3xf32>
    return %4 : tensor<?x3xf32>
  }
}
"""


def _compiled(text: str, folder: Path, target: str = "cpu") -> fuseline.CompiledModel:
    path = folder / "p.mlir"
    path.write_text(text)
    return fuseline.compile(path, target=target)


def test_a_program_of_torch_mlir(tmp_path: Path):
    model = _compiled(_PROGRAM, tmp_path)
    for rows in (1, 4):
        x, y = RNG.standard_normal((2, rows, 3)).astype(np.float32)
        want = np.maximum((x + y) * np.array([1, -2, 0.5], np.float32), 0)
        np.testing.assert_allclose(model(x, y), want, rtol=1e-6)
    assert any("mismatched size for broadcast" in note for note in model.record.notes)


def test_sizes_that_the_assertion_was_about_are_checked_when_it_runs(tmp_path: Path):
    with pytest.raises(FuselineError, match="E0203"):
        _compiled(_PROGRAM, tmp_path)(np.ones((2, 3), np.float32), np.ones((3, 3), np.float32))


@pytest.mark.parametrize(
    ("old", "new", "words", "code"),
    [
        ("%true = arith.constant true", "%true = arith.constant false", "never holds: unused", "E0302"),
        ("global private @bias", "global private mutable @bias", "@bias is no constant", "E0306"),
        ("@bias(dense", "@other(dense", "@bias is no constant", "E0306"),
        (
            'cf.assert %true, "unused"',
            (
                "%f = tensor.extract %arg0[%c0, %c0] : tensor<?x3xf32>\n%g = arith.cmpf ogt, %f, %cst : f32\n"
                'cf.assert %g, "odd"'
            ),
            "depends on data: odd",
            "E0306",
        ),
    ],
)
def test_what_is_refused(old: str, new: str, words: str, code: str, tmp_path: Path):
    assert old in _PROGRAM
    with pytest.raises(FuselineError, match=words) as caught:
        _compiled(_PROGRAM.replace(old, new), tmp_path, "null")
    assert caught.value.code == code
    assert caught.value.node is not None
