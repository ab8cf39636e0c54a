"""Inverted bottlenecks over bands of rows: random ones against onnxruntime and the interpreter; what stays apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.compiled_model import CompiledModel
from fuseline.passes.fusion.decision import WHY_NOT_CODES
from fuseline.report.explain import why_not_fused
from fuseline.report.records import Decision
from fuseline.targets.cpu.isa.detection import cpu_flags, machine
from tests.draws import RNG
from tests.graphs.onnx_text import element_of, onnx_model
from tests.proved import ProvedProgram

SMALL_IMAGES = "image_bytes_limit = 1000\n"
"""No block of channels of an image is small enough."""

CHEAP = f"{SMALL_IMAGES}[costs]\nmemory_bytes_per_ns = 0.001\nstored_bytes_per_ns = 0.001\n"
ROWS_FIRST = "e = Conv(d, rw, rb)  y = Transpose<perm = [0, 2, 3, 1]>(e)"
"""An end whose rows are the slowest dimension of the result, so that some of them lie in one piece."""

OFF = {"fuse-row-bands": {"enabled": False}}


def _chain(
    rows: int,
    columns: int,
    channels: tuple[int, int, int],
    window: int = 3,
    expand: int = 1,
    end: str = "",
    dtype: Any = np.float32,
    **given: Any,
) -> onnx.ModelProto:
    """Convolution, Clip, depthwise convolution, Clip, product; without the product where it has no channels."""
    inputs, inner, outputs = channels
    shapes = {
        "p": (inner, inputs, expand, expand),
        "q": (inner, 1, window, window),
        "r": (max(outputs, 1), inner, 1, 1),
    }
    weights = {f"{n}w": RNG.normal(size=s) / np.sqrt(np.prod(s[1:])) for n, s in shapes.items()}
    weights |= {f"{n}b": RNG.normal(size=s[0]) for n, s in shapes.items()} | {"lo": np.zeros(()), "hi": np.ones(())}
    said = {"pads": [window // 2] * 4, "group": inner} | given
    lines = [
        f"a = Conv<pads = {[expand // 2] * 4}>(x, pw, pb)  b = Clip(a, lo, hi)",
        f"c = Conv<{', '.join(f'{key} = {value}' for key, value in said.items())}>(b, qw, qb)  d = Clip(c, lo, hi)",
        end or ("y = Conv(d, rw, rb)" if outputs else "y = Identity(d)"),
    ]
    text = f"({element_of(dtype)}[1, {inputs}, {rows}, {columns}] x) => (y) {{ {' '.join(lines)} }}"
    return onnx_model(
        text, {name: array.astype(dtype) for name, array in weights.items()}, opset=17 if dtype is np.float32 else 20
    )


def _target(tmp_path: Path, text: str = CHEAP, isa: str = "") -> str:
    (tmp_path / "machine.toml").write_text((f'isa = "{isa}"\n' if isa else "") + text)
    return f"cpu:{tmp_path}/machine.toml"


def _bands(model: CompiledModel) -> list[str]:
    return [note for note in model.record.notes if "bands of" in note]


def _feeds(model: onnx.ModelProto) -> dict[str, NDArray[np.float32]]:
    dims = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    return {"x": RNG.normal(size=dims).astype(np.float32)}


def _require_one(model: onnx.ModelProto, target: str, threads: int, **given: Any) -> CompiledModel:
    """It is one dispatch, and what it gives is what the interpreter and onnxruntime give."""
    banded = fuseline.compile(model, target=target, threads=threads, **given)
    assert _bands(banded) and banded.stats["dispatches"] == 1
    feeds = _feeds(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for expected in (session.run(None, feeds)[0], fuseline.compile(model, target="interpreter").run(feeds)["y"]):
        wanted = np.asarray(expected)
        tolerance = 1e-4 * max(1.0, float(np.abs(wanted).max()))
        np.testing.assert_allclose(banded.run(feeds)["y"], wanted, rtol=0, atol=tolerance)
    return banded


def _drawn() -> tuple[int, int, int]:
    return int(RNG.integers(3, 20)), int(RNG.integers(17, 70)), int(RNG.integers(3, 30))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("given", [
    {}, {"strides": [2, 2]}, {"pads": [0, 0, 0, 0]}, {"window": 5}, {"window": 5, "strides": [2, 2]},
    {"dilations": [2, 2], "pads": [2, 2, 2, 2]}, {"pads": [2, 1, 0, 1]}, {"expand": 3},
    {"window": 2, "pads": [1, 0, 0, 1]},
])  # fmt: skip
def test_windows(threads: int, given: dict[str, Any], tmp_path: Path):
    rows = int(RNG.choice([36, 48, 60])) + (2 if given.get("pads") == [0, 0, 0, 0] else 0)
    _require_one(_chain(rows, int(RNG.integers(17, 40)), _drawn(), **given), _target(tmp_path), threads)


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
@pytest.mark.parametrize("fusion", ["default", "aggressive"])
def test_instruction_sets_and_levels(isa: str, fusion: str, tmp_path: Path):
    if not set(machine(isa).needs) <= cpu_flags():
        pytest.skip("not on this machine")
    _require_one(_chain(48, 31, _drawn()), _target(tmp_path, isa=isa), 2, fusion=fusion)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("given", [
    {}, {"strides": [2, 2]}, {"pads": [0, 0, 0, 0]}, {"window": 5, "strides": [2, 2]}, {"expand": 3},
    {"dilations": [2, 2], "pads": [2, 2, 2, 2]}, {"pads": [2, 1, 0, 1]}, {"window": 2, "pads": [1, 0, 0, 1]},
])  # fmt: skip
def test_rows_that_no_number_of_bands_divides(threads: int, given: dict[str, Any], tmp_path: Path):
    """Some bands are a row higher than the others."""
    rows = int(RNG.choice([31, 37, 43, 53])) * (2 if "strides" in given else 1)
    rows += 2 if given.get("pads") == [0, 0, 0, 0] else 0
    model = _chain(rows, int(RNG.integers(17, 40)), _drawn(), end=ROWS_FIRST, **given)
    (note,) = _bands(_require_one(model, _target(tmp_path), threads))
    assert " or " in note


def test_rows_of_two_heights_with_a_residual(tmp_path: Path):
    end = "e = Conv(d, rw, rb)  f = Add(e, x)  y = Transpose<perm = [0, 2, 3, 1]>(f)"
    _require_one(_chain(47, 23, (8, 40, 8), end=end), _target(tmp_path), 2)


def test_a_window_alone(tmp_path: Path):
    inputs, inner, _ = _drawn()
    _require_one(_chain(48, 23, (inputs, inner, 0)), _target(tmp_path), 2)


def test_a_residual_behind_the_product(tmp_path: Path):
    end = "e = Conv(d, rw, rb)  y = Add(e, x)"
    _require_one(_chain(48, 23, (8, 40, 8), end=end), _target(tmp_path), 2)


def test_what_else_reads_the_window(tmp_path: Path):
    """Its result is stored, and the product stays apart."""
    end = "e = Conv(d, rw, rb)  f = ReduceMax<axes = [1, 2, 3], keepdims = 1>(d)  y = Mul(e, f)"
    model = _chain(48, 23, (8, 40, 12), end=end)
    found = fuseline.compile(model, target=_target(tmp_path), threads=2)
    feeds = _feeds(model)
    assert _bands(found)
    expected = fuseline.compile(model, target="interpreter").run(feeds)["y"]
    np.testing.assert_allclose(found.run(feeds)["y"], expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize("rows", [240, 227])
@pytest.mark.parametrize("given", [{}, {"strides": [2, 2]}])
def test_no_band_reads_or_writes_outside_of_its_memory(given: dict[str, Any], rows: int):
    model = _chain(rows, 180, (6, 40, 9), end=ROWS_FIRST, **given)
    assert _bands(fuseline.compile(model, target="cpu", threads=1))
    feeds = _feeds(model)
    (found,) = ProvedProgram(model).run(feeds)
    expected = fuseline.compile(model, target="interpreter").run(feeds)["y"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("given", [
    {}, {"strides": [2, 2]}, {"pads": [0, 0, 0, 0]}, {"window": 5}, {"expand": 3}, {"rows": 47, "end": ROWS_FIRST},
    {"end": "e = Conv(d, rw, rb)  f = Sigmoid(e)  y = Mul(e, f)"},
])  # fmt: skip
def test_halves(given: dict[str, Any], dtype: Any, threads: int, tmp_path: Path):
    """What is converted where it is read does not keep them apart; results are those of what is apart, but for the
    rounding where that filters in another way."""
    said: dict[str, Any] = {"rows": int(RNG.choice([36, 48, 60])), **given}
    said["rows"] += 2 if given.get("pads") == [0, 0, 0, 0] else 0
    columns, drawn = int(RNG.integers(17, 40)), _drawn()
    model = _chain(columns=columns, channels=drawn, dtype=dtype, **said)
    target = _target(tmp_path)
    banded, apart = (fuseline.compile(model, target=target, threads=threads, pass_options=o) for o in ({}, OFF))
    assert _bands(banded) and banded.stats["dispatches"] == 1 < apart.stats["dispatches"]
    feeds = {name: array.astype(dtype) for name, array in _feeds(model).items()}
    found, expected = (np.asarray(one.run(feeds)["y"], np.float32) for one in (banded, apart))
    rounding = float(ml_dtypes.finfo(dtype).eps) * float(np.abs(expected).max()) if "expand" in given else 0.0
    np.testing.assert_allclose(found, expected, rtol=0, atol=rounding)


# what stays apart -----------------------------------------------------------------------------------------------------


def _refusals(model: CompiledModel) -> list[Decision]:
    """What bands said of the two edges that they could have been on."""
    found = [one for one in model.record.decisions if one.rule == "fuse-row-bands"]
    assert not _bands(model) and len(found) == 2
    assert all(one.verdict == "missed" and one.code in WHY_NOT_CODES for one in found)
    return found


def test_rows_that_would_be_computed_too_often(tmp_path: Path):
    """Only low bands stay in the cache, which compute twice as many rows."""
    target = _target(tmp_path, f"{SMALL_IMAGES}[costs]\ncached_bytes = 140000\n")
    for one in _refusals(fuseline.compile(_chain(37, 60, (64, 64, 8)), target=target, threads=1)):
        assert one.code == "unprofitable" and "bands of" in one.detail
        assert one.numbers["predicted_loss_ns"] > 0 and one.numbers["recompute"] > 1.5
        assert one.numbers["bands"] > 1 and one.numbers["scratch_bytes"] > 0


@pytest.mark.parametrize(("share", "banded"), [(1.1, False), (0.9, True)])
def test_an_image_that_the_cache_has_room_for_is_stored(share: float, banded: bool, tmp_path: Path):
    """The image and what is handed on, together: to store and to load them there costs next to nothing."""
    rows, columns, inner = 2 * int(RNG.integers(36, 48)), int(RNG.integers(70, 90)), int(RNG.integers(36, 50))
    cached = int(share * 4 * 2 * rows * columns * inner)
    target = _target(tmp_path, f"{SMALL_IMAGES}[costs]\ncached_bytes = {cached}\n")
    found = fuseline.compile(_chain(rows, columns, (4, inner, 8)), target=target, threads=1)
    assert bool(_bands(found)) == banded
    if not banded:
        assert all(one.code == "unprofitable" and "must be saved" in one.detail for one in _refusals(found))


def test_bands_that_fit_no_cache(tmp_path: Path):
    """The decision says so, and what the rule said before."""
    target = _target(tmp_path, CHEAP + "cached_bytes = 4000\n")
    model = fuseline.compile(_chain(48, 60, (8, 64, 8)), target=target, threads=1)
    first, _ = _refusals(model)
    assert first.code == "scratch" and "no band of it keeps 2,500 bytes or less" in first.detail
    assert "(channel-window: scratch: " in first.detail
    assert any("no band of it keeps" in line for line in why_not_fused(model.record))


def test_an_edge_of_two_pairs_says_what_became_of_it(tmp_path: Path):
    """Two windows in a row, the second of one line: bands could begin at either, their edge is one of both pairs."""
    weights = {
        name: (RNG.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        for name, shape in {"p": (40, 8, 1, 1), "q": (40, 1, 3, 3), "s": (40, 1, 1, 3), "r": (9, 40, 1, 1)}.items()
    }
    body = (
        "a = Conv(x, p)  b = Relu(a)  c = Conv<pads = [1, 1, 1, 1], group = 40>(b, q)  d = Relu(c)"
        "  e = Conv<group = 40>(d, s)  f = Relu(e)  y = Conv(f, r)"
    )
    model = onnx_model(f"(float[1, 8, 48, 40] x) => (y) {{ {body} }}", weights, opset=17)
    banded = fuseline.compile(model, target=_target(tmp_path), threads=2)
    said = {one.consumer_nodes[0]: one.code for one in banded.record.decisions if one.rule == "fuse-row-bands"}
    assert banded.stats["dispatches"] == 2
    assert said == {"Conv_2": "fused", "Conv_4": "fused", "Conv_6": "region"}


@pytest.mark.parametrize("number", [0.0, 1.5])
def test_a_border_of_halves(number: float, tmp_path: Path):
    """Rows outside of the image are the number of the pad, whatever that is."""
    weights = {
        name: (RNG.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float16)
        for name, shape in {"p": (40, 8, 1, 1), "q": (40, 1, 3, 3), "r": (9, 40, 1, 1)}.items()
    }
    weights["n"] = np.array(number, np.float16)
    given = {**weights, "around": np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)}
    body = "a = Conv(x, p)  b = Relu(a)  c = Pad(b, around, n)  d = Conv<group = 40>(c, q)  y = Conv(d, r)"
    model = onnx_model(f"(float16[1, 8, 48, 40] x) => (y) {{ {body} }}", given, opset=20)
    banded, apart = (fuseline.compile(model, target=_target(tmp_path), pass_options=o) for o in ({}, OFF))
    feeds = {"x": RNG.normal(size=(1, 8, 48, 40)).astype(np.float16)}
    np.testing.assert_array_equal(banded.run(feeds)["y"], apart.run(feeds)["y"])


def test_a_target_that_refuses_bands(tmp_path: Path):
    target = _target(tmp_path, CHEAP + "[limits]\nloops = 5\n")
    found = _refusals(fuseline.compile(_chain(48, 40, (8, 40, 9)), target=target))
    assert all(one.code == "target" and "loops-limit" in one.detail for one in found)


def test_a_target_of_dispatches_of_one_part(tmp_path: Path):
    """It has no bands of two heights."""
    target = _target(tmp_path, "arms_limit = 1\n" + CHEAP)
    for rows, banded in ((47, False), (48, True)):
        found = fuseline.compile(_chain(rows, 40, (8, 40, 9), end=ROWS_FIRST), target=target, threads=2)
        assert all(" or " not in note for note in _bands(found)) and bool(_bands(found)) >= banded


@pytest.mark.parametrize("given", [{"fusion": "none"}, {"without_rules": ["channel-window"]}, {"pass_options": OFF}])
def test_what_was_asked_to_stay_apart(given: dict[str, Any], tmp_path: Path):
    assert not _bands(fuseline.compile(_chain(48, 40, (8, 40, 9)), target=_target(tmp_path), **given))


def test_a_plan_keeps_a_product_apart(tmp_path: Path):
    """The window and what makes its image still share bands."""
    model, target, plan = _chain(48, 40, (8, 40, 9)), _target(tmp_path), tmp_path / "plan.toml"
    free = fuseline.compile(model, target=target)
    edges = [one for one in free.record.decisions if one.rule == "fuse-row-bands"]
    last = next(one for one in edges if one.consumer.startswith("contraction"))
    plan.write_text(f'version = 1\nforbid = [["{last.producer}", "{last.consumer}"]]\n')
    found = fuseline.compile(model, target=target, plan=plan)
    assert (free.stats["dispatches"], found.stats["dispatches"]) == (1, 2) and _bands(found)
