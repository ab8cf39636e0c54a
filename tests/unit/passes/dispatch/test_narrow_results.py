"""Results stored in 8 bits rather than 16: quantised residual blocks, with and without, on any number of threads.

Scales are powers of two and sums of products fit the fraction of an f32, so that every way to compute is exact.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper, parser

import fuseline
from fuseline.compiled_model import CompiledModel
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.costs import MachineCosts
from fuseline.ir.target_description import TargetDescription
from fuseline.ir.text import parse_module
from fuseline.passes.dispatch.form_dispatch_regions import FormDispatchRegionsPass
from fuseline.passes.dispatch.live_results import LiveResults
from fuseline.passes.dispatch.narrow_results import NarrowResultsPass
from tests.draws import RNG

BLOCKS, CHANNELS, WIDE = 3, 16, 64
FILECHECK = Path(__file__).parents[3] / "filecheck/dispatch/narrow_results.mlir"
OFF = {"narrow-results": {"enabled": False}}
Feeds = Mapping[str, NDArray[Any]]


def _stored(name: str) -> list[str]:
    return [f"{name}q = QuantizeLinear({name}, s, z)", f"{name}d = DequantizeLinear({name}q, s, z)"]


def _block(i: int) -> list[str]:
    """A product, a window, a product, and the image that it began with."""
    lines = [f"a{i}_ = Conv(x{i}d, p{i}d)", f"a{i} = Relu(a{i}_)", *_stored(f"a{i}")]
    lines += [f"b{i}_ = Conv<pads=[1,1,1,1]>(a{i}d, w{i}d)", f"b{i} = Relu(b{i}_)", *_stored(f"b{i}")]
    lines += [f"c{i} = Conv(b{i}d, r{i}d)", *_stored(f"c{i}"), f"e{i} = Add(c{i}d, x{i}d)", f"x{i + 1} = Relu(e{i})"]
    return lines + _stored(f"x{i + 1}")


def _weights() -> dict[str, NDArray[np.int8]]:
    shapes = {"p0w": (WIDE, CHANNELS, 1, 1)}
    for i in range(BLOCKS):
        shapes |= {
            f"p{i}": (CHANNELS, WIDE, 1, 1),
            f"w{i}": (CHANNELS, CHANNELS, 3, 3),
            f"r{i}": (WIDE, CHANNELS, 1, 1),
        }
    return {name: RNG.integers(-100, 100, shape).astype(np.int8) for name, shape in shapes.items()}


def _model(height: str, width: str, more: str = "y = DequantizeLinear(xLASTq, s, z)") -> onnx.ModelProto:
    weights = _weights()
    lines = [f"{name}d = DequantizeLinear({name}, v, zero)" for name in weights]
    lines += ["u = Identity(image)", *_stored("u"), "x0 = Conv(ud, p0wd)", *_stored("x0")]
    lines += [line for i in range(BLOCKS) for line in _block(i)] + [more.replace("LAST", str(BLOCKS))]
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[1,{CHANNELS},{height},{width}] image) => (float[1,N,{height},{width}] y)
        <float s = {{0.125}}, float v = {{0.0078125}}, int8 z = {{{RNG.integers(-9, 9)}}}, int8 zero = {{0}}>
        {{ {chr(10).join(lines)} }}""")
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    return model


def _feeds() -> Feeds:
    sizes = [int(size) for size in RNG.integers(9, 24, 2)]
    return {"image": (RNG.integers(-128, 128, (1, CHANNELS, *sizes)) / 8).astype(np.float32)}


IN_16_BITS = "multiplies_bytes = false\n"
"""This machine, whose products read what is centred: where they read bytes, nothing is left to be narrowed."""

COSTS = f"{IN_16_BITS}[costs]\npacked_bytes = 1\n"
"""A machine that packs next to nothing: also what is small is worth storing in 8 bits."""


def _narrowed(model: CompiledModel) -> list[str]:
    return [note for note in model.record.notes if "stored in 8 bits" in note]


def _from_onnxruntime(model: onnx.ModelProto, feeds: Feeds) -> NDArray[Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, dict(feeds))[0])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_residual_blocks(threads: int, tmp_path: Path):
    (tmp_path / "machine.toml").write_text(COSTS)
    feeds, target = _feeds(), f"cpu:{tmp_path}/machine.toml"
    model = _model(*map(str, feeds["image"].shape[2:]))
    narrow = fuseline.compile(model, target=target, threads=threads)
    wide = fuseline.compile(model, target=target, threads=threads, pass_options=OFF)
    assert len(_narrowed(narrow)) == BLOCKS and not _narrowed(wide)
    assert narrow.stats["dispatches"] == wide.stats["dispatches"]
    found = narrow.run(feeds)["y"]
    np.testing.assert_array_equal(found, wide.run(feeds)["y"])
    np.testing.assert_array_equal(found, fuseline.compile(model, target="interpreter").run(feeds)["y"])
    np.testing.assert_array_equal(found, _from_onnxruntime(model, feeds))


@pytest.fixture
def plain(tmp_path: Path) -> str:
    """A target that costs what is assumed."""
    (tmp_path / "plain.toml").write_text(IN_16_BITS)
    return f"cpu:{tmp_path}/plain.toml"


def test_a_run_needs_less_memory(monkeypatch: pytest.MonkeyPatch, plain: str):
    monkeypatch.setattr(sys.modules[__name__], "WIDE", 256)
    model = _model("40", "42")
    narrow, wide = (fuseline.compile(model, target=plain, threads=1, pass_options=one) for one in ({}, OFF))
    assert _narrowed(narrow)
    assert narrow.stats["transient_bytes"] < wide.stats["transient_bytes"]


@pytest.mark.parametrize(("height", "width", "code"), [("H", "W", "symbolic"), ("11", "9", "too-small")])
def test_what_stays_in_16_bits(height: str, width: str, code: str, plain: str):
    model = fuseline.compile(_model(height, width), target=plain, threads=2)
    assert sum(f"stored in 16 bits ({code})" in note for note in model.record.notes) == BLOCKS
    assert not _narrowed(model)


def _notes(ctx: CompilerContext) -> list[str]:
    """Of the first case of the FileCheck test, whose one result can be narrowed."""
    first = FILECHECK.read_text(encoding="utf-8").split("// -----")[0]
    module = parse_module(first, ctx)
    for one in (FormDispatchRegionsPass(without=("root-chain",)), NarrowResultsPass()):
        one.apply(ctx, module)
    return ctx.records.notes


def test_packing_that_takes_longer_than_what_is_not_moved():
    ctx = new_context()
    ctx.target = TargetDescription("null", costs=MachineCosts(packing_ns=1.0))
    (note,) = _notes(ctx)
    assert "stored in 16 bits (too-dear): packing takes 160000 ns, what is not moved 20000 ns" in note


def test_what_does_not_live_where_most_memory_is_in_use(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(LiveResults, "peak", lambda _: (1 << 30, set()))
    (note,) = _notes(new_context())
    assert "stored in 16 bits (not-at-peak)" in note
