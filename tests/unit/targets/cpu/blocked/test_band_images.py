"""Images that are made band by band: rows that a band has in common with the one before it, rows outside of the whole
image; random inverted bottlenecks against the interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.compiled_model import CompiledModel
from fuseline.targets.cpu.families.blocked import family
from fuseline.targets.cpu.families.blocked.band_image import BandImage, band_image
from fuseline.targets.cpu.families.blocked.plan import BlockedPlan
from fuseline.targets.cpu.families.blocked.tiles import Part
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.isa.detection import cpu_flags, machine
from tests.draws import RNG
from tests.graphs.onnx_text import element_of, onnx_model
from tests.proved import ProvedProgram

BANDS = "image_bytes_limit = 1000\n[costs]\nmemory_bytes_per_ns = 0.001\nstored_bytes_per_ns = 0.001\n"
"""No block of channels is small enough, and memory so slow that bands pay whatever they compute twice."""


def _chain(rows: int, dtype: Any = np.float32, expand: int = 1, window: int = 3, **given: Any) -> onnx.ModelProto:
    """Convolution, Clip, depthwise convolution, product, whose rows are the slowest dimension."""
    columns, inputs, inner, outputs = (int(RNG.integers(*ends)) for ends in ((9, 30), (3, 12), (17, 50), (3, 20)))
    shapes = {"pw": (inner, inputs, expand, expand), "qw": (inner, 1, window, window), "rw": (outputs, inner, 1, 1)}
    weights = {name: RNG.normal(size=shape) / np.sqrt(np.prod(shape[1:])) for name, shape in shapes.items()}
    weights |= {f"{name}b": RNG.normal(size=size) for name, size in (("p", inner), ("q", inner), ("r", outputs))}
    weights |= {"lo": np.full((), -0.5), "hi": np.ones(())}
    said = {"pads": [window // 2] * 4, "group": inner} | given
    text = f"""({element_of(dtype)}[1, {inputs}, {rows}, {columns}] x) => (y) {{
        a = Conv<pads = {[expand // 2] * 4}>(x, pw, pb)  b = Clip(a, lo, hi)
        c = Conv<{", ".join(f"{key} = {value}" for key, value in said.items())}>(b, qw, qb)
        e = Conv(c, rw, rb)  y = Transpose<perm = [0, 2, 3, 1]>(e)
    }}"""
    opset = 17 if dtype is np.float32 else 20
    return onnx_model(text, {name: array.astype(dtype) for name, array in weights.items()}, opset=opset)


def _target(tmp_path: Path, isa: str = "") -> str:
    (tmp_path / "machine.toml").write_text((f'isa = "{isa}"\n' if isa else "") + BANDS)
    return f"cpu:{tmp_path}/machine.toml"


@pytest.fixture
def images(monkeypatch: pytest.MonkeyPatch) -> list[BandImage]:
    """What was found of the images of the dispatches that are compiled."""
    found: list[BandImage] = []

    def kept(*args: Any, **given: Any) -> BandImage | None:
        image = band_image(*args, **given)
        found.extend([image] if image is not None else [])
        return image

    monkeypatch.setattr(family, "band_image", kept)
    return found


def _require_equal(model: onnx.ModelProto, compiled: CompiledModel, dtype: Any = np.float32) -> None:
    dims = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    feeds = {"x": RNG.normal(size=dims).astype(dtype)}
    expected = np.asarray(fuseline.compile(model, target="interpreter", fusion="none").run(feeds)["y"], np.float32)
    tolerance = (2e-5 if dtype is np.float32 else 2e-2) * max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(np.asarray(compiled.run(feeds)["y"], np.float32), expected, rtol=0, atol=tolerance)


WINDOWS: list[dict[str, Any]] = [
    {}, {"strides": [2, 2]}, {"pads": [0, 0, 0, 0]}, {"window": 5}, {"window": 5, "strides": [2, 2]}, {"expand": 3},
    {"dilations": [2, 2], "pads": [2, 2, 2, 2]}, {"pads": [2, 1, 0, 1]}, {"window": 4, "strides": [2, 1]},
    {"window": 2, "strides": [2, 2], "pads": [1, 0, 1, 0]},
]  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("given", WINDOWS)
def test_rows_are_kept_that_the_next_band_needs(
    given: dict[str, Any], threads: int, images: list[BandImage], tmp_path: Path
):
    """Of any number of rows: bands have one height, or two, and those of the one or the other may meet no edge."""
    model = _chain(int(RNG.integers(40, 70)), **given)
    compiled = fuseline.compile(model, target=_target(tmp_path), threads=threads)
    assert compiled.stats["dispatches"] == 1
    reach = (given.get("window", 3) - 1) * given.get("dilations", [1])[0] + 1
    kept = max(0, reach - given.get("strides", [1])[0])
    assert {image.kept for image in images} <= {kept, 0}  # none where the maker filters
    assert given.get("pads") != [0, 0, 0, 0] or all(image.edge is None for image in images)
    assert all(image.edge is None or image.edge.number == 0 for image in images)
    _require_equal(model, compiled)


@pytest.mark.parametrize("dtype", [np.float16])
@pytest.mark.parametrize("threads", [1, 2])
def test_halves(dtype: Any, threads: int, images: list[BandImage], tmp_path: Path):
    model = _chain(2 * int(RNG.integers(20, 35)), dtype)
    compiled = fuseline.compile(model, target=_target(tmp_path), threads=threads)
    assert any(image.kept == 2 and image.edge is not None for image in images)
    _require_equal(model, compiled, dtype)


def test_no_row_is_read_or_written_outside_of_its_memory(images: list[BandImage]):
    stride, rows = int(RNG.integers(1, 3)), 2 * int(RNG.integers(100, 120))
    inputs, inner = 6, 40
    weights = {"pw": RNG.normal(size=(inner, inputs, 1, 1)), "qw": RNG.normal(size=(inner, 1, 3, 3))}
    text = f"""(float[1, {inputs}, {rows}, 180] x) => (y) {{ a = Conv(x, pw)  b = Relu(a)
        y = Conv<pads = [1, 1, 1, 1], group = {inner}, strides = [{stride}, {stride}]>(b, qw) }}"""
    model = onnx_model(text, {name: array.astype(np.float32) for name, array in weights.items()})
    feeds = {"x": RNG.normal(size=(1, inputs, rows, 180)).astype(np.float32)}
    (found,) = ProvedProgram(model).run(feeds)
    assert any(image.kept for image in images)
    expected = fuseline.compile(model, target="interpreter").run(feeds)["y"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize("isa", ["avx2", "avx512"])
def test_instruction_sets(isa: str, images: list[BandImage], tmp_path: Path):
    """They are compiled for all, and run where that can be."""
    model = _chain(48)
    compiled = fuseline.compile(model, target=_target(tmp_path, isa), threads=2)
    assert any(image.kept == 2 for image in images)
    if set(machine(isa).needs) <= cpu_flags():
        _require_equal(model, compiled)


def test_rows_that_are_made_several_at_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """None is kept; the plan says so, as soon as the first of the two that would make them is planned."""
    notes: list[Any] = []
    planned: list[str] = []
    accepts = family.BlockedFamily.accepts
    choose = family.BlockedFamily._choose  # pyright: ignore[reportPrivateUsage]

    def noted(self: Any, *args: Any) -> Any:
        plan = accepts(self, *args)
        notes.extend([plan.notes.get("kept")] if isinstance(plan, BlockedPlan) else [])
        return plan

    def chosen(self: Any, view: Any, *args: Any) -> Any:
        planned.append(view.entry.sym_name.data.partition("_unit_")[2])
        return choose(self, view, *args)

    monkeypatch.setattr(family.BlockedFamily, "accepts", noted)
    monkeypatch.setattr(family.BlockedFamily, "_choose", chosen)
    model = _chain(48)
    fuseline.compile(model, target=_target(tmp_path), threads=1, cache=False)
    assert {"0_0", "0_1"} <= set(planned)
    planned.clear()
    monkeypatch.setattr(ContractionFamily, "computes_rows_alike", False)
    compiled = fuseline.compile(model, target=_target(tmp_path), threads=1, cache=False)
    assert "0_0" in planned and "0_1" not in planned
    assert notes[0].endswith(" rows") and notes[-1].startswith("none (filtered: ")
    _require_equal(model, compiled)


def test_parts_of_an_image():
    rows, step = int(RNG.integers(3, 40)), int(RNG.integers(1, 3))
    image = BandImage(None, 0, 1, 1, (1, rows, 5, 7), rows - step)  # type: ignore[arg-type]
    assert image.parts == (Part(0, rows - step), Part(rows - step, step))
    assert [image.offsets(part) for part in image.parts] == [(0, 0, 0, 0), (0, rows - step, 0, 0)]
    assert image.outer == 1 and image.row_elements == 35
