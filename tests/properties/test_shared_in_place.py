"""Executables that dispatches of other extents share keep results in place as their own do, and compute there what they
compute in places of their own, bit for bit, on any number of threads."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.compilation import compile_program
from fuseline.compile_options import CompileOptions
from fuseline.passes.schedule import build_schedule
from fuseline.runtime import Session
from fuseline.runtime.artifact import Artifact
from tests.properties.near_duplicates import feeds, near_duplicates
from tests.properties.residual_networks import residual_network


def _compiled(model: onnx.ModelProto, threads: int, poison: bool) -> Artifact:
    return compile_program(model, CompileOptions(threads=threads, dedup="shapes", poison=poison))


def _results(program: Artifact, given: dict[str, Any], threads: int | None = None) -> list[Any]:
    """Shared out among all threads, however little there is to do."""
    shared = program._replace(program=program.program._replace(serial_below_ns=0, split_above_ns=0))
    return list(Session(shared, threads=threads).run(given).values())


def _check(model: onnx.ModelProto, threads: int, runs: list[dict[str, Any]]) -> list[Any]:
    """What the model gives for each of `runs`, in place as apart."""
    with mock.patch.object(build_schedule, "results_in_place", lambda *_: []):
        apart = _compiled(model, threads, poison=False)
    shared = _compiled(model, threads, poison=True)
    expected = [_results(apart, given) for given in runs]
    for given, results in zip(runs, expected, strict=True):
        for found, wanted in zip(_results(shared, given), results, strict=True):
            np.testing.assert_array_equal(found, wanted)
    return expected


def _images(rng: np.random.Generator, size: int, channels: int, batch: int = 1) -> dict[str, Any]:
    return {"x": rng.standard_normal((batch, channels, size, size), dtype=np.float32)}


@pytest.mark.parametrize("threads", [1, 3])
def test_residual_networks(threads: int) -> None:
    rng = np.random.default_rng()
    size, channels = int(rng.integers(9, 40)), int(rng.integers(3, 9)) * 4
    images = [_images(rng, size, channels) for _ in range(2)]
    (one,), (other,) = _check(residual_network(rng, size, channels, stages=2), threads, images)
    assert not np.array_equal(one, other)


def test_residual_networks_of_any_batch() -> None:
    rng = np.random.default_rng()
    size, channels = int(rng.integers(5, 15)), int(rng.integers(3, 9)) * 4
    runs = [_images(rng, size, channels, batch) for batch in (1, 3)]
    _check(residual_network(rng, size, channels, "n", stages=2), 2, runs)


@pytest.mark.parametrize("threads", [1, 3])
def test_near_duplicates_of_any_rows(threads: int) -> None:
    rng = np.random.default_rng()
    _check(near_duplicates(rng, "n"), threads, [feeds(rng, rows) for rows in (2, 7, 50)])


@pytest.mark.parametrize(("size", "channels", "fewer"), [(29, 24, 0), (45, 128, 1)])
def test_sharing_takes_no_memory(size: int, channels: int, fewer: int) -> None:
    """As many results stand in place as at the default level, and no more code does the same (the small network has few
    dispatches left to share)."""
    model = residual_network(np.random.default_rng(), size, channels)
    own, shared = (fuseline.compile(model, threads=2, dedup=level).stats for level in ("constants", "shapes"))
    assert shared["executables"] <= own["executables"] - fewer
    assert shared["in_place"] == own["in_place"] and own["in_place"]["taken"] > 0
    scratch = shared["scratch_bytes_max"] - own["scratch_bytes_max"]
    assert shared["transient_bytes"] <= own["transient_bytes"] + 2 * max(0, scratch)
