"""Convolutions over bands of rows: random pairs against onnxruntime and the interpreter, and what stays apart."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.compiled_model import CompiledModel
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.text import parse_module
from fuseline.passes.dispatch.form_dispatch_regions import FormDispatchRegionsPass
from fuseline.passes.dispatch.fuse_row_bands import FuseRowBandsPass
from fuseline.passes.dispatch.live_results import LiveResults
from fuseline.passes.fusion.plan import plan_text
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.proved import ProvedProgram

CHEAP = "[costs]\nmemory_bytes_per_ns = 0.001\nstored_bytes_per_ns = 0.001\npacked_bytes = 1\n"
"""A machine to which what is not stored is worth any arithmetic, and that packs next to nothing."""

OFF = {"fuse-row-bands": {"enabled": False}}
ROWS_FIRST = "y = Transpose<perm = [0, 2, 3, 1]>(c)"
"""An end whose rows are the slowest dimension of the result, so that some of them lie in one piece."""

PASS = "fuse-row-bands"
FILECHECK = Path(__file__).parents[3] / "filecheck/dispatch/fuse_row_bands.mlir"
ROWS = (36, 40, 45, 48, 60)


def _conv(name: str, x: str, y: str, **attributes: object) -> str:
    text = ", ".join(f"{key} = {value}" for key, value in attributes.items())
    return f"{y} = Conv<{text}>({x}, {name}w, {name}b)"


def _weights(**shapes: tuple[int, ...]) -> dict[str, NDArray[np.float32]]:
    found = {f"{name}w": RNG.normal(size=shape) / np.sqrt(np.prod(shape[1:])) for name, shape in shapes.items()}
    found |= {f"{name}b": RNG.normal(size=shape[0]) for name, shape in shapes.items()}
    return {name: array.astype(np.float32) for name, array in found.items()}


def _pair(
    sizes: tuple[int, ...], first: tuple[int, ...], second: tuple[int, ...], after: str = "y = Relu(c)", **given: Any
) -> onnx.ModelProto:
    """An image of `sizes` through filters of two shapes; the second with `given` attributes."""
    windows = [[size // 2 for size in shape[2:]] * 2 for shape in (first, second)]
    lines = [_conv("p", "x", "a", pads=windows[0]), "l = LeakyRelu<alpha = 0.2>(a)"]
    lines += [_conv("q", "l", "c", **{"pads": windows[1], **given}), after]
    shape = ", ".join(map(str, sizes))
    return onnx_model(f"(float[{shape}] x) => (y) {{ {' '.join(lines)} }}", _weights(p=first, q=second), opset=17)


def _target(tmp_path: Path, text: str = CHEAP) -> str:
    (tmp_path / "machine.toml").write_text(text)
    return f"cpu:{tmp_path}/machine.toml"


def _is_banded(model: CompiledModel) -> bool:
    fused = [one for one in model.record.decisions if one.rule == PASS and one.verdict != "missed"]
    assert all((one.verdict, one.code) == ("fused", "fused") for one in fused)
    return bool(fused) and any("bands of" in note for note in model.record.notes)


def _require_equal(
    model: onnx.ModelProto, target: str, threads: int, feeds: Mapping[str, NDArray[Any]]
) -> CompiledModel:
    """What bands give is what the interpreter and onnxruntime give; both dispatches are one."""
    banded = fuseline.compile(model, target=target, threads=threads)
    apart = fuseline.compile(model, target=target, threads=threads, pass_options=OFF)
    assert _is_banded(banded) and not _is_banded(apart)
    assert banded.stats["dispatches"] == apart.stats["dispatches"] - 1
    assert banded.stats["fallbacks"] <= apart.stats["fallbacks"]
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found, expected = banded.run(feeds)["y"], np.asarray(session.run(None, dict(feeds))[0])
    tolerance = 1e-4 * max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)
    interpreted = fuseline.compile(model, target="interpreter").run(feeds)["y"]
    np.testing.assert_allclose(found, interpreted, rtol=0, atol=tolerance)
    return banded


def _feeds(*sizes: int) -> dict[str, NDArray[np.float32]]:
    return {"x": RNG.normal(size=sizes).astype(np.float32)}


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("window", [2, 3, 5])
def test_windows_of_any_size(threads: int, window: int, tmp_path: Path):
    rows, columns = int(RNG.choice(ROWS)), int(RNG.integers(17, 40))
    before, between, behind = (int(n) for n in RNG.integers(4, 33, 3))
    pads = [window // 2, (window - 1) // 2, (window - 1) // 2, window // 2]
    size = (1, before, rows, columns)
    model = _pair(size, (between, before, 3, 3), (behind, between, window, window), pads=pads)
    _require_equal(model, _target(tmp_path), threads, _feeds(*size))


@pytest.mark.parametrize(
    "given",
    [
        {"strides": [2, 2]},
        {"dilations": [2, 2], "pads": [2, 2, 2, 2]},
        {"pads": [0, 0, 0, 0], "kernel": (5, 3)},
        {"pads": [0, 1, 2, 1]},
        {"pads": [2, 0, 0, 2]},
        {"strides": [3, 1], "pads": [2, 1, 2, 1]},
        {"pads": [4, 1, 4, 1]},
    ],
)
def test_rows_that_are_read_in_other_ways(given: dict[str, Any], tmp_path: Path):
    size = (1, 9, 36, int(RNG.integers(17, 40)))
    kernel = given.pop("kernel", (3, 3))
    model = _pair(size, (12, 9, 3, 3), (5, 12, *kernel), **given)
    _require_equal(model, _target(tmp_path), int(RNG.integers(1, 4)), _feeds(*size))


@pytest.mark.parametrize(
    ("size", "first", "second", "given"),
    [
        ((3, 6, 24, 19), (10, 6, 3, 3), (7, 10, 3, 3), {}),  # a batch
        ((1, 6, 48), (18, 6, 3), (18, 18, 5), {}),  # a signal
        ((1, 3, 18, 7, 9), (20, 3, 3, 3, 3), (4, 20, 3, 3, 3), {}),  # a volume
        ((1, 8, 24, 19), (24, 8, 1, 1), (7, 24, 3, 3), {}),  # a product of channels makes the image
    ],
)
def test_images_of_other_kinds(size: tuple[int, ...], first: Any, second: Any, given: dict[str, Any], tmp_path: Path):
    _require_equal(_pair(size, first, second, **given), _target(tmp_path), 2, _feeds(*size))


@pytest.mark.parametrize(
    "after", ["y = Transpose<perm = [0, 2, 3, 1]>(c)", "y = Sigmoid(c)", "e = Mul(c, c)  y = Sqrt(e)"]
)
def test_what_follows(after: str, tmp_path: Path):
    size = (1, 11, int(RNG.choice(ROWS)), int(RNG.integers(17, 40)))
    model = _pair(size, (16, 11, 3, 3), (16, 16, 3, 3), after)
    _require_equal(model, _target(tmp_path), 2, _feeds(*size))


@pytest.mark.parametrize("given", [{}, {"strides": [2, 2]}, {"pads": [0, 2, 2, 0]}, {"pads": [2, 1, 2, 1]}])
@pytest.mark.parametrize("rows", [41, 59, 71])
def test_rows_that_no_number_of_bands_divides(rows: int, given: dict[str, Any], tmp_path: Path):
    """Some bands are a row higher than the others."""
    rows = 2 * rows if "strides" in given else rows
    size = (1, 11, rows, int(RNG.integers(17, 40)))
    model = _pair(size, (16, 11, 3, 3), (5, 16, 3, 3), ROWS_FIRST, **given)
    threads = int(RNG.integers(1, 4))
    banded = _require_equal(model, _target(tmp_path), threads, _feeds(*size))
    assert any(" or " in note for note in banded.record.notes)


def test_a_batch_has_bands_of_one_height_only(tmp_path: Path):
    """Some rows of all its images do not lie in one piece."""
    size = (3, 6, 41, 19)
    model = _pair(size, (10, 6, 3, 3), (7, 10, 3, 3), ROWS_FIRST)
    banded = fuseline.compile(model, target=_target(tmp_path), threads=2)
    assert not any(" or " in note for note in banded.record.notes)
    feeds = _feeds(*size)
    expected = fuseline.compile(model, target="interpreter").run(feeds)["y"]
    np.testing.assert_allclose(banded.run(feeds)["y"], expected, rtol=0, atol=1e-4)


def test_a_residual_behind_the_reader(tmp_path: Path):
    size = (1, 16, 36, 23)
    model = _pair(size, (32, 16, 3, 3), (16, 32, 3, 3), "y = Add(c, x)")
    _require_equal(model, _target(tmp_path), 2, _feeds(*size))


@pytest.mark.parametrize("rows", [480, 467])
@pytest.mark.parametrize("given", [{}, {"strides": [2, 2]}, {"pads": [0, 2, 2, 0]}])
def test_no_band_reads_or_writes_outside_of_its_memory(given: dict[str, Any], rows: int):
    size = (1, 16, rows, 70)
    model = _pair(size, (32, 16, 3, 3), (4, 32, 3, 3), ROWS_FIRST, **given)
    assert _is_banded(fuseline.compile(model, target="cpu", threads=1))
    feeds = _feeds(*size)
    (found,) = ProvedProgram(model).run(feeds)
    expected = fuseline.compile(model, target="interpreter").run(feeds)["y"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


def test_rows_outside_of_the_image_are_zero_whatever_the_maker_makes_of_nothing(tmp_path: Path):
    """The bias and exp make something of rows that are not there."""
    size = (1, 4, 24, 21)
    text = " ".join([_conv("p", "x", "a", pads=[1] * 4), "l = Exp(a)", _conv("q", "l", "y", pads=[2] * 4)])
    model = onnx_model(f"(float[1, 4, 24, 21] x) => (y) {{ {text} }}", _weights(p=(9, 4, 3, 3), q=(3, 9, 5, 5)))
    _require_equal(model, _target(tmp_path), 2, _feeds(*size))


def test_a_run_needs_less_memory(tmp_path: Path):
    model = _pair((1, 16, 240, 160), (64, 16, 3, 3), (4, 64, 3, 3))
    sizes = [
        fuseline.compile(model, target=_target(tmp_path), threads=2, pass_options=given).stats["transient_bytes"]
        for given in ({}, OFF)
    ]
    assert sizes[0] < 0.6 * sizes[1]


def test_a_quantised_pair_is_the_same_to_the_bit(tmp_path: Path):
    lines = ["xq = QuantizeLinear(x, s, z)  xd = DequantizeLinear(xq, s, z)"]
    for before, name, after in (("x", "p", "a"), ("a", "q", "b"), ("b", "r", "c")):
        lines += [f"{name}d = DequantizeLinear({name}, v, o)  {after}_ = Conv<pads=[1,1,1,1]>({before}d, {name}d)"]
        lines += [f"{after}r = Relu({after}_)  {after}q = QuantizeLinear({after}r, s, z)"]
        lines += [f"{after}d = DequantizeLinear({after}q, s, z)"]
    lines += ["y = Identity(cd)"]
    weights = {name: RNG.integers(-9, 10, shape).astype(np.int8) for name, shape in _QUANTISED.items()}
    scalars = {"s": np.float32(0.125), "v": np.float32(0.0078125), "z": np.int8(RNG.integers(-9, 9)), "o": np.int8(0)}
    model = onnx_model(f"(float[1, 16, 36, 21] x) => (y) {{ {' '.join(lines)} }}", {**weights, **scalars}, opset=17)
    feeds = {"x": (RNG.integers(-128, 128, (1, 16, 36, 21)) / 8).astype(np.float32)}
    wide = {"narrow-results": {"enabled": False}}
    banded = fuseline.compile(model, target=_target(tmp_path), threads=2, pass_options=wide)
    assert _is_banded(banded)
    expected = fuseline.compile(model, target="interpreter").run(feeds)["y"]
    np.testing.assert_array_equal(banded.run(feeds)["y"], expected)


_QUANTISED = {"p": (32, 16, 3, 3), "q": (40, 32, 3, 3), "r": (4, 40, 3, 3)}


# what stays apart -----------------------------------------------------------------------------------------------------


def _large() -> onnx.ModelProto:
    return _pair((1, 16, 120, 60), (32, 16, 3, 3), (4, 32, 3, 3))


def _notes(model: CompiledModel) -> str:
    assert not _is_banded(model) and model.stats["dispatches"] == 2
    return " ".join(model.record.notes)


def test_bands_that_fit_no_scratch(tmp_path: Path):
    target = _target(tmp_path, "band_bytes_limit = 20000\n" + CHEAP)
    assert "(scratch: no band of it keeps 20,000 bytes or less)" in _notes(fuseline.compile(_large(), target=target))


def test_bands_that_take_too_long(tmp_path: Path):
    """Where bands are low, most rows are computed twice."""
    target = _target(tmp_path, "band_bytes_limit = 40000\n")
    model = fuseline.compile(_large(), target=target, threads=2)
    assert "stored as a whole (too-dear: " in _notes(model)
    (edge,) = [one for one in model.record.decisions if one.rule == "fuse-row-bands"]
    assert (edge.verdict, edge.code) == ("missed", "unprofitable") and "two-roots" in edge.detail
    assert edge.numbers["predicted_loss_ns"] > 0


def test_images_that_are_small_beside_what_threads_pack(tmp_path: Path):
    target = _target(tmp_path, CHEAP.replace("packed_bytes = 1", "packed_bytes = 500000"))
    model = fuseline.compile(_large(), target=target, threads=2)
    assert "(not-at-peak: " in _notes(model)
    (edge,) = [one for one in model.record.decisions if one.rule == "fuse-row-bands"]
    assert edge.code == "unprofitable" and "as much memory without it" in edge.detail


def test_bands_of_many_threads(tmp_path: Path):
    """All of them are as much as the image."""
    notes = _notes(fuseline.compile(_large(), target=_target(tmp_path), threads=60))
    assert "(scratch: no band of it keeps 7,680 bytes or less)" in notes


def test_a_target_of_one_root(tmp_path: Path):
    assert not _notes(fuseline.compile(_large(), target=_target(tmp_path, "roots_limit = 1\n" + CHEAP)))


def test_a_target_that_refuses_it(tmp_path: Path):
    target = _target(tmp_path, CHEAP + "[limits]\nloops = 6\n")
    assert "(target: loops-limit: 7 loops" in _notes(fuseline.compile(_large(), target=target))


@pytest.mark.parametrize("given", [{"fusion": "none"}, {"without_rules": ["root-chain"]}, {"pass_options": OFF}])
def test_what_was_asked_to_stay_apart(given: dict[str, Any], tmp_path: Path):
    model = fuseline.compile(_large(), target=_target(tmp_path), **given)
    assert not _is_banded(model) and not any("bands" in note for note in model.record.notes)


def test_plans(tmp_path: Path):
    """What one forbids stays apart; one that was emitted gives the same dispatches."""
    model, target, plan = _large(), _target(tmp_path), tmp_path / "plan.toml"
    free = fuseline.compile(model, target=target)
    (edge,) = [one for one in free.record.decisions if one.rule == PASS]
    plan.write_text(f'version = 1\nforbid = [["{edge.producer}", "{edge.consumer}"]]\n')
    assert not _is_banded(fuseline.compile(model, target=target, plan=plan))
    plan.write_text(plan_text(free.record))
    assert _is_banded(fuseline.compile(model, target=target, plan=plan))


RULE = """
from fuseline.analysis.structured import Kind
from fuseline.passes.fusion.decision import Forbid, NotApplicable
from fuseline.passes.fusion.rule import FusionRule


class OneWindow(FusionRule):
    name = "one-window"

    def matches(self, merge, graph):
        windows = [node for node in merge.members if node.kind is Kind.CONVOLUTION]
        return Forbid("one-window", "one at a time", merge.consumer.root.name) if len(windows) > 1 else NotApplicable()


EXPORT = OneWindow
"""


def test_a_rule_that_forbids_it(tmp_path: Path):
    (tmp_path / "one_window.py").write_text(RULE)
    rules = [tmp_path / "one_window.py"]
    assert not _notes(fuseline.compile(_large(), target=_target(tmp_path), rules=rules))


def _after_forming(**given: Any) -> CompilerContext:
    """The pass on the first case of its FileCheck test."""
    ctx = new_context()
    module = parse_module(FILECHECK.read_text(encoding="utf-8").split("// -----")[0], ctx)
    FormDispatchRegionsPass().apply(ctx, module)
    FuseRowBandsPass(**given).apply(ctx, module)
    return ctx


def test_dispatches_whose_code_came_out_too_long():
    """They are not put together again."""
    free = _after_forming().records
    (edge,) = [one for one in free.decisions if one.rule == PASS]
    assert free.notes and edge.numbers["recompute"] == 1
    for name in (edge.producer, edge.consumer):
        found = _after_forming(code_limits={name: 100}).records
        assert not found.notes and not any(one.rule == PASS for one in found.decisions)


def test_what_does_not_live_where_most_memory_is_in_use(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(LiveResults, "peak", lambda _: (1 << 30, set()))
    assert not _after_forming().records.notes


@pytest.mark.parametrize("sizes", ["1, 4, h, 40", "n, 4, 40, 40"])
def test_sizes_that_nobody_knows(sizes: str, tmp_path: Path):
    lines = [_conv("p", "x", "a", pads=[1] * 4), _conv("q", "a", "y", pads=[1] * 4)]
    weights = _weights(p=(8, 4, 3, 3), q=(3, 8, 3, 3))
    model = onnx_model(f"(float[{sizes}] x) => (y) {{ {' '.join(lines)} }}", weights)
    assert not _is_banded(fuseline.compile(model, target=_target(tmp_path)))


def test_an_image_that_others_read(tmp_path: Path):
    lines = [_conv("p", "x", "a", pads=[1] * 4), _conv("q", "a", "c", pads=[1] * 4), "y = Add(a, c)"]
    weights = _weights(p=(8, 4, 3, 3), q=(8, 8, 3, 3))
    model = onnx_model(f"(float[1, 4, 40, 40] x) => (y) {{ {' '.join(lines)} }}", weights)
    assert not _is_banded(fuseline.compile(model, target=_target(tmp_path)))


def test_of_three_in_a_row_two_are_one(tmp_path: Path):
    lines = [_conv("p", "x", "a", pads=[1] * 4), _conv("q", "a", "c", pads=[1] * 4), _conv("r", "c", "y", pads=[1] * 4)]
    weights = _weights(p=(24, 4, 3, 3), q=(24, 24, 3, 3), r=(3, 24, 3, 3))
    model = onnx_model(f"(float[1, 4, 36, 40] x) => (y) {{ {' '.join(lines)} }}", weights)
    banded = fuseline.compile(model, target=_target(tmp_path), threads=1)
    assert _is_banded(banded) and banded.stats["dispatches"] == 2
    feeds = _feeds(1, 4, 36, 40)
    expected = fuseline.compile(model, target="interpreter").run(feeds)["y"]
    np.testing.assert_allclose(banded.run(feeds)["y"], expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("rows", [36, 48, 60])
def test_a_pair_that_reads_what_another_pair_makes(rows: int, tmp_path: Path):
    names = ["x", "p", "q", "r", "y"]
    lines = [f"{_conv(f'w{i}', names[i], f'c{i}', pads=[1] * 4)} {names[i + 1]} = Tanh(c{i})" for i in range(4)]
    weights = _weights(**{f"w{i}": (24, 24 if i else 4, 3, 3) for i in range(4)})
    model = onnx_model(f"(float[1, 4, {rows}, 40] x) => (y) {{ {' '.join(lines)} }}", weights)
    banded = fuseline.compile(model, target=_target(tmp_path), threads=1)
    assert _is_banded(banded) and banded.stats["dispatches"] == 2
    feeds = _feeds(1, 4, rows, 40)
    expected = fuseline.compile(model, target="interpreter", fusion="none").run(feeds)["y"]
    np.testing.assert_allclose(banded.run(feeds)["y"], expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("fusion", ["none", "default"])
@pytest.mark.parametrize("channels", [1, 5])
@pytest.mark.parametrize(
    ("filter_of", "computed"),
    [
        ("float[O, 8, 3, 1] w", "f = Exp(w)"),
        ("float[O, 8, 3, 1] w", "f = Softmax<axis = 0>(w)"),
        ("float[8, O, 1, 3] w", "f = Transpose<perm = [1, 0, 3, 2]>(w)"),
        ("float[O, 6] w, float[6, 24] v", "m = MatMul(w, v) f = Reshape(m, t)"),
        ("float[8, O, 3, 1] w", ""),
    ],
    ids=["elementwise", "softmax", "transposed", "product", "turned for a transposed convolution"],
)
def test_a_filter_that_is_computed_is_no_image(
    filter_of: str, computed: str, channels: int, fusion: str, tmp_path: Path
):
    convolved = f"{computed} y = Conv<pads = [1, 0, 1, 0]>(x, f)" if computed else ""
    convolved = convolved or "y = ConvTranspose<pads = [1, 0, 1, 0]>(x, w)"
    text = f"(float[2, 8, 48, 20] x, {filter_of.replace('O', str(channels))}) => (y) {{ {convolved} }}"
    constants = {"t": np.array([channels, 8, 3, 1])} if "Reshape" in computed else {}
    model = onnx_model(text, constants, opset=17)
    feeds = {
        value.name: RNG.normal(size=[one.dim_value for one in value.type.tensor_type.shape.dim]).astype(np.float32)
        for value in model.graph.input
    }
    compiled = fuseline.compile(model, target=_target(tmp_path), threads=2, fusion=fusion)
    assert not _is_banded(compiled)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = np.asarray(session.run(None, feeds)[0])
    np.testing.assert_allclose(compiled.run(feeds)["y"], expected, atol=1e-4 * float(np.abs(expected).max()))
