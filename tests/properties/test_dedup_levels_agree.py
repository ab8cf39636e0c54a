"""Sharing code changes no result and costs no dispatch: random models of near-duplicates, at every level."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.passes.dedup.levels import LEVELS
from tests.graphs.onnx_text import onnx_model
from tests.properties.near_duplicates import feeds, near_duplicates
from tests.proved import ProvedProgram


def _check(seed: int, target: str, fusion: str, rows: str) -> None:
    rng = np.random.default_rng(seed)
    model = near_duplicates(rng, rows)
    programs = [fuseline.compile(model, target=target, threads=2, fusion=fusion, dedup=level) for level in LEVELS]
    counts = [program.stats["executables"] for program in programs]
    assert max(counts) == counts[0]
    if fusion == "none":  # dispatches of few constants: of many, a part might have no place for operands
        assert counts == sorted(counts, reverse=True), counts
    assert len({program.stats["dispatches"] for program in programs}) == 1
    for count in (7, 33) if rows == "n" else (int(rows),):
        given = feeds(rng, count)
        expected, *found = (list(program.run(given).values()) for program in programs)
        for one in found:
            assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(expected, one, strict=True)), (seed, counts)


@pytest.mark.parametrize("rows", ["5", "n"])
@pytest.mark.parametrize("fusion", ["none", "default"])
@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_levels_give_the_same_numbers(target: str, fusion: str, rows: str):
    seed = int(np.random.default_rng().integers(1 << 30))
    _check(seed, target, fusion, rows)


def test_results_in_place_are_those_of_the_kernel_that_runs():
    """A softmax whose own kernel has read a row before it writes it, and whose shared one has not."""
    _check(112, "cpu", "default", "n")


@pytest.mark.parametrize("rows", ["5", "n"])
def test_kernels_that_are_shared_stay_inside(rows: str):
    rng = np.random.default_rng()
    program = ProvedProgram(near_duplicates(rng, rows), fusion=str(rng.choice(["none", "default"])), dedup=LEVELS[-1])
    assert program.run(feeds(rng, 5))


LOOPS = """(float[n, 1, 5] x) => (y) {
  a, g, c = LSTM<hidden_size = 5, clip = 0.5>(x, w, r)
  b = Squeeze(a, axis)
  y, h, d = LSTM<hidden_size = 5, clip = 0.7>(b, w, r)
}"""
BRANCHES = """(float[n, 6] x, bool b) => (y) {
  s = Mul(x, two)
  t = Mul(s, three)
  y = If<then_branch = g () => (float[n, 6] p) { u = Mul(t, two)  v = Div(u, three)  p = Add(v, two) },
         else_branch = g () => (float[n, 6] q) { u = Mul(t, three)  v = Div(u, two)  q = Add(v, three) }>(b)
}"""


def _check_saved(model: onnx.ModelProto, fusion: str, runs: Sequence[dict[str, Any]], path: Path) -> None:
    """Every level, compiled and loaded again, gives what is computed without sharing."""
    none = fuseline.compile(model, fusion=fusion, dedup="none", threads=1)
    for level in LEVELS[1:]:
        program = fuseline.compile(model, fusion=fusion, dedup=level, threads=1)
        program.save(path)
        for one in (program, fuseline.load(path)):
            for given in runs:
                pairs = zip(none.run(given).values(), one.run(given).values(), strict=True)
                assert all(np.array_equal(a, b) for a, b in pairs), (level, fusion)


@pytest.mark.parametrize("fusion", ["none", "default"])
def test_near_duplicates_in_loops(fusion: str, tmp_path: Path):
    rng = np.random.default_rng()
    weights = {name: rng.standard_normal((1, 20, 5)).astype(np.float32) for name in ("w", "r")}
    runs = [{"x": rng.standard_normal((length, 1, 5)).astype(np.float32)} for length in (1, 7)]
    model = onnx_model(LOOPS, weights, axis=np.array([1]))
    _check_saved(model, fusion, runs, tmp_path / "a.fuse")
    counts = [fuseline.compile(model, fusion=fusion, dedup=level, threads=1).stats for level in ("exact", "constants")]
    assert len(counts[0]["loops"]) == 2 and counts[1]["executables"] < counts[0]["executables"]


@pytest.mark.parametrize("fusion", ["none", "default"])
def test_near_duplicates_in_branches(fusion: str, tmp_path: Path):
    x = np.random.default_rng().standard_normal((7, 6)).astype(np.float32)
    runs = [{"x": x, "b": np.array(flag)} for flag in (True, False)]
    _check_saved(onnx_model(BRANCHES, two=np.float32(1.7), three=np.float32(2.9)), fusion, runs, tmp_path / "a.fuse")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_many_levels_give_the_same_numbers(seed: int):
    _check(seed, "cpu", ("none", "default")[seed % 2], ("5", "n", "64")[seed % 3])
