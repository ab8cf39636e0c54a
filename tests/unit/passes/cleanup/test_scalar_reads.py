"""One element of an argument at a place that is fed is read where it lies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.draws import RNG

READ = """func.func @main(%x: tensor<4x?x8xf32>, %i: index, %j: index, %k: tensor<i64>) -> {type} {{
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %at = arith.addi %i, %c2 : index
  {code}
}}"""
FED = "%v = tensor.extract %x[%c3, %i, %at] : tensor<4x?x8xf32>\n  return %v : f32"
DATA = """%d = tensor.extract %k[] : tensor<i64>
  %p = arith.index_cast %d : i64 to index
  %v = tensor.extract %x[%c3, %i, %p] : tensor<4x?x8xf32>
  return %v : f32"""
COMPUTED = """%e = tensor.empty(%j) : tensor<4x?x8xf32>
  %y = linalg.elementwise <abs> ins(%x : tensor<4x?x8xf32>) outs(%x : tensor<4x?x8xf32>) -> tensor<4x?x8xf32>
  %v = tensor.extract %y[%c3, %i, %at] : tensor<4x?x8xf32>
  return %v : f32"""


def _program(tmp_path: Path, code: str, type_: str = "f32") -> fuseline.CompiledModel:
    path = tmp_path / "read.mlir"
    path.write_text(READ.format(type=type_, code=code))
    return fuseline.compile(path)


@pytest.mark.parametrize(("code", "dispatches"), [(FED, 0), (DATA, 1), (COMPUTED, 1)], ids=["fed", "data", "computed"])
def test_an_element_is_copied_where_its_place_is_fed(code: str, dispatches: int, tmp_path: Path):
    program = _program(tmp_path, code)
    x = RNG.standard_normal((4, 5, 8)).astype("f4")
    for i in range(5):
        feeds = {"x": x, "i": np.int64(i), "j": np.int64(5), "k": np.array(i + 2)}
        names = [spec.name for spec in program.inputs]
        (found,) = program.run({name: feeds[name] for name in names}).values()
        expected = x[3, i, i + 2]
        assert found == (abs(expected) if code is COMPUTED else expected)
    assert program.stats["dispatches"] == dispatches


@pytest.mark.parametrize("i", [-1, 5, 6])
def test_a_place_outside_is_refused(i: int, tmp_path: Path):
    program = _program(tmp_path, FED)
    names = [spec.name for spec in program.inputs]
    feeds = {"x": RNG.random((4, 5, 8), "f4"), "i": np.int64(i), "j": np.int64(5), "k": np.array(0)}
    with pytest.raises(FuselineError) as caught:
        program.run({name: feeds[name] for name in names})
    assert caught.value.code == "E0203"


def test_an_element_that_is_computed_with_is_read_where_it_lies(tmp_path: Path):
    code = """%v = tensor.extract %x[%c3, %i, %at] : tensor<4x?x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<4x?x8xf32>) outs(%x : tensor<4x?x8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %m = arith.mulf %in, %v : f32
    linalg.yield %m : f32
  } -> tensor<4x?x8xf32>
  return %r : tensor<4x?x8xf32>"""
    program = _program(tmp_path, code, "tensor<4x?x8xf32>")
    x = RNG.standard_normal((4, 6, 8)).astype("f4")
    feeds = {"x": x, "i": np.int64(4), "j": np.int64(1), "k": np.array(0)}
    names = [spec.name for spec in program.inputs]
    (found,) = program.run({name: feeds[name] for name in names}).values()
    np.testing.assert_array_equal(found, x * x[3, 4, 6])
    assert program.stats["dispatches"] == 1
