"""Products and convolutions of 16-bit floats read both operands converted while they pack them: one dispatch, with the
numbers of the converted operands; and where that would take too long, a reason."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.analysis import image_box
from tests.draws import RNG
from tests.kernels import assert_close

NUMPY: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}

MATMUL = """func.func @main(%a: tensor<{a}x{ta}>, %b: tensor<{b}x{tb}>) -> tensor<{c}x{tc}> {{
{sizes}
  %zero = arith.constant 0.0 : {tc}
  %e = tensor.empty({named}) : tensor<{c}x{tc}>
  %f = linalg.fill ins(%zero : {tc}) outs(%e : tensor<{c}x{tc}>) -> tensor<{c}x{tc}>
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j, k) -> {ma}>, affine_map<(i, j, k) -> {mb}>,
      affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%a, %b : tensor<{a}x{ta}>, tensor<{b}x{tb}>) outs(%f : tensor<{c}x{tc}>) {{
  ^bb0(%x: {ta}, %y: {tb}, %acc: {tc}):
    {wide}
    %p = arith.mulf %wx, %wy : {tc}
    %s = arith.addf %acc, %p : {tc}
    linalg.yield %s : {tc}
  }} -> tensor<{c}x{tc}>
  return %r : tensor<{c}x{tc}>
}}"""
CONVOLUTION = """func.func @main(%a: tensor<2x{h}x{w}x{c}xf16>, %b: tensor<{k}x{k}x{c}x{n}xf16>)
    -> tensor<2x{u}x{v}x{n}xf32> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x{u}x{v}x{n}xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x{u}x{v}x{n}xf32>) -> tensor<2x{u}x{v}x{n}xf32>
  %r = linalg.conv_2d_nhwc_hwcf {{dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}}
      ins(%a, %b : tensor<2x{h}x{w}x{c}xf16>, tensor<{k}x{k}x{c}x{n}xf16>)
      outs(%f : tensor<2x{u}x{v}x{n}xf32>) -> tensor<2x{u}x{v}x{n}xf32>
  return %r : tensor<2x{u}x{v}x{n}xf32>
}}"""  # fmt: skip


def _matmul(
    sizes: Sequence[int], types: tuple[str, str, str], turned: str = "", unknown: str = ""
) -> tuple[str, NDArray[Any], NDArray[Any]]:
    """`turned`: which operands have the reduction in the other place; `unknown`: which of m, n are."""
    (m, n, k), (ta, tb, tc) = sizes, types
    named = {"m": "?" if "m" in unknown else m, "n": "?" if "n" in unknown else n}
    a, b = (k, named["m"]) if "a" in turned else (named["m"], k), (named["n"], k) if "b" in turned else (k, named["n"])
    a_type, b_type = ("x".join(map(str, dims)) for dims in (a, b))
    dims = "".join(
        f"  %c{name} = arith.constant {shape.index('?')} : index\n"
        f"  %{name} = tensor.dim %{value}, %c{name} : tensor<{type_}x{element}>\n"
        for name, value, shape, type_, element in (("m", "a", a, a_type, ta), ("n", "b", b, b_type, tb))
        if name in unknown
    )
    wide = "\n".join(
        f"    %w{name} = arith.{'extf' if given != tc else 'addf'} %{name}"
        + (f" : {given} to {tc}" if given != tc else f", %zero : {tc}")
        for name, given in (("x", ta), ("y", tb))
    )
    text = MATMUL.format(
        a=a_type, b=b_type, c=f"{named['m']}x{named['n']}", ta=ta, tb=tb, tc=tc, wide=wide, sizes=dims,
        ma="(k, i)" if "a" in turned else "(i, k)", mb="(j, k)" if "b" in turned else "(k, j)",
        named=", ".join(f"%{name}" for name in "mn" if name in unknown),
    )  # fmt: skip
    x = RNG.standard_normal((k, m) if "a" in turned else (m, k)).astype(NUMPY[ta])
    y = RNG.standard_normal((n, k) if "b" in turned else (k, n)).astype(NUMPY[tb])
    return text, x, y


def _run(text: str, x: NDArray[Any], y: NDArray[Any], folder: Path, threads: int) -> tuple[Any, NDArray[Any]]:
    path = folder / "product.mlir"
    path.write_text(text)
    program = fuseline.compile(path, threads=threads, cache=False)
    (found,) = program.run({"a": x, "b": y}).values()
    return program, found


@pytest.mark.parametrize("types", [("f16", "f16", "f32"), ("bf16", "bf16", "f32"), ("f16", "bf16", "f32")])
@pytest.mark.parametrize("turned", ["", "a", "b", "ab"])
@pytest.mark.parametrize("sizes", [(100, 500, 250), (33, 47, 19), (7, 130, 64), (256, 96, 77)])
def test_a_product_of_halves_is_one_dispatch(
    sizes: tuple[int, int, int], turned: str, types: tuple[str, str, str], tmp_path: Path
) -> None:
    text, x, y = _matmul(sizes, types, turned)
    program, found = _run(text, x, y, tmp_path, threads=2)
    a, b = (x.T if "a" in turned else x), (y.T if "b" in turned else y)
    assert_close(found, a.astype(np.float64) @ b.astype(np.float64), bits=16)
    assert program.stats["dispatches"] == 1 or "a" in turned  # rows that lie across memory are gathered one by one


@pytest.mark.parametrize("rows", [1, 5, 130])
def test_rows_that_only_the_run_knows(rows: int, tmp_path: Path) -> None:
    text, x, y = _matmul((rows, 96, 50), ("f16", "f16", "f32"), unknown="m")
    program, found = _run(text, x, y, tmp_path, threads=1)
    assert_close(found, x.astype(np.float64) @ y.astype(np.float64), bits=16)
    assert program.stats["dispatches"] == 1


@pytest.mark.parametrize("image", [(14, 17, 16, 3, 40), (10, 10, 4, 5, 24), (9, 12, 8, 1, 16)])
def test_a_convolution_of_halves(image: tuple[int, int, int, int, int], tmp_path: Path) -> None:
    h, w, c, k, n = image
    u, v = h - k + 1, w - k + 1
    text = CONVOLUTION.format(h=h, w=w, c=c, k=k, n=n, u=u, v=v)
    x = RNG.standard_normal((2, h, w, c)).astype(np.float16)
    y = RNG.standard_normal((k, k, c, n)).astype(np.float16)
    program, found = _run(text, x, y, tmp_path, threads=2)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (k, k), axis=(1, 2))
    assert_close(found, np.einsum("buvcij,ijcn->buvn", windows, y.astype(np.float64)), bits=14)
    assert program.stats["dispatches"] == 1


@pytest.mark.parametrize("steps", [1000, 5000])
def test_a_long_reduction(steps: int, tmp_path: Path) -> None:
    text, x, y = _matmul((64, 48, steps), ("f16", "f16", "f32"))
    program, found = _run(text, x, y, tmp_path, threads=1)
    assert_close(found, x.astype(np.float64) @ y.astype(np.float64), bits=14)
    assert program.stats["dispatches"] == 1


def test_rows_across_memory_are_turned_some_steps_at_a_time(tmp_path: Path) -> None:
    """Measured .85 to 1.0 of the time of two dispatches."""
    sizes = (int(RNG.integers(256, 900)), int(RNG.integers(64, 500)), int(RNG.integers(300, 1200)))
    text, x, y = _matmul(sizes, ("f16", "f16", "f32"), "a")
    program, found = _run(text, x, y, tmp_path, threads=1)
    assert_close(found, x.T.astype(np.float64) @ y.astype(np.float64), bits=15)
    assert program.stats["dispatches"] == 1


def test_what_would_take_much_longer_has_a_price(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that lie across memory, and have no room in scratch, are gathered one by one, for each block of columns
    again."""
    monkeypatch.setattr(image_box, "BOX_BYTES", 0)
    text, x, y = _matmul((700, 640, 1000), ("f16", "f16", "f32"), "a")
    program, found = _run(text, x, y, tmp_path, threads=1)
    assert_close(found, x.T.astype(np.float64) @ y.astype(np.float64), bits=15)
    missed = [decision for decision in program.decisions if decision.verdict == "missed"]
    assert missed and all(one.code == "unprofitable" for one in missed)
    assert all(one.numbers["evaluation_ns"] > one.numbers["saved_ns"] for one in missed)
