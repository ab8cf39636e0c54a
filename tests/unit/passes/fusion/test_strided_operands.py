"""Products that read every second or third row of what is converted: one dispatch, since what lies between them is
neither converted nor counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import fuseline
from tests.draws import RNG
from tests.kernels import assert_close

NUMPY: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}

PRODUCT = """func.func @main(%a: tensor<{a}x{t}>, %b: tensor<{b}x{t}>) -> tensor<{c}xf32> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<{c}xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<{c}xf32>) -> tensor<{c}xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<({loops}) -> ({image})>, affine_map<({loops}) -> (n, {taps}k)>,
      affine_map<({loops}) -> ({rows}, n)>], iterator_types = [{iterators}]}}
      ins(%a, %b : tensor<{a}x{t}>, tensor<{b}x{t}>) outs(%f : tensor<{c}xf32>) {{
  ^bb0(%x: {t}, %y: {t}, %acc: f32):
    %wx = arith.extf %x : {t} to f32
    %wy = arith.extf %y : {t} to f32
    %p = arith.mulf %wx, %wy : f32
    %s = arith.addf %acc, %p : f32
    linalg.yield %s : f32
  }} -> tensor<{c}xf32>
  return %r : tensor<{c}xf32>
}}"""


def _program(rows: list[int], steps: list[int], taps: int, columns: int, depth: int, element: str) -> str:
    """`taps`: of a window along the last of `rows`; none: 0."""
    names = [f"d{i}" for i in range(len(rows))]
    image = [f"{name} * {step}" for name, step in zip(names, steps, strict=True)]
    sizes = [row * step for row, step in zip(rows, steps, strict=True)]
    image[-1] += " + w" if taps else ""
    kinds = ["parallel"] * (len(rows) + 1) + ["reduction"] * (2 if taps else 1)
    return PRODUCT.format(
        a="x".join(map(str, (*sizes, depth))), b=f"{columns}x{taps}x{depth}" if taps else f"{columns}x{depth}",
        c="x".join(map(str, (*rows, columns))), loops=", ".join((*names, "n", *(["w"] if taps else []), "k")),
        image=", ".join((*image, "k")), rows=", ".join(names), taps="w, " if taps else "", t=element,
        iterators=", ".join(f'"{kind}"' for kind in kinds),
    )  # fmt: skip


def _expected(x: NDArray[Any], y: NDArray[Any], steps: list[int], taps: int) -> NDArray[Any]:
    x, y = x.astype(np.float64), y.astype(np.float64)
    picked = [x[(*(slice(None, None, step) for step in steps[:-1]), slice(tap, None, steps[-1]))]
        for tap in range(max(taps, 1))]  # fmt: skip
    return sum((part @ (y[:, tap] if taps else y).T for tap, part in enumerate(picked)), np.zeros(()))


@pytest.mark.parametrize("element", NUMPY)
@pytest.mark.parametrize("rank", (1, 2, 3))
@pytest.mark.parametrize("window", (False, True))
def test_a_product_in_steps_is_one_dispatch(rank: int, element: str, window: bool, tmp_path: Path) -> None:
    rows = [int(n) for n in RNG.integers(5, (200, 15, 9)[rank - 1], rank)]
    steps = [int(n) for n in RNG.integers(1, 4, rank)]
    steps[-1] = int(RNG.integers(2, 5))
    columns, depth = int(RNG.integers(65, 900)), int(RNG.integers(17, 500))
    taps = int(RNG.integers(1, steps[-1])) if window else 0
    path = tmp_path / "product.mlir"
    path.write_text(_program(rows, steps, taps, columns, depth, element))
    x = RNG.standard_normal((*(n * s for n, s in zip(rows, steps, strict=True)), depth)).astype(NUMPY[element])
    y = RNG.standard_normal((columns, taps, depth) if taps else (columns, depth)).astype(NUMPY[element])
    threads = int(RNG.integers(1, 3))
    (found,) = fuseline.compile(path, threads=threads).run({"a": x, "b": y}).values()
    assert_close(found, _expected(x, y, steps, taps), bits=16)
    counted = fuseline.compile(path, target="null", threads=threads)
    paid = all(decision.code != "unprofitable" for decision in counted.decisions)  # few rows that are converted again
    assert counted.stats["dispatches"] == (1 if paid else 2)
