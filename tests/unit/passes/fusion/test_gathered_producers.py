"""A table that is computed and then gathered from is computed where it is gathered, unless that is more often."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

GATHER = """func.func @main(%t: tensor<{rows}x{columns}x{element}>, %i: tensor<{count}xi64>)
    -> tensor<{count}x{columns}xf32> {{
  %e = tensor.empty() : tensor<{rows}x{columns}xf32>
  %w = linalg.generic {{indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>],
      iterator_types = ["parallel", "parallel"]}} ins(%t : tensor<{rows}x{columns}x{element}>)
      outs(%e : tensor<{rows}x{columns}xf32>) {{
  ^bb0(%x: {element}, %o: f32):
    {body}
    linalg.yield %v : f32
  }} -> tensor<{rows}x{columns}xf32>
  %f = tensor.empty() : tensor<{count}x{columns}xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a, b)>],
      iterator_types = ["parallel", "parallel"]}} ins(%i : tensor<{count}xi64>)
      outs(%f : tensor<{count}x{columns}xf32>) {{
  ^bb0(%p: i64, %o: f32):
    %row = arith.index_cast %p : i64 to index
    %column = linalg.index 1 : index
    %v = tensor.extract %w[%row, %column] : tensor<{rows}x{columns}xf32>
    linalg.yield %v : f32
  }} -> tensor<{count}x{columns}xf32>
  return %r : tensor<{count}x{columns}xf32>
}}"""  # fmt: skip
WIDE = "%v = arith.extf %x : f16 to f32"
COSTLY = "\n".join(f"%s{i} = math.exp %{'x' if i == 0 else f's{i - 1}'} : f32" for i in range(6)) + (
    "\n%v = arith.negf %s5 : f32"
)


def _run(text: str, table: np.ndarray, places: np.ndarray, folder: Path, threads: int) -> tuple[int, np.ndarray]:
    path = folder / "gather.mlir"
    path.write_text(text)
    program = fuseline.compile(path, threads=threads)
    (found,) = program.run({"t": table, "i": places}).values()
    return program.stats["dispatches"], found


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("rows", "columns", "count"), [(500, 33, 7), (64, 16, 64), (9, 130, 1)])
def test_a_few_rows_of_a_table(rows: int, columns: int, count: int, threads: int, tmp_path: Path) -> None:
    text = GATHER.format(rows=rows, columns=columns, count=count, element="f16", body=WIDE)
    table = RNG.standard_normal((rows, columns)).astype(np.float16)
    places = RNG.integers(0, rows, count)
    dispatches, found = _run(text, table, places, tmp_path, threads)
    np.testing.assert_array_equal(found, table[places].astype(np.float32))
    assert dispatches == 1


def test_a_costly_table_that_is_gathered_from_often_is_stored(tmp_path: Path) -> None:
    text = GATHER.format(rows=100, columns=64, count=4000, element="f32", body=COSTLY)
    table = RNG.uniform(-9, -8, (100, 64)).astype(np.float32)
    places = RNG.integers(0, 100, 4000)
    dispatches, found = _run(text, table, places, tmp_path, 1)
    expected = table.astype(np.float64)
    for _ in range(6):
        expected = np.exp(expected)
    np.testing.assert_allclose(found, -expected[places], rtol=1e-5)
    assert dispatches == 2


@pytest.mark.parametrize("element", ["float", "double"])
@pytest.mark.parametrize(("table", "count", "columns"), [((31, 4), 3, 2), ((9, 40), 5, 17), ((6, 33), 6, 32)])
def test_columns_that_are_fewer_than_those_of_the_table(
    table: tuple[int, int], count: int, columns: int, element: str
) -> None:
    """What reads a part of the columns runs along that part only, whatever the table is made of."""
    dtype = np.float32 if element == "float" else np.float64
    weights, places = RNG.uniform(1, 2, table).astype(dtype), RNG.integers(0, table[0], (count, columns))
    model = onnx_model(
        f"({element}[1, 1] v) => (y) {{ b = Add(v, k)  c = Div(w, b)  g = GatherElements<axis = 0>(c, i)  "
        "s = ReduceSum<keepdims = 1>(g, a)  d = Mul(g, s)  y = ReduceSum<keepdims = 1>(d, a) }",
        {"w": weights, "i": places, "k": np.full((), 0.1, dtype), "a": np.array([0, 1])},
    )
    v = RNG.uniform(1, 2, (1, 1)).astype(dtype)
    read = weights.astype(np.float64)[places, np.arange(columns)] / (v.astype(np.float64) + 0.1)
    program = fuseline.compile(model, threads=1)
    np.testing.assert_allclose(program.run({"v": v})["y"], [[read.sum() ** 2]], rtol=1e-5)
    assert program.stats["dispatches"] == 1
