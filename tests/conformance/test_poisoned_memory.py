"""Programs that overwrite, after every step, all memory that nothing needs any more, and scratch: they are right all
the same.

What a host operator held of the arena, a kernel that reads more than was written, a transient placed where another one
still lives: all of it would be NaN, -1 or 255.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest

from fuseline.compilation import compile_program
from fuseline.compile_options import CompileOptions
from fuseline.errors import FuselineError
from fuseline.runtime import Session
from fuseline.runtime.artifact import Artifact
from tests.conformance.conformance_gaps import expected_kind
from tests.conformance.node_cases import compare, node_cases
from tests.one_node import by_onnxruntime
from tests.properties.random_models import INPUTS, RandomModel
from tests.small_models import attention, convolutions, diamond
from tests.unit.frontends.test_onnx_host_memory import WAYS, way_model
from tests.unit.frontends.test_onnx_recurrent_loops import layer

TARGETS = pytest.mark.parametrize("target", ["cpu", "interpreter"])
WORDS = (
    "loop",
    "scan",
    "if_",
    "sequence",
    "optional",
    "lstm",
    "nonzero",
    "unique",
    "nonmaxsuppression",
    "string",
    "split_to",
    "adam",
    "bn_",
)
SAMPLED = 80


def _session(model: onnx.ModelProto, target: str, *, fusion: str = "none", threads: int = 1) -> Any:
    program: Any = compile_program(model, CompileOptions(target=target, threads=threads, fusion=fusion, poison=True))
    return Session(program) if isinstance(program, Artifact) else program.session()


def _check_nodes(names: Sequence[str], target: str) -> int:
    checked = 0
    for name in names:
        case = node_cases()[name]
        if expected_kind(name) == "wrong":
            continue
        try:
            session = _session(case.model, target)
        except FuselineError:
            continue
        feeds = {spec.name: value for spec, value in zip(session.inputs, case.inputs, strict=True)}
        for _ in range(2):
            compare(list(session.run(feeds).values()), case)
        checked += 1
    return checked


@cache
def _telling() -> list[str]:
    """Node tests with bodies, held values, or sizes that only the run tells."""
    return [
        name for name in sorted(node_cases()) if any(word in name for word in WORDS) and not name.endswith("_expanded")
    ]


@TARGETS
def test_nodes_with_bodies_and_held_values(target: str) -> None:
    assert _check_nodes(_telling()[::4], target) > 12


@TARGETS
def test_sampled_nodes(target: str) -> None:
    assert _check_nodes(sorted(node_cases())[::SAMPLED], target) > 15


@pytest.mark.slow
@TARGETS
@pytest.mark.parametrize("share", range(8))
def test_all_nodes(target: str, share: int) -> None:
    assert _check_nodes(sorted(node_cases())[share::8], target) > 100


def _is_right(model: onnx.ModelProto, feeds: Mapping[str, Any], target: str, **options: Any) -> None:
    """As onnxruntime has it: what reads memory that is in use again is wrong without poison, too."""
    session, wanted = _session(model, target, **options), by_onnxruntime(model, feeds)
    for _ in range(2):
        for found, expected in zip(session.run(feeds).values(), wanted, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def _floats(shapes: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    return {name: rng.standard_normal(tuple(shape), dtype=np.float32) for name, shape in shapes.items()}


def _fed(model: onnx.ModelProto, **sizes: int) -> dict[str, Any]:
    """Floats, and small integers where integers are wanted."""
    types = {info.name: info.type.tensor_type for info in model.graph.input}
    found = _floats(
        {name: [dim.dim_value or sizes[dim.dim_param] for dim in type_.shape.dim] for name, type_ in types.items()}
    )
    return {
        name: np.abs(x * 3).astype(np.int64) if types[name].elem_type == onnx.TensorProto.INT64 else x
        for name, x in found.items()
    }


@TARGETS
@pytest.mark.parametrize("fusion", ["none", "default"])
def test_models(target: str, fusion: str) -> None:
    for model in (convolutions(), diamond(), attention(), attention("batch", "length")):
        _is_right(model, _fed(model, batch=3, length=11), target, fusion=fusion)


@TARGETS
@pytest.mark.parametrize("seed", range(4))
def test_random_models(target: str, seed: int) -> None:
    steps = [tuple(step) for step in np.random.default_rng(seed).integers(0, 1000, (14, 3)).tolist()]
    _is_right(RandomModel(seed).build(steps), _floats(INPUTS), target)


@TARGETS
@pytest.mark.parametrize("way", WAYS)
def test_what_the_host_holds(target: str, way: str) -> None:
    _is_right(*way_model(way), target)


@TARGETS
@pytest.mark.parametrize("op_type", ["LSTM", "GRU"])
def test_loops(target: str, op_type: str) -> None:
    _is_right(*layer(op_type, 5, 3, "bidirectional", lengths="fed", initial=True), target)


def test_scratch_and_two_threads() -> None:
    model = convolutions()
    _is_right(model, _fed(model), "cpu", fusion="default", threads=2)
