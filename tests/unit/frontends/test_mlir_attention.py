"""IREE's attention op: the numbers of its definition, with and without a mask, under permuted maps and unknown
sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.draws import RNG, generator

Q, K, V = (generator(__name__).standard_normal(shape, dtype=np.float32) for shape in ((2, 5, 8), (2, 7, 8), (2, 6, 7)))
MASKS: dict[str, Any] = {
    "": None,
    "i1": RNG.random((2, 5, 7)) < 0.8,
    "f32": RNG.standard_normal((2, 5, 7), dtype=np.float32),
}


def _text(mask: str, sizes: tuple[str, str], result: str = "(b, m, n)") -> str:
    rows, keys = sizes
    q, k, v, out = (f"tensor<{shape}xf32>" for shape in (f"2x{rows}x8", f"2x{keys}x8", f"2x6x{keys}", f"2x{rows}x6"))
    loops = "affine_map<(b, m, n, k, j) -> {}>"
    maps = [
        loops.format(part)
        for part in ("(b, m, k)", "(b, j, k)", "(b, n, j)", "()", *(["(b, m, j)"] if mask else []), result)
    ]
    given = f", %x : {q}, {k}, {v}, f32, tensor<2x{rows}x{keys}x{mask}>" if mask else f" : {q}, {k}, {v}, f32"
    return f"""func.func @main(%q: {q}, %k: {k}, %v: {v},
        %s: f32, %e: {out}{f", %x: tensor<2x{rows}x{keys}x{mask}>" if mask else ""}) -> {out} {{
  %r = iree_linalg_ext.attention {{indexing_maps = [{", ".join(maps)}]}} ins(%q, %k, %v, %s{given}) outs(%e : {out}) {{
  ^bb0(%score: f32):
    %t = math.tanh %score : f32
    iree_linalg_ext.yield %t : f32
  }} -> {out}
  return %r : {out}
}}"""


def _expected(mask: Any) -> Any:
    scores = np.tanh(np.einsum("bmk,bjk->bmj", Q, K) * np.float32(0.3))
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bmj,bnj->bmn", powers / powers.sum(-1, keepdims=True), V)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("sizes", [("5", "7"), ("?", "?")])
def test_attention(mask: str, sizes: tuple[str, str], tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text(_text(mask, sizes))
    feeds: dict[str, Any] = {
        "q": Q,
        "k": K,
        "v": V,
        "s": 0.3,
        "e": np.zeros((2, 5, 6), np.float32),
        **({"x": MASKS[mask]} if mask else {}),
    }
    for target in ("cpu", "interpreter"):
        got = fuseline.compile(path, target=target, threads=1).run(feeds)["result0"]
        np.testing.assert_allclose(got, _expected(MASKS[mask]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("result", "code"), [("(b, m, n + k)", "E0306"), ("(b, m, m)", "E0306"), ("(b, m)", "E0302")])
def test_maps_that_are_no_loops_are_refused(result: str, code: str, tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text(_text("", ("5", "7"), result))
    with pytest.raises(FuselineError, match=code):
        fuseline.compile(path, target="null")


def _online(mask: str, rows: str, keys: str) -> str:
    q, k, v, out, row = (
        f"tensor<{shape}xf32>" for shape in (f"2x{rows}x8", f"2x{keys}x8", f"2x6x{keys}", f"2x{rows}x6", f"{rows}x2")
    )
    loops = "affine_map<(b, m, n, k, j) -> {}>"
    parts = (
        "(b, m, k)",
        "(b, j, k)",
        "(b, n, j)",
        "()",
        *(["(b, m, j)"] if mask else []),
        "(b, m, n)",
        "(m, b)",
        "(m, b)",
    )
    given = f", %x : {q}, {k}, {v}, f32, tensor<2x{rows}x{keys}x{mask}>" if mask else f" : {q}, {k}, {v}, f32"
    extra = f", %x: tensor<2x{rows}x{keys}x{mask}>" if mask else ""
    types = f"{out}, {row}, {row}"
    return f"""func.func @main(%q: {q}, %k: {k}, %v: {v}, %s: f32, %e: {out}, %m: {row}, %t: {row}{extra})
    -> ({types}) {{
  %r:3 = iree_linalg_ext.online_attention {{indexing_maps = [{", ".join(loops.format(part) for part in parts)}]}}
      ins(%q, %k, %v, %s{given}) outs(%e, %m, %t : {types}) {{
  ^bb0(%score: f32):
    iree_linalg_ext.yield %score : f32
  }} -> {types}
  return %r#0, %r#1, %r#2 : {types}
}}"""


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("sizes", [("5", "7"), ("?", "?")])
def test_keys_may_come_in_parts(mask: str, sizes: tuple[str, str], tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text(_online(mask, *sizes))
    feeds: dict[str, Any] = {"q": Q, "k": K, "v": V, "s": 0.3, "e": RNG.standard_normal((2, 5, 6), dtype=np.float32)}
    feeds |= {"m": RNG.standard_normal((5, 2), dtype=np.float32), "t": RNG.random((5, 2), dtype=np.float32) + 1}
    feeds |= {"x": MASKS[mask]} if mask else {}
    scores = np.einsum("bmk,bjk->bmj", Q, K) * np.float32(0.3)
    if mask:
        scores = np.where(MASKS[mask], scores, -np.inf) if mask == "i1" else scores + MASKS[mask]
    largest = np.maximum(scores.max(2), feeds["m"].T)
    powers, shrunk = np.exp(scores - largest[..., None]), np.exp(feeds["m"].T - largest)
    expected = [
        feeds["e"] * shrunk[..., None] + np.einsum("bmj,bnj->bmn", powers, V),
        largest.T,
        (feeds["t"].T * shrunk + powers.sum(2)).T,
    ]
    for target in ("cpu", "interpreter"):
        got = fuseline.compile(path, target=target, threads=1).run(feeds).values()
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_a_maximum_of_something_else_is_refused(tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text(_online("", "5", "7").replace("-> (m, b)>", "-> (m, n)>", 1))
    with pytest.raises(FuselineError, match=r"E0306 \[p.mlir:3:\d+\]"):
        fuseline.compile(path, target="null")
