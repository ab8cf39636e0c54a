"""Indices and sizes that MLIR programs are given or compute: looked at before anything runs, or moved inside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.draws import RNG, generator
from tests.unit.frontends.mlir.agreed import agreed

_HELD = generator(__name__)
A, B = _HELD.standard_normal((3, 5), dtype=np.float32), _HELD.standard_normal((3, 5), dtype=np.float32)


@pytest.mark.parametrize(("at", "count", "step"), [(1, 2, 1), (1, 2, 2), (0, 1, 3)])
def test_a_slice_put_in_is_looked_at_before_anything_runs(at: int, count: int, step: int, tmp_path: Path):
    text = """func.func @main(%a: tensor<?xf32>, %b: tensor<5xf32>, %i: index, %n: index, %s: index) -> tensor<5xf32> {
  %r = tensor.insert_slice %a into %b[%i] [%n] [%s] : tensor<?xf32> into tensor<5xf32>
  return %r : tensor<5xf32>
}"""
    feeds: dict[str, Any] = {"a": A[0, :count], "b": B[0], "i": at, "n": count, "s": step}
    expected = B[0].copy()
    expected[at : at + count * step : step] = A[0, :count]
    np.testing.assert_array_equal(agreed(text, feeds, tmp_path), expected)
    for wrong in ({"n": count + 1}, {"s": 0}, {"i": 5}):
        with pytest.raises(FuselineError, match="E0203"):
            agreed(text, feeds | wrong, tmp_path)


@pytest.mark.parametrize(("kind", "dtype"), [("index", np.int64), ("i32", np.int32), ("i8", np.int8)])
@pytest.mark.parametrize("size", ["7", "?"])
def test_places_that_data_tells_are_moved_inside(kind: str, dtype: Any, size: str, tmp_path: Path):
    cast = "" if kind == "index" else f"%p = arith.index_cast %at : {kind} to index\n"
    position = "%at" if kind == "index" else "%p"
    text = f"""func.func @main(%t: tensor<3x{size}xf32>, %i: tensor<?x{kind}>) -> (tensor<?xf32>, tensor<4xf32>) {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %i, %c0 : tensor<?x{kind}>
  %e = tensor.empty(%n) : tensor<?xf32>
  %x = math.tanh %t : tensor<3x{size}xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>],
      iterator_types = ["parallel"]}}
      ins(%i : tensor<?x{kind}>) outs(%e : tensor<?xf32>) {{
  ^bb0(%at: {kind}, %o: f32):
    {cast}%c1 = arith.constant 1 : index
    %v = tensor.extract %x[%c1, {position}] : tensor<3x{size}xf32>
    linalg.yield %v : f32
  }} -> tensor<?xf32>
  %g = tensor.generate {{
  ^bb0(%j: index):
    %at = tensor.extract %i[%j] : tensor<?x{kind}>
    {cast}%s = arith.addi %j, {position} : index
    %v = tensor.extract %x[%c0, %s] : tensor<3x{size}xf32>
    tensor.yield %v : f32
  }} : tensor<4xf32>
  return %r, %g : tensor<?xf32>, tensor<4xf32>
}}"""
    table, at = RNG.standard_normal((3, 7), dtype=np.float32), np.array([0, 6, 7, -1, 100, -100, 3], dtype)
    path = tmp_path / "p.mlir"
    path.write_text(text)
    for target in ("cpu", "interpreter"):
        first, second = fuseline.compile(path, target=target, threads=1).run({"t": table, "i": at}).values()
        np.testing.assert_allclose(first, np.tanh(table)[1, np.clip(at.astype(int), 0, 6)], rtol=1e-5)
        np.testing.assert_allclose(
            second, np.tanh(table)[0, np.clip(np.arange(4) + at[:4].astype(int), 0, 6)], rtol=1e-5
        )
        with pytest.raises(FuselineError, match="E0203"):
            fuseline.compile(path, target=target, threads=1).run({"t": table, "i": at[:2]})


def test_elements_at_places_that_are_given_or_computed(tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text("""func.func @main(%t: tensor<5xf32>, %i: i32, %k: index, %q: tensor<3xi32>) -> (f32, f32, f32) {
  %p = arith.index_cast %i : i32 to index
  %c1 = arith.constant 1 : index
  %a = tensor.extract %t[%p] : tensor<5xf32>
  %b = tensor.extract %t[%k] : tensor<5xf32>
  %z = tensor.extract %q[%c1] : tensor<3xi32>
  %at = arith.index_cast %z : i32 to index
  %c = tensor.extract %t[%at] : tensor<5xf32>
  return %a, %b, %c : f32, f32, f32
}""")
    for target in ("cpu", "interpreter"):
        program = fuseline.compile(path, target=target, threads=1)
        for i, k, z in ((1, 2, 3), (9, 0, -9), (-9, 4, 9)):
            got = program.run({"t": A[0], "i": i, "k": k, "q": np.array([0, z, 0], np.int32)})
            assert [float(value) for value in got.values()] == [
                float(A[0, min(max(position, 0), 4)]) for position in (i, k, z)
            ]
        with pytest.raises(FuselineError, match="E0203.*k = 5"):
            program.run({"t": A[0], "i": 0, "k": 5, "q": np.zeros(3, np.int32)})
