"""Chains of products longer than a dispatch takes: whatever lies between them and in whichever type, outputs are those
of the interpreter, on one thread and two, in one round and in several."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.passes.fusion.chain_cuts import CHAIN_CUTS
from tests.draws import RNG
from tests.graphs.onnx_text import Array, onnx_model

STEPS = (
    "{x} = MatMul({before}, {w})",
    "{x}_0 = MatMul({before}, {w})  {x} = Relu({x}_0)",
    "{x}_0 = MatMul({before}, {w})  {x}_1 = Softmax<axis=-1>({x}_0)  {x} = Add({x}_1, {x}_0)",
    "{x}_0 = MatMul({before}, {w})  {x}_1 = ReduceMean<axes=[-1]>({x}_0)  {x} = Sub({x}_0, {x}_1)",
)
"""What a chain is made of: products, and what follows them."""


def _chain(widths: list[int], rows: int, element: str) -> onnx.ModelProto:
    dtype = {"float": np.float32, "float16": np.float16}[element]
    weights: dict[str, Array] = {}
    text, before = "", "x0"
    for number, (wide, out) in enumerate(pairwise(widths), 1):
        weights[f"w{number}"] = (RNG.standard_normal((wide, out)) / wide**0.5).astype(dtype)
        step = STEPS[int(RNG.integers(len(STEPS)))].format(x=f"x{number}", before=before, w=f"w{number}")
        text, before = f"{text}  {step}", f"x{number}"
    return onnx_model(
        f"({element}[{rows}, {widths[0]}] x0) => ({element}[{rows}, {widths[-1]}] {before}) {{ {text} }}",
        weights,
        opset=13,
    )


def _drawn(element: str) -> onnx.ModelProto:
    """Odd sizes; often wide between two products and narrow behind them, so that these merge first."""
    widths = [int(n) for n in RNG.choice([7, 16, 19], int(RNG.integers(6, 14)))]
    widths[1::2] = [width + int(RNG.integers(0, 6)) for width in widths[1::2]]
    return _chain(widths, int(RNG.choice([33, 130, 517])), element)


def _target(tmp_path: Path, limit: int) -> str:
    path = tmp_path / "few_roots.toml"
    path.write_text(f'name = "few-roots"\nroots_limit = {limit}\n')
    return f"cpu:{path}"


def _agree(program: fuseline.CompiledModel, feeds: dict[str, Array], wanted: dict[str, Array]) -> None:
    for name, values in program.run(feeds).items():
        exact, loose = wanted[name].astype(np.float64), 1e-4 if values.dtype == np.float32 else 2e-2
        np.testing.assert_allclose(values.astype(np.float64), exact, rtol=0, atol=loose * np.abs(exact).max())


@pytest.mark.parametrize("element", ["float", "float16"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("_", range(2))
def test_outputs_and_counts_of_chains(element: str, threads: int, _: int, tmp_path: Path):
    model, target = _drawn(element), _target(tmp_path, int(RNG.integers(2, 6)))
    reference = fuseline.compile(model, target="interpreter", fusion="none", cache=False)
    shape = [int(size) for size in reference.inputs[0].shape if isinstance(size, int)]
    feeds = {"x0": RNG.standard_normal(shape).astype(reference.inputs[0].dtype)}
    wanted = reference.run(feeds)
    cut = fuseline.compile(model, target=target, threads=threads, cache=False)
    without = fuseline.compile(model, target=target, threads=threads, without_rules=[CHAIN_CUTS], cache=False)
    _agree(cut, feeds, wanted)
    assert len(cut.record.groups) <= len(without.record.groups)


@pytest.mark.parametrize("first", ["rules=elementwise-cluster", f"without={CHAIN_CUTS}", "level=none"])
def test_rounds_of_chains_never_come_to_more(first: str, tmp_path: Path):
    model, target = _drawn("float"), _target(tmp_path, 3)
    form = "form-dispatch-regions"
    passes = ["cleanup", "layout", "padding", f"{form}{{{first}}}", form, form]
    counts = [
        len(fuseline.compile(model, target=target, passes=",".join(passes[:count]), cache=False).record.groups)
        for count in (4, 5, 6)
    ]
    assert counts[0] >= counts[1] >= counts[2]
    once = fuseline.compile(model, target=target, passes=",".join(passes[:3] + passes[-1:]), cache=False)
    assert first != "level=none" or counts[1] == len(once.record.groups)
