"""IR that is written after any stage compiles to the program that the model is: the same partition, plan, decisions,
dispatches, code and outputs. What only a model says (names, bounds of sizes, operators of the host) is kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline import api
from fuseline.pipeline import PASS_PHASES
from fuseline.targets.cpu import code_budget
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.small_models import SMALL_MODELS

pytestmark = pytest.mark.models

STAGES = ("input", *PASS_PHASES)
_OF_A_RUN = ("model", "phase_seconds")


def _said(program: Any) -> dict[str, Any]:
    """All that is on record of a program, its plan, inputs and outputs, but what differs between two compiles."""
    record = msgspec.to_builtins(program.record)
    numbers = {key: value for key, value in record.pop("statistics").items() if "seconds" not in key}
    plan = [line for line in program.plan.splitlines() if not line.startswith("model = ")]
    kept = {key: value for key, value in record.items() if key not in _OF_A_RUN}
    return {**kept, "statistics": numbers, "plan": plan, "inputs": program.inputs, "outputs": program.outputs}


def _some() -> list[str]:
    """Two of the stages whose text has no dispatches yet, and one of the others."""
    return [*RNG.choice(STAGES[:4], 2, replace=False), str(RNG.choice(STAGES[4:]))]


def _read_back(
    model: onnx.ModelProto, folder: Path, stages: Sequence[str], **options: Any
) -> Iterator[tuple[str, Any]]:
    """The program of the text of each stage."""
    for stage in stages:
        path = folder / f"{stage}.mlir"
        api.emit(model, stage, output=path, threads=2, **options)
        yield stage, fuseline.compile(path, threads=2, cache=False, target=options.get("target", "cpu"))


@pytest.mark.parametrize("name", SMALL_MODELS)
def test_a_stage_compiles_to_the_same_program(name: str, tmp_path: Path):
    model = SMALL_MODELS[name]()
    whole = _said(fuseline.compile(model, threads=2, cache=False, target="null"))
    for stage, program in _read_back(model, tmp_path, _some()[1:], target="null"):
        assert _said(program) == whole, stage


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL_MODELS)
def test_every_stage_compiles_to_the_same_program(name: str, tmp_path: Path):
    model = SMALL_MODELS[name]()
    whole = _said(fuseline.compile(model, threads=2, cache=False))
    for stage, program in _read_back(model, tmp_path, STAGES):
        assert _said(program) == whole, stage


@pytest.mark.parametrize("stage", ["fusion", "dispatch"])
def test_what_the_code_budget_splits_is_written_as_it_is_compiled(
    stage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(code_budget, "CODE_BUDGET", 300)
    monkeypatch.setenv("FUSELINE_NO_CACHE", "1")
    chain = "".join(f" a{i + 1} = {('Exp', 'Tanh', 'Erf')[i % 3]} (a{i})" for i in range(24))
    model = onnx_model(f"(float[9, 40] x) => (y) {{ a0 = MatMul (x, w){chain} y = Softmax (a24) }}", w=_drawn(40, 33))
    whole = fuseline.compile(model, threads=1, cache=False)
    assert len(whole.record.dispatches) > 1
    api.emit(model, stage, output=tmp_path / "x.mlir", threads=1)
    assert _said(fuseline.compile(tmp_path / "x.mlir", threads=1, cache=False)) == _said(whole)


def _drawn(*shape: int, dtype: Any = np.float32) -> NDArray[Any]:
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return RNG.integers(0, 2, shape).astype(bool)
    return RNG.integers(0, 200, shape).astype(kind) if kind.kind in "iu" else RNG.normal(size=shape).astype(kind)


def _sizes(count: int) -> list[int]:
    return [int(size) for size in RNG.integers(9, 17, count)]


def _named_by_numbers() -> tuple[onnx.ModelProto, dict[str, Any]]:
    m, k, n = _sizes(3)
    model = onnx_model(f"(float[{m}, {k}] x) => (float[{m}, {n}] y) {{ y = MatMul (x, w) }}", w=_drawn(k, n))
    node, weight, image = model.graph.node[0], model.graph.initializer[0], model.graph.input[0]
    node.name, weight.name, image.name = 'odd "n\\ame" é', "123", 'in put:"é"'
    node.input[:] = [image.name, weight.name]
    return model, {image.name: _drawn(m, k)}


def _halves() -> tuple[onnx.ModelProto, dict[str, Any]]:
    m, k, n = _sizes(3)
    text = f"(float16[{m}, {k}] x) => (float16[{m}, {n}] y) {{ z = MatMul (x, w) y = Relu (z) }}"
    return onnx_model(text, w=_drawn(k, n, dtype=np.float16)), {"x": _drawn(m, k, dtype=np.float16)}


def _unsigned() -> tuple[onnx.ModelProto, dict[str, Any]]:
    m, k, n = _sizes(3)
    text = (
        f"(uint8[{m}, {k}] x) => (uint8[{m}, {k}] y, int32[{m}, {n}] z) {{ y = Add (x, w) z = MatMulInteger (x, v) }}"
    )
    weights = {"w": _drawn(m, k, dtype=np.uint8), "v": _drawn(k, n, dtype=np.uint8)}
    return onnx_model(text, weights), {"x": _drawn(m, k, dtype=np.uint8)}


def _truth() -> tuple[onnx.ModelProto, dict[str, Any]]:
    m, n = _sizes(2)
    text = f"(bool[{m}, {4 * n}] x) => (bool[{m}, {4 * n}] y) {{ y = And (x, w) }}"
    return onnx_model(text, w=_drawn(m, 4 * n, dtype=bool)), {"x": _drawn(m, 4 * n, dtype=bool)}


def _symbolic() -> tuple[onnx.ModelProto, dict[str, Any]]:
    k, n, rows, more = _sizes(4)
    text = f"""(float[N, {k}] x, float[N, M] q) => (float[N, {n}] y, float[N, M] o) {{
        z = MatMul (x, w) y = Softmax <axis = -1> (z) s = ReduceSum <keepdims = 1> (x, a) o = Add (q, s) }}"""
    return onnx_model(text, w=_drawn(k, n), a=[1]), {"x": _drawn(rows, k), "q": _drawn(rows, more)}


def _either_repeats() -> tuple[onnx.ModelProto, dict[str, Any]]:
    rows, columns = _sizes(2)
    model = onnx_model("(float[a, b] x, float[c, b] y) => (float[A, B] z) { t = Add (x, y) z = Relu (t) }")
    return model, {"x": _drawn(rows, columns), "y": _drawn(int(RNG.choice([1, rows])), columns)}


def _learned_sizes() -> tuple[onnx.ModelProto, dict[str, Any]]:
    """Sizes that only a host operator tells; here they are 0."""
    n, rows = _sizes(2)
    text = f"""(float[N, {n}] x) => (float[K, {n}] y) {{
        i = NonZero (x) j = Transpose <perm = [1, 0]> (i) g = GatherND (x, j) c = Unsqueeze (g, a) y = Mul (c, w) }}"""
    return onnx_model(text, w=_drawn(1, n), a=[1]), {"x": np.zeros((rows, n), np.float32)}


def _branches() -> tuple[onnx.ModelProto, dict[str, Any]]:
    m, k, n = _sizes(3)
    text = f"""(bool c, float[{m}, {k}] x) => (float[{m}, {n}] y) {{
        y = If (c) <then_branch = t () => (float[{m}, {n}] a) {{ a = MatMul (x, w) }},
                    else_branch = e () => (float[{m}, {n}] b) {{ d = MatMul (x, v) b = Relu (d) }}> }}"""
    return onnx_model(text, w=_drawn(k, n), v=_drawn(k, n)), {"c": RNG.random() < 0.5, "x": _drawn(m, k)}


def _loop() -> tuple[onnx.ModelProto, dict[str, Any]]:
    n = _sizes(1)[0]
    text = f"""(int64 n, float[{n}] x) => (float[{n}] y) {{
        c = Constant <value = bool {{1}}> ()
        y = Loop (n, c, x) <body = b (int64 i, bool k, float[{n}] s) => (bool k2, float[{n}] t) {{
            k2 = Identity (k) m = Mul (s, w) t = Add (m, s) }}> }}"""
    return onnx_model(text, w=_drawn(n)), {"n": np.array(3), "x": _drawn(n)}


def _recurrent() -> tuple[onnx.ModelProto, dict[str, Any]]:
    steps, n, hidden = _sizes(3)
    text = f"""(float[{steps}, 1, {n}] x) => (float[{steps}, 1, 1, {hidden}] y) {{
        y = LSTM <hidden_size = {hidden}> (x, w, r) }}"""
    return onnx_model(text, w=_drawn(1, 4 * hidden, n), r=_drawn(1, 4 * hidden, hidden)), {"x": _drawn(steps, 1, n)}


def _splat() -> tuple[onnx.ModelProto, dict[str, Any]]:
    m, n = 10 * _sizes(1)[0], 100
    text = f"(float[{m}, {n}] x) => (float[{m}, {n}] y) {{ y = Mul (x, w) }}"
    return onnx_model(text, w=np.full((m, n), 0.1, np.float32)), {"x": _drawn(m, n)}


def _odd_numbers() -> tuple[onnx.ModelProto, dict[str, Any]]:
    text = "(float[4] x) => (float[4] y, float[4] z) { y = Mul (x, w) z = Clip (x, lo, hi) }"
    odd = np.array([np.nan, -0.0, np.inf, 1e-42], np.float32)
    return onnx_model(text, w=odd, lo=np.float32(-np.inf), hi=np.float32(1e-45)), {"x": _drawn(4)}


def _tied() -> tuple[onnx.ModelProto, dict[str, Any]]:
    rows, n, words = *_sizes(2), 100
    text = f"""(int64[{rows}] i, float[{rows}, {n}] x) => (float[{rows}, {n}] e, float[{rows}, {words}] y) {{
        e = Gather (w, i) t = Transpose <perm = [1, 0]> (w) h = Add (e, x) y = MatMul (h, t) }}"""
    return onnx_model(text, w=_drawn(words, n)), {"i": RNG.integers(0, words, rows), "x": _drawn(rows, n)}


def _quantised() -> tuple[onnx.ModelProto, dict[str, Any]]:
    m, k, n = _sizes(3)
    text = f"""(float[{m}, {k}] x) => (float[{m}, {n}] y) {{
        q = QuantizeLinear (x, s, z) a = DequantizeLinear (q, s, z) b = DequantizeLinear (w, s, z)
        c = MatMul (a, b) d = Relu (c) p = QuantizeLinear (d, s, z) y = DequantizeLinear (p, s, z) }}"""
    weight = RNG.integers(-128, 128, (k, n)).astype(np.int8)
    return onnx_model(text, w=weight, s=np.float32(0.05), z=np.int8(3)), {"x": _drawn(m, k)}


def _on_the_host() -> tuple[onnx.ModelProto, dict[str, Any]]:
    n = _sizes(1)[0]
    text = f"""(string[3] s, float[{n}, {n}] x) => (string[3] t, float[{n}, {n}] y) {{
        t = StringConcat (s, s) d = Det (x) e = Mul (x, d) y = Add (e, w) }}"""
    strings = np.array(["a", "é", ""], object)
    return onnx_model(text, w=_drawn(n, n), opset=20), {"s": strings, "x": _drawn(n, n)}


KINDS = (
    _named_by_numbers,
    _halves,
    _unsigned,
    _truth,
    _symbolic,
    _either_repeats,
    _learned_sizes,
    _branches,
    _loop,
    _recurrent,
    _splat,
    _odd_numbers,
    _tied,
    _quantised,
    _on_the_host,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__[1:])
def test_stages_of_a_kind_of_graph_compute_the_same(kind: Any, tmp_path: Path):
    model, feeds = kind()
    _check_stages(model, feeds, tmp_path, _some())


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__[1:])
def test_every_stage_of_a_kind_of_graph_computes_the_same(kind: Any, tmp_path: Path):
    model, feeds = kind()
    _check_stages(model, feeds, tmp_path, STAGES)


def _check_stages(model: onnx.ModelProto, feeds: Mapping[str, Any], folder: Path, stages: Sequence[str]) -> None:
    program = fuseline.compile(model, threads=2, cache=False)
    whole, expected = _said(program), program.run(feeds)
    for stage, again in _read_back(model, folder, stages):
        assert _said(again) == whole, stage
        _check_same(again.run(feeds), expected, stage)


def _check_same(found: Mapping[str, Any], expected: Mapping[str, Any], stage: str) -> None:
    assert list(found) == list(expected), stage
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=stage)


def test_bounds_of_sizes_are_kept(tmp_path: Path):
    model, feeds = _symbolic()
    for _, program in _read_back(model, tmp_path, _some(), shapes={"N": "2..40"}):
        program.run(feeds)
        with pytest.raises(fuseline.FuselineError, match="E0203"):
            program.run({name: np.resize(array, (41, array.shape[1])) for name, array in feeds.items()})


@pytest.mark.parametrize(
    "options", [{"fusion": "none"}, {"fusion": "aggressive"}, {"without_rules": ["elementwise-epilogue"]}]
)
def test_a_partition_that_was_asked_for_is_the_one_of_the_text(options: dict[str, Any], tmp_path: Path):
    model = SMALL_MODELS["mlp"]()
    whole = _said(fuseline.compile(model, threads=2, cache=False, **options))
    for stage in ("fusion", "dispatch", "dedup"):
        api.emit(model, stage, output=tmp_path / "x.mlir", threads=2, **options)
        again = _said(fuseline.compile(tmp_path / "x.mlir", threads=2, cache=False))
        assert again["groups"] == whole["groups"] and again["decisions"] == whole["decisions"], stage
        assert again["plan"] == whole["plan"] and again["dispatches"] == whole["dispatches"], stage
