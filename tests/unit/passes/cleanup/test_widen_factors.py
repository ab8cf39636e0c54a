"""Products of narrow floats added up in wider ones: register tiles, one dispatch, the numbers of the wide product."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.passes.cleanup.widen_factors import LEAST_USES
from tests.draws import RNG
from tests.kernels import assert_close

NUMPY: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}

MATMUL = """func.func @main(%a: tensor<{m}x{k}x{ta}>, %b: tensor<{k}x{n}x{tb}>, %c: tensor<{m}x{n}x{tc}>)
    -> tensor<{m}x{n}x{tc}> {{
  %r = linalg.matmul ins(%a, %b : tensor<{m}x{k}x{ta}>, tensor<{k}x{n}x{tb}>) outs(%c : tensor<{m}x{n}x{tc}>)
      -> tensor<{m}x{n}x{tc}>
  return %r : tensor<{m}x{n}x{tc}>
}}"""

CONVOLUTION = """func.func @main(%a: tensor<{h}x{w}x{c}x{t}>, %b: tensor<3x3x{c}x{n}x{t}>, %z: tensor<{u}x{v}x{n}xf64>)
    -> tensor<{u}x{v}x{n}xf64> {{
  %r = linalg.generic {{indexing_maps = [affine_map<(y, x, f, i, j, c) -> (y + i, x + j, c)>,
      affine_map<(y, x, f, i, j, c) -> (i, j, c, f)>, affine_map<(y, x, f, i, j, c) -> (y, x, f)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}}
      ins(%a, %b : tensor<{h}x{w}x{c}x{t}>, tensor<3x3x{c}x{n}x{t}>) outs(%z : tensor<{u}x{v}x{n}xf64>) {{
  ^bb0(%p: {t}, %q: {t}, %o: f64):
    %e = arith.extf %p : {t} to f64
    %g = arith.extf %q : {t} to f64
    %m = arith.mulf %e, %g : f64
    %s = arith.addf %m, %o : f64
    linalg.yield %s : f64
  }} -> tensor<{u}x{v}x{n}xf64>
  return %r : tensor<{u}x{v}x{n}xf64>
}}"""


def _normal(shape: tuple[int, ...], element: str) -> NDArray[Any]:
    return RNG.standard_normal(shape).astype(NUMPY[element])


def _run(text: str, values: dict[str, NDArray[Any]], folder: Path, numerics: str = "default") -> tuple[Any, Any, Any]:
    """A program, what it computes, and what the interpreter computes of the same text, nothing fused."""
    path = folder / "product.mlir"
    path.write_text(text)
    program = fuseline.compile(path, threads=int(RNG.integers(1, 3)), numerics=numerics)
    plain = fuseline.compile(path, target="interpreter", fusion="none", numerics=numerics)
    ((found,), (wanted,)) = (one.run(values).values() for one in (program, plain))
    return program, found, wanted


@pytest.mark.parametrize("types", ["f32 f32", "f16 f16", "bf16 bf16", "f16 f32", "f32 f64", "f64 bf16"])
def test_a_product_added_up_in_f64(types: str, tmp_path: Path) -> None:
    ta, tb = types.split()
    m, n, k = (int(size) for size in RNG.integers(3, 90, 3))
    a, b, c = _normal((m, k), ta), _normal((k, n), tb), _normal((m, n), "f64")
    text = MATMUL.format(m=m, n=n, k=k, ta=ta, tb=tb, tc="f64")
    program, found, wanted = _run(text, {"a": a, "b": b, "c": c}, tmp_path)
    assert_close(found, wanted, bits=45)
    assert_close(found, a.astype(np.float64) @ b.astype(np.float64) + c, bits=45)
    assert [one.family for one in program.record.dispatches if one.root == "contraction"] == ["contraction"]


@pytest.mark.parametrize("element", ("f16", "bf16", "f32"))
def test_a_convolution_added_up_in_f64(element: str, tmp_path: Path) -> None:
    u, v, c, n = (int(size) for size in RNG.integers(3, 20, 4))
    a, b, z = _normal((u + 2, v + 2, c), element), _normal((3, 3, c, n), element), _normal((u, v, n), "f64")
    text = CONVOLUTION.format(h=u + 2, w=v + 2, u=u, v=v, c=c, n=n, t=element)
    program, found, wanted = _run(text, {"a": a, "b": b, "z": z}, tmp_path)
    assert_close(found, wanted, bits=45)
    assert [one.family for one in program.record.dispatches if one.root == "convolution"] == ["convolution"]


@pytest.mark.parametrize("element", ("f16", "bf16"))
def test_strict_sums_of_halves_in_f32(element: str, tmp_path: Path) -> None:
    """Which hold halves as they are, elsewhere: what a body widens is exact."""
    m, n, k = (int(size) for size in RNG.integers(3, 90, 3))
    a, b, c = _normal((m, k), element), _normal((k, n), element), _normal((m, n), "f32")
    text = MATMUL.format(m=m, n=n, k=k, ta=element, tb=element, tc="f32")
    program, found, wanted = _run(text, {"a": a, "b": b, "c": c}, tmp_path, "strict")
    assert_close(found, wanted, bits=16)
    assert [one.family for one in program.record.dispatches if one.root == "contraction"] == ["contraction"]


@pytest.mark.parametrize("few", ("rows", "columns"))
def test_what_is_used_once_or_twice_is_widened_on_the_way(few: str, tmp_path: Path) -> None:
    uses, other, k = int(RNG.integers(1, LEAST_USES)), int(RNG.integers(20, 200)), int(RNG.integers(20, 200))
    m, n = (uses, other) if few == "rows" else (other, uses)
    a, b, c = _normal((m, k), "f32"), _normal((k, n), "f32"), _normal((m, n), "f64")
    text = MATMUL.format(m=m, n=n, k=k, ta="f32", tb="f32", tc="f64")
    program, found, wanted = _run(text, {"a": a, "b": b, "c": c}, tmp_path)
    assert_close(found, wanted, bits=45)
    assert program.stats["dispatches"] == 1 and "contraction" not in {one.family for one in program.record.dispatches}


def test_large_products_of_halves_are_one_dispatch(tmp_path: Path) -> None:
    """Both factors are widened where they are packed, for as many columns as half as many lanes are."""
    m, n, k = (int(size) for size in RNG.integers((90, 400, 200), (130, 600, 300)))
    element = str(RNG.choice(["f16", "bf16"]))
    path = tmp_path / "product.mlir"
    path.write_text(MATMUL.format(m=m, n=n, k=k, ta=element, tb=element, tc="f64"))
    assert fuseline.compile(path, target="null", threads=1).stats["dispatches"] == 1
