"""Sharing code changes no result and costs no dispatch: random models of near-duplicates, at every level."""

from __future__ import annotations

import numpy as np
import pytest

import fuseline
from fuseline.passes.dedup.levels import LEVELS
from tests.properties.near_duplicates import feeds, near_duplicates
from tests.proved import ProvedProgram


def _check(seed: int, target: str, fusion: str, rows: str) -> None:
    rng = np.random.default_rng(seed)
    model = near_duplicates(rng, rows)
    programs = [fuseline.compile(model, target=target, threads=2, fusion=fusion, dedup=level) for level in LEVELS]
    counts = [program.stats["executables"] for program in programs]
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


@pytest.mark.parametrize("rows", ["5", "n"])
def test_kernels_that_are_shared_stay_inside(rows: str):
    rng = np.random.default_rng()
    program = ProvedProgram(near_duplicates(rng, rows), fusion=str(rng.choice(["none", "default"])), dedup=LEVELS[-1])
    assert program.run(feeds(rng, 5))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_many_levels_give_the_same_numbers(seed: int):
    _check(seed, "cpu", ("none", "default")[seed % 2], ("5", "n", "64")[seed % 3])
