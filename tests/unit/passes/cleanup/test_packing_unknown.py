"""Packs and unpacks of sizes that only the run tells give what those of known sizes give, and refuse what tiles do not
divide."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.draws import RNG


def _program(text: str, target: str, tmp_path: Path) -> fuseline.Program:
    path = tmp_path / "p.mlir"
    path.write_text(text)
    return fuseline.compile(path, target=target, threads=1)


def _pack(padding: str, dest: str) -> str:
    words = f"{padding} outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [4, 2]"
    types = f"tensor<?x?xf32> -> tensor<{dest}x4x2xf32>"
    return f"""func.func @main(%x: tensor<?x?xf32>, %o: tensor<{dest}x4x2xf32>, %p: f32) -> tensor<{dest}x4x2xf32> {{
  %e = math.tanh %x : tensor<?x?xf32>
  %r = linalg.pack %e {words} into %o : {types}
  return %r : tensor<{dest}x4x2xf32>
}}"""


def _packed(x: np.ndarray, fill: float) -> np.ndarray:
    rows, columns = -(-x.shape[0] // 2), -(-x.shape[1] // 4)
    whole = np.full((rows * 2, columns * 4), fill, np.float32)
    whole[: x.shape[0], : x.shape[1]] = np.tanh(x)
    return whole.reshape(rows, 2, columns, 4).transpose(2, 0, 3, 1)


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("dest", ["?x?", "3x?"])
@pytest.mark.parametrize("sizes", [(6, 12), (5, 9), (1, 10)])
def test_a_pack_fills_tiles_up(target: str, dest: str, sizes: tuple[int, int], tmp_path: Path):
    x = RNG.standard_normal(sizes, dtype=np.float32)
    expected = _packed(x, -1.5)
    feeds = {"x": x, "o": np.zeros_like(expected), "p": -1.5}
    (got,) = _program(_pack("padding_value(%p : f32)", dest), target, tmp_path).run(feeds).values()
    np.testing.assert_allclose(got, expected, rtol=1e-5)


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_without_padding_tiles_have_to_divide(target: str, tmp_path: Path):
    program = _program(_pack("", "?x?"), target, tmp_path)
    x = RNG.standard_normal((6, 12), dtype=np.float32)
    expected = _packed(x, 0)
    (got,) = program.run({"x": x, "o": np.zeros_like(expected), "p": 0.0}).values()
    np.testing.assert_allclose(got, expected, rtol=1e-5)
    with pytest.raises(FuselineError, match="E0203"):
        program.run({"x": x[:5], "o": np.zeros_like(expected), "p": 0.0})


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
@pytest.mark.parametrize("sizes", [(6, 12), (5, 9), (1, 10)])
def test_an_unpack_leaves_the_filling(target: str, sizes: tuple[int, int], tmp_path: Path):
    text = """func.func @main(%x: tensor<?x?x4x2xf32>, %o: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %e = math.tanh %x : tensor<?x?x4x2xf32>
  %r = linalg.unpack %e outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [4, 2]
      into %o : tensor<?x?x4x2xf32> -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}"""
    rows, columns = -(-sizes[0] // 2), -(-sizes[1] // 4)
    x = RNG.standard_normal((columns, rows, 4, 2), dtype=np.float32)
    program = _program(text, target, tmp_path)
    (got,) = program.run({"x": x, "o": np.zeros(sizes, np.float32)}).values()
    whole = np.tanh(x).transpose(1, 3, 0, 2).reshape(rows * 2, columns * 4)
    np.testing.assert_allclose(got, whole[: sizes[0], : sizes[1]], rtol=1e-5)
    with pytest.raises(FuselineError, match="E0203"):
        program.run({"x": x, "o": np.zeros((rows * 2 + 1, columns * 4), np.float32)})
