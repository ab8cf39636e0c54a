"""Random models whose results take the place of operands compute what they compute in places of their own, bit for bit,
on any number of threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest import mock

import numpy as np
import onnx
import pytest

from fuseline.compilation import compile_program
from fuseline.compile_options import CompileOptions
from fuseline.passes.schedule import build_schedule
from fuseline.runtime import Session
from fuseline.runtime.artifact import Artifact
from fuseline.runtime.sizes import SizeEvaluator
from tests.graphs.onnx_text import onnx_model
from tests.properties.random_models import INPUTS, RandomModel
from tests.small_models import convolutions


def _random_model(seed: int) -> onnx.ModelProto:
    steps: list[Sequence[int]] = np.random.default_rng(seed).integers(0, 1000, (16, 3)).tolist()
    return RandomModel(seed).build([(a, b, c) for a, b, c in steps])


def _compiled(model: onnx.ModelProto, threads: int, fusion: str, poison: bool) -> Artifact:
    return compile_program(model, CompileOptions(threads=threads, fusion=fusion, poison=poison))


def _results(program: Artifact, feeds: dict[str, Any], threads: int | None = None) -> list[Any]:
    """Shared out among all threads, however little there is to do."""
    shared = program._replace(program=program.program._replace(serial_below_ns=0, split_above_ns=0))
    return list(Session(shared, threads=threads).run(feeds).values())


@pytest.mark.parametrize("fusion", ["none", "default"])
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("seed", [11, 12])
def test_random_models(seed: int, threads: int, fusion: str) -> None:
    rng = np.random.default_rng()
    model = _random_model(seed)
    feeds = {name: rng.standard_normal(shape, dtype=np.float32) for name, shape in INPUTS.items()}
    with mock.patch.object(build_schedule, "results_in_place", lambda *_: []):
        apart = _compiled(model, threads, fusion, poison=False)
    shared = _compiled(model, threads, fusion, poison=True)
    for found, expected in zip(_results(shared, feeds), _results(apart, feeds), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("compiled", [1, 2])
def test_scratch_for_more_threads_than_compiled_for(compiled: int) -> None:
    """Sessions of more threads take scratch from memory of their own, those of fewer from the arena."""
    rng = np.random.default_rng()
    model = convolutions()
    (info,) = model.graph.input
    shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
    feeds = {info.name: rng.standard_normal(shape, dtype=np.float32)}
    program = _compiled(model, compiled, "default", poison=True)
    assert program.program.scratch_bytes > 0
    expected = _results(program, feeds)
    for threads in (1, 3):
        for found, wanted in zip(_results(program, feeds, threads), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_a_chain_needs_one_place() -> None:
    """Unfused, each operation of a chain takes its operand's place: the first of them alone has memory."""
    nodes = "  ".join(f"x{i + 1} = {'Tanh' if i % 2 else 'Neg'}(x{i})" for i in range(6))
    model = onnx_model(f"(float[33, 7] x0) => (float[33, 7] x6) {{ {nodes} }}")
    program = _compiled(model, 2, "none", poison=False).program
    assert SizeEvaluator({})(program.arena_bytes) == -(-33 * 7 * 4 // 64) * 64
