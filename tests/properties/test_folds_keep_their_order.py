"""Reductions whose elements weigh by their order, behind what moves dimensions: the order is that of the program, under
every level of fusion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import fuseline
from tests.draws import generator
from tests.fuzz.evaluate import ort_session
from tests.graphs.onnx_text import onnx_model

SIZES = (2, 3, 4, 5)
DECAY = 0.5


def _text(perm: list[int], kinds: list[str], sizes: list[int]) -> str:
    """A transposition, then `acc * DECAY + x` along the loops that are reductions."""
    moved = [sizes[axis] for axis in perm]
    kept = [i for i, kind in enumerate(kinds) if kind == "parallel"]
    loops = [f"d{i}" for i in range(len(sizes))]
    given, turned, made = (
        f"tensor<{''.join(f'{size}x' for size in dims)}f32>" for dims in (sizes, moved, [moved[i] for i in kept])
    )
    names, over = ", ".join(f'"{kind}"' for kind in kinds), ", ".join(loops)
    return f"""func.func @main(%a: {given}) -> {made} {{
      %zero = arith.constant 0.0 : f32
      %decay = arith.constant {DECAY} : f32
      %e = tensor.empty() : {turned}
      %t = linalg.transpose ins(%a : {given}) outs(%e : {turned}) permutation = {perm}
      %f = tensor.empty() : {made}
      %init = linalg.fill ins(%zero : f32) outs(%f : {made}) -> {made}
      %y = linalg.generic {{indexing_maps = [affine_map<({over}) -> ({over})>,
          affine_map<({over}) -> ({", ".join(loops[i] for i in kept)})>], iterator_types = [{names}]}}
          ins(%t : {turned}) outs(%init : {made}) {{
      ^bb0(%x: f32, %acc: f32):
        %s = arith.mulf %acc, %decay : f32
        %r = arith.addf %s, %x : f32
        linalg.yield %r : f32
      }} -> {made}
      return %y : {made}
    }}"""


def _folded(x: NDArray[np.float32], perm: list[int], kinds: list[str]) -> NDArray[np.float64]:
    """The same by weights: what came last counts whole."""
    moved = x.astype(np.float64).transpose(perm)
    kept = [i for i, kind in enumerate(kinds) if kind == "parallel"]
    folded = [i for i, kind in enumerate(kinds) if kind == "reduction"]
    rows = moved.transpose([*kept, *folded]).reshape([*(moved.shape[i] for i in kept), -1])
    return rows @ DECAY ** np.arange(rows.shape[-1])[::-1]


@pytest.mark.parametrize("draw", range(12))
def test_a_decaying_sum_behind_a_transposition(draw: int, tmp_path: Path) -> None:
    rng = generator(f"fold {draw}")
    rank = int(rng.integers(3, 5))
    sizes, perm = [int(n) for n in rng.choice(SIZES, rank)], [int(i) for i in rng.permutation(rank)]
    kinds = ["reduction", "reduction", *("reduction" if rng.random() < 0.3 else "parallel" for _ in range(rank - 2))]
    kinds = [kinds[i] for i in rng.permutation(rank)]
    path = tmp_path / "fold.mlir"
    path.write_text(_text(perm, kinds, sizes))
    x = rng.uniform(1, 2, sizes).astype(np.float32)
    for fusion in ("none", "default", "aggressive"):
        (found,) = fuseline.compile(path, threads=1, fusion=fusion).run({"a": x}).values()
        np.testing.assert_allclose(found, _folded(x, perm, kinds), rtol=1e-5)


@pytest.mark.parametrize("draw", range(12))
def test_the_place_of_the_best_of_equal_elements_behind_a_transposition(draw: int) -> None:
    rng = generator(f"place {draw}")
    rank = int(rng.integers(3, 6))
    sizes, perm = [int(n) for n in rng.choice(SIZES, rank)], [int(i) for i in rng.permutation(rank)]
    cut = int(rng.integers(1, rank))
    moved = [sizes[axis] for axis in perm]
    rows = [int(np.prod(moved[:cut])), int(np.prod(moved[cut:]))]
    best, axis, last = rng.choice(["ArgMax", "ArgMin"]), int(rng.integers(2)), int(rng.integers(2))
    model = onnx_model(
        f"(float{['n', *sizes[1:]]} x) => (int64[?] y) {{ t = Transpose <perm = {perm}> (x)  r = Reshape (t, s)  "
        f"y = {best} <axis = {axis}, keepdims = 0, select_last_index = {last}> (r) }}".replace("'", ""),
        s=rows,
    )
    x = rng.integers(-1, 2, sizes).astype(np.float32)
    (expected,) = ort_session(model).run(None, {"x": x})
    for fusion in ("none", "default", "aggressive"):
        (found,) = fuseline.compile(model, threads=1, fusion=fusion).run({"x": x}).values()
        np.testing.assert_array_equal(found, expected)
