"""Code that is shared across extents computes what code of its own does: random models at the levels `exact` and
`shapes`, saved and loaded, and every access proved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.targets.cpu import target
from fuseline.targets.cpu.isa import machine
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.properties.near_shapes import near_shapes
from tests.proved import ProvedProgram


def feeds(rng: np.random.Generator, rows: int) -> dict[str, np.ndarray]:
    return {"x": rng.standard_normal((rows, 24)).astype(np.float32)}


@pytest.fixture
def any_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever can be shared is."""
    here = machine()
    generous = replace(here, costs=replace(here.costs, sharing_loss=100.0))
    monkeypatch.setattr(target, "machine_named", lambda name: generous if not name else machine(name))


@pytest.mark.usefixtures("any_price")
@pytest.mark.parametrize("rows", ["5", "33", "n"])
def test_results_are_the_same(tmp_path: Path, rows: str):
    rng = np.random.default_rng()
    model = near_shapes(rng, rows)
    own, shared = (fuseline.compile(model, threads=2, fusion="none", dedup=level) for level in ("exact", "shapes"))
    assert shared.stats["executables"] <= own.stats["executables"]
    shared.save(tmp_path / "shared.fuse")
    for count in (7, 41) if rows == "n" else (int(rows),):
        given = feeds(rng, count)
        expected = list(own.run(given).values())
        for program in (shared, fuseline.load(tmp_path / "shared.fuse")):
            assert all(np.array_equal(a, b) for a, b in zip(expected, program.run(given).values(), strict=True))


@pytest.mark.usefixtures("any_price")
@pytest.mark.parametrize("rows", ["19", "n"])
def test_every_access_is_proved(rows: str):
    rng = np.random.default_rng()
    program = ProvedProgram(near_shapes(rng, rows), fusion="none", dedup="shapes")
    assert program.run(feeds(rng, 19))


def test_products_that_differ_in_rows_share_executables():
    """One, or two where the tiles of a third fit it better than 3 %."""
    rows = [14 * int(n) for n in RNG.choice(np.arange(2, 9), 3, replace=False)]
    weight = RNG.standard_normal((64, 64)).astype(np.float32)
    inputs, outputs = (", ".join(f"float[{n}, 64] {name}{i}" for i, n in enumerate(rows)) for name in "xy")
    body = "\n".join(f"y{i} = MatMul(x{i}, w)" for i in range(3))
    model = onnx_model(f"({inputs}) => ({outputs}) {{ {body} }}", {"w": weight})
    programs = {level: fuseline.compile(model, threads=1, dedup=level) for level in ("exact", "shapes")}
    exact, shared = (program.stats["executables"] for program in programs.values())
    assert exact == 3 and shared < 3
    given = {f"x{i}": RNG.standard_normal((n, 64)).astype(np.float32) for i, n in enumerate(rows)}
    expected, found = (list(program.run(given).values()) for program in programs.values())
    assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))


def products(rng: np.random.Generator) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Products of many rows, of whole vectors of columns, in steps of several lengths; and what to feed them."""
    sizes = [(int(rng.integers(150, 400)), 32 * int(rng.integers(1, 9)), int(rng.choice([64, 96, 256]))) for _ in "abc"]
    inputs = ", ".join(f"float[{rows}, {steps}] x{i}" for i, (rows, _, steps) in enumerate(sizes))
    outputs = ", ".join(f"float[{rows}, {columns}] y{i}" for i, (rows, columns, _) in enumerate(sizes))
    body = "\n".join(f"y{i} = MatMul(x{i}, w{i})" for i in range(3))
    weights = {f"w{i}": rng.standard_normal((steps, n)).astype(np.float32) for i, (_, n, steps) in enumerate(sizes)}
    given = {f"x{i}": rng.standard_normal((rows, steps)).astype(np.float32) for i, (rows, _, steps) in enumerate(sizes)}
    return onnx_model(f"({inputs}) => ({outputs}) {{ {body} }}", weights), given


def test_products_of_one_form_compute_what_they_compute_alone():
    model, given = products(RNG)
    own, shared = (fuseline.compile(model, threads=2, fusion="none", dedup=level) for level in ("exact", "shapes"))
    assert shared.stats["executables"] <= own.stats["executables"]
    for a, b in zip(own.run(given).values(), shared.run(given).values(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_every_access_of_products_of_one_form_is_proved():
    model, given = products(RNG)
    assert ProvedProgram(model, fusion="none", dedup="shapes").run(given)


def test_products_that_differ_in_everything_are_one_executable():
    sizes = ((196, 256, 64), (784, 128, 96), (392, 64, 192))
    inputs = ", ".join(f"float[{rows}, {steps}] x{i}" for i, (rows, _, steps) in enumerate(sizes))
    outputs = ", ".join(f"float[{rows}, {columns}] y{i}" for i, (rows, columns, _) in enumerate(sizes))
    body = "\n".join(f"y{i} = MatMul(x{i}, w{i})" for i in range(3))
    weights = {f"w{i}": RNG.standard_normal((steps, n)).astype(np.float32) for i, (_, n, steps) in enumerate(sizes)}
    model = onnx_model(f"({inputs}) => ({outputs}) {{ {body} }}", weights)
    programs = {level: fuseline.compile(model, target="cpu:avx512", dedup=level) for level in ("exact", "shapes")}
    assert [program.stats["executables"] for program in programs.values()] == [3, 1]


def convolutions(rng: np.random.Generator) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Convolutions of several images, channels and columns, padded, with a relu; and what to feed them."""
    sizes = [(int(rng.integers(9, 30)), 16 * int(rng.integers(2, 7)), 32 * int(rng.integers(1, 4))) for _ in "abc"]
    inputs = ", ".join(f"float[1, {channels}, {size}, {size}] x{i}" for i, (size, channels, _) in enumerate(sizes))
    outputs = ", ".join(f"float[1, {columns}, {size}, {size}] y{i}" for i, (size, _, columns) in enumerate(sizes))
    body = "\n".join(f"c{i} = Conv<pads = [1, 1, 1, 1]>(x{i}, w{i})\ny{i} = Relu(c{i})" for i in range(3))
    shapes = {f"w{i}": (columns, channels, 3, 3) for i, (_, channels, columns) in enumerate(sizes)}
    weights = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    given = {f"x{i}": (1, channels, size, size) for i, (size, channels, _) in enumerate(sizes)}
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in given.items()}
    return onnx_model(f"({inputs}) => ({outputs}) {{ {body} }}", weights), feeds


@pytest.mark.usefixtures("any_price")
@pytest.mark.parametrize("numerics", ["strict", "default"])
def test_convolutions_of_one_form_compute_what_they_compute_alone(numerics: str):
    """Directly, and by minimal filtering."""
    model, given = convolutions(RNG)
    own, shared = (fuseline.compile(model, numerics=numerics, dedup=level) for level in ("exact", "shapes"))
    assert shared.stats["executables"] <= own.stats["executables"]
    for a, b in zip(own.run(given).values(), shared.run(given).values(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.usefixtures("any_price")
def test_every_access_of_convolutions_of_one_form_is_proved():
    model, given = convolutions(RNG)
    assert ProvedProgram(model, dedup="shapes").run(given)


def squeezes(rng: np.random.Generator) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Images that are pooled, widened, seen through a window channel by channel and narrowed again, of several sizes;
    and what to feed them."""
    sizes = [(int(rng.integers(15, 40)), 16 * int(rng.integers(1, 4)), 16 * int(rng.integers(3, 9))) for _ in "abc"]
    return squeezes_of(rng, sizes)


def squeezes_of(
    rng: np.random.Generator, sizes: Sequence[tuple[int, int, int]]
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """The same for images of so many pixels a side, channels, and channels when they are widened."""
    lines: list[str] = []
    weights: dict[str, np.ndarray] = {}
    given: dict[str, tuple[int, ...]] = {}
    for i, (size, channels, wide) in enumerate(sizes):
        given[f"x{i}"] = (1, channels, size, size)
        shapes = {"a": (wide, channels, 1, 1), "b": (wide, 1, 3, 3), "c": (channels, wide, 1, 1)}
        weights |= {f"{name}{i}": rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
        lines += [
            f"p{i} = MaxPool<kernel_shape = [3, 3], strides = [2, 2]>(x{i})",
            f"q{i} = Conv(p{i}, a{i})",
            f"r{i} = Relu(q{i})",
            f"s{i} = Conv<group = {wide}, pads = [1, 1, 1, 1]>(r{i}, b{i})",
            f"t{i} = Relu(s{i})",
            f"y{i} = Conv(t{i}, c{i})",
        ]
    inputs = ", ".join(f"float[{', '.join(map(str, shape))}] {name}" for name, shape in given.items())
    outputs = ", ".join(f"float[1, {s[1]}, {(s[2] - 1) // 2}, {(s[2] - 1) // 2}] y{n[1:]}" for n, s in given.items())
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in given.items()}
    return onnx_model(f"({inputs}) => ({outputs}) {{ " + "\n".join(lines) + " }", weights), feeds


@pytest.mark.usefixtures("any_price")
@pytest.mark.parametrize("fusion", ["none", "aggressive"])
def test_windows_and_blocks_of_one_form_compute_what_they_compute_alone(fusion: str):
    model, given = squeezes(RNG)
    own, shared = (fuseline.compile(model, fusion=fusion, dedup=level) for level in ("exact", "shapes"))
    assert shared.stats["executables"] <= own.stats["executables"]
    for a, b in zip(own.run(given).values(), shared.run(given).values(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_windows_of_many_lengths_share_executables():
    model, _ = squeezes_of(RNG, [(29, 32, 96), (57, 16, 48), (113, 16, 64)])
    programs = {
        level: fuseline.compile(model, target="cpu:avx512", threads=1, fusion="none", dedup=level)
        for level in ("exact", "shapes")
    }
    exact, shared = (program.stats["executables"] for program in programs.values())
    assert shared <= exact - 5


@pytest.mark.usefixtures("any_price")
def test_every_access_of_windows_and_blocks_of_one_form_is_proved():
    model, given = squeezes(RNG)
    assert ProvedProgram(model, fusion="aggressive", dedup="shapes").run(given)


def dilated(
    rng: np.random.Generator, sizes: Sequence[tuple[int, int]]
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A convolution for each side and dilation in `sizes`, padded so that images keep their sides, times a number of
    its own; and what to feed them."""
    lines: list[str] = []
    weights: dict[str, np.ndarray] = {}
    given: dict[str, np.ndarray] = {}
    for i, (side, apart) in enumerate(sizes):
        weights[f"w{i}"] = rng.standard_normal((32, 32, 3, 3)).astype(np.float32)
        weights[f"k{i}"] = np.array(rng.uniform(1.5, 3.5), np.float32)
        given[f"x{i}"] = rng.standard_normal((1, 32, side, side)).astype(np.float32)
        pads = ", ".join([str(apart)] * 4)
        lines.append(f"c{i} = Conv<dilations = [{apart}, {apart}], pads = [{pads}]>(x{i}, w{i})")
        lines.append(f"y{i} = Mul(c{i}, k{i})")
    inputs, outputs = (
        ", ".join(f"float[1, 32, {side}, {side}] {name}{i}" for i, (side, _) in enumerate(sizes)) for name in "xy"
    )
    return onnx_model(f"({inputs}) => ({outputs}) {{ " + "\n".join(lines) + " }", weights), given


def some_dilated(rng: np.random.Generator) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Three of them, of one side or of several."""
    sides = rng.integers(9, 40, 3) if rng.random() < 0.5 else [int(rng.integers(9, 40))] * 3
    return dilated(rng, [(int(side), int(rng.integers(1, side + 3))) for side in sides])


@pytest.mark.usefixtures("any_price")
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_dilated_convolutions_compute_what_they_compute_alone(threads: int):
    model, given = some_dilated(RNG)
    own, shared = (fuseline.compile(model, threads=threads, dedup=level) for level in ("exact", "shapes"))
    assert shared.stats["executables"] <= own.stats["executables"]
    for a, b in zip(own.run(given).values(), shared.run(given).values(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.usefixtures("any_price")
def test_every_access_of_dilated_convolutions_is_proved():
    model, given = some_dilated(RNG)
    assert ProvedProgram(model, dedup="shapes").run(given)


def test_convolutions_of_other_dilations_and_factors_are_one_executable():
    """As long as a tile takes all taps; where it leaves some out, the rows are cut as that saves most."""
    model, _ = dilated(RNG, [(17, 2), (17, 3)])
    own, shared = (fuseline.compile(model, target="cpu:avx512", dedup=level) for level in ("exact", "shapes"))
    assert (own.stats["executables"], shared.stats["executables"]) == (2, 1)


def pixels(
    rng: np.random.Generator, sizes: Sequence[tuple[int, int, int, int]]
) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Products of the channels of every pixel, or every second or third one, channels last: images of so many pixels a
    side, channels and results, a stride apart; and what to feed them."""
    weights: dict[str, np.ndarray] = {}
    given: dict[str, np.ndarray] = {}
    lines: list[str] = []
    outputs: list[str] = []
    for i, (side, channels, results, apart) in enumerate(sizes):
        weights[f"w{i}"] = rng.standard_normal((results, channels, 1, 1)).astype(np.float32)
        given[f"x{i}"] = rng.standard_normal((1, side, side, channels)).astype(np.float32)
        lines += [
            f"a{i} = Transpose<perm = [0, 3, 1, 2]>(x{i})",
            f"b{i} = Conv<strides = [{apart}, {apart}]>(a{i}, w{i})",
            f"y{i} = Transpose<perm = [0, 2, 3, 1]>(b{i})",
        ]
        outputs.append(f"float[1, {-(-side // apart)}, {-(-side // apart)}, {results}] y{i}")
    inputs = ", ".join(f"float[{', '.join(map(str, array.shape))}] {name}" for name, array in given.items())
    return onnx_model(f"({inputs}) => ({', '.join(outputs)}) {{ " + "\n".join(lines) + " }", weights), given


def some_pixels(rng: np.random.Generator) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Three of them, of any size, the first a product of all pixels."""
    sizes = [(int(rng.integers(9, 40)), int(rng.choice([32, 64, 256])), 32 * int(rng.integers(1, 9))) for _ in "abc"]
    return pixels(rng, [(*size, 1 + (i and int(rng.integers(0, 3)))) for i, size in enumerate(sizes)])


@pytest.mark.usefixtures("any_price")
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_pixels_apart_compute_what_they_compute_alone(threads: int):
    model, given = some_pixels(RNG)
    own, shared = (fuseline.compile(model, threads=threads, dedup=level) for level in ("exact", "shapes"))
    assert shared.stats["executables"] <= own.stats["executables"]
    for a, b in zip(own.run(given).values(), shared.run(given).values(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.usefixtures("any_price")
def test_every_access_of_pixels_apart_is_proved():
    model, given = some_pixels(RNG)
    assert ProvedProgram(model, dedup="shapes").run(given)


def test_products_of_all_pixels_and_of_some_are_one_executable():
    model, _ = pixels(RNG, [(28, 128, 512, 1), (28, 512, 1024, 2), (14, 256, 512, 2)])
    own, shared = (fuseline.compile(model, target="cpu:avx512", dedup=level) for level in ("exact", "shapes"))
    assert (own.stats["executables"], shared.stats["executables"]) == (3, 1)
