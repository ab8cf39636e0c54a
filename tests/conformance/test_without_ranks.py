"""ONNX's node tests with inputs of unknown rank: nothing is native then, so that every operator runs on the host, in
either package.

one node, ranks not declared ──> !flow.host values ──> onnxruntime, or onnx.reference where that is not installed
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import onnx
import pytest

from fuseline.errors import FuselineError
from fuseline.interop import onnx_host
from tests.conformance.conformance_gaps import expected_kind
from tests.conformance.node_cases import NodeCase, Target, compare, interpreted, node_cases, on_the_cpu

SHARES, SAMPLED = 8, 61
PACKAGES = ("onnxruntime", "onnx.reference")


@pytest.fixture(params=PACKAGES)
def package(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Which package runs host operators; operators that onnxruntime does not take run in the other one anyway."""
    if request.param == "onnx.reference":
        monkeypatch.setattr(onnx_host, "why_numpy", lambda node: "asked for")  # pyright: ignore[reportUnknownLambdaType]
    onnx_host.forget()
    yield request.param
    onnx_host.forget()


def without_ranks(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy whose inputs and outputs declare element types only."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    for value in [*out.graph.input, *out.graph.output]:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    del out.graph.value_info[:]
    return out


def _in_halves(case: NodeCase) -> NodeCase:
    """Tests of several nodes on halves expect every step rounded as onnx.reference rounds it; steps that are more exact
    are as right."""
    halves = any(getattr(value, "dtype", None) == np.float16 for value in case.outputs)
    return replace(case, rtol=max(case.rtol, 4e-3), atol=1e-3) if halves and len(case.model.graph.node) > 1 else case


def _problem(case: NodeCase, target: Target) -> str | None:
    try:
        runs, hosts = target(without_ranks(case.model), case.inputs)
        for found in runs:
            compare(found, _in_halves(case))
    except (AssertionError, FuselineError) as error:
        return f"{case.name}: {type(error).__name__} {' '.join(str(error).split())[:300]}"
    ranked = all(not value.type.HasField("tensor_type") for value in case.model.graph.input)
    return None if hosts or ranked or not case.inputs else f"{case.name}: nothing ran on the host"


def _check(names: Sequence[str], target: Target) -> None:
    right = [name for name in names if expected_kind(name) != "wrong"]
    problems = [problem for name in right if (problem := _problem(node_cases()[name], target)) is not None]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("target", [interpreted, on_the_cpu])
def test_a_sample(target: Target, package: str) -> None:
    _check(sorted(node_cases())[PACKAGES.index(package) :: SAMPLED], target)


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("target", [interpreted, on_the_cpu])
def test_all(target: Target, share: int, package: str) -> None:
    _check(sorted(node_cases())[share::SHARES], target)
