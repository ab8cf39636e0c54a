"""Windows over images whose borders repeat them: one dispatch, of the values that the padded image gives, whose kernel
is proved to stay inside."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.analysis.border_modes import BORDER_MODES, BorderMode, reach
from tests.draws import RNG
from tests.graphs.onnx_text import attributes_of, onnx_model
from tests.proved import ProvedProgram

Array = NDArray[Any]


class Window(NamedTuple):
    """`then` (an operator with its attributes) over `x` of `shape` padded by `low` and `high` in `mode`; `before`: an
    operator that makes the image, so that its channels come last."""

    then: str
    mode: BorderMode
    shape: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    taps: tuple[int, ...] = (3, 3)
    strides: tuple[int, ...] = (1, 1)
    dilations: tuple[int, ...] = (1, 1)
    columns: int = 16
    group: int = 1
    before: str = ""

    @property
    def model(self) -> onnx.ModelProto:
        """Of whole numbers, so that sums are what they are in any order."""
        channels, rank = self.shape[1], len(self.shape)
        steps = {"strides": self.strides, "dilations": self.dilations}
        weights: dict[str, Array] = {"pads": np.array([0, 0, *self.low, 0, 0, *self.high])}
        if self.then == "Conv":
            filter_ = (self.columns, channels // self.group, *self.taps)
            weights["w"] = RNG.integers(-3, 4, filter_).astype(np.float32)
            node = f"Conv{attributes_of({**steps, 'group': self.group})} (p, w)"
        else:
            node = f"{self.then}{attributes_of({**steps, 'kernel_shape': self.taps})} (p)"
        image, before = "x", ""
        if self.before:
            weights["w0"] = RNG.integers(-2, 3, (channels, channels, *(1,) * (rank - 2))).astype(np.float32)
            image, before = "b", "b = Conv (x, w0)" if self.before == "Conv" else f"b = {self.before} (x)"
        text = f"""(float[{", ".join(map(str, self.shape))}] x) => (y) {{
            {before} p = Pad{attributes_of({"mode": self.mode})} ({image}, pads) y = {node} }}"""
        return onnx_model(text, weights, opset=19)

    def check(self, *, tolerance: float = 0.0, proved: bool = True) -> int:
        """The dispatches that it takes; what they answer is what the interpreter does."""
        x = RNG.integers(-4, 5, self.shape).astype(np.float32)
        model = self.model
        program = fuseline.compile(model, threads=int(RNG.integers(1, 4)))
        wanted = fuseline.compile(model, target="interpreter").run({"x": x})["y"]
        limit = tolerance * float(np.abs(wanted).max(initial=0))
        np.testing.assert_allclose(program.run({"x": x})["y"], wanted, rtol=0, atol=limit)
        if proved:
            (found,) = ProvedProgram(model).run({"x": x})
            np.testing.assert_allclose(found, wanted, rtol=0, atol=limit)
        return len(program.record.dispatches)


WINOGRAD = 4e-5
"""What minimal filtering may be off, in the greatest value (docs/numerics.md)."""

AVERAGE = 1e-6
"""What a quotient may be off."""

PADS = {
    "all around": ((1, 1), (1, 1)),
    "of one side": ((2, 0), (0, 3)),
    "wider than the window": ((5, 4), (4, 6)),
    "of one axis": ((0, 1), (0, 2)),
}


@pytest.mark.parametrize("mode", BORDER_MODES)
@pytest.mark.parametrize(("low", "high"), PADS.values(), ids=PADS)
@pytest.mark.parametrize("before", ["", "Conv"])
def test_convolutions_read_borders_in_place(
    mode: BorderMode, low: tuple[int, ...], high: tuple[int, ...], before: str
) -> None:
    window = Window("Conv", mode, (1, 5, 11, 13), low, high, strides=(2, 1), before=before)
    assert window.check() == (2 if before else 1)


@pytest.mark.parametrize("mode", BORDER_MODES)
@pytest.mark.parametrize("shape", [(2, 17, 19, 23), (1, 64, 16, 16)])
def test_minimal_filtering_reads_borders_in_place(mode: BorderMode, shape: tuple[int, ...]) -> None:
    window = Window("Conv", mode, shape, (1, 2), (2, 1), columns=32, before="Conv")
    assert window.check(tolerance=WINOGRAD) == 2


@pytest.mark.parametrize("mode", BORDER_MODES)
def test_long_lines_and_steps(mode: BorderMode) -> None:
    shape, taps = (1, 4, 6, 70), (2, 5)
    wide = Window("Conv", mode, shape, (3, 4), (0, 5), taps, dilations=(1, 3), before="Conv")
    assert wide.check() == 2
    assert Window("Conv", mode, shape, (1, 2), (2, 4), taps, strides=(3, 2), columns=3).check() == 1


@pytest.mark.parametrize("mode", BORDER_MODES)
def test_one_axis(mode: BorderMode) -> None:
    line = Window("Conv", mode, (2, 6, 37), (4,), (3,), (3,), (1,), (2,), before="Conv")
    assert line.check() == 2


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("mode", BORDER_MODES)
@pytest.mark.parametrize("before", ["", "Relu"])
def test_small_images_look_alike_in_several_modes(mode: BorderMode, size: int, before: str) -> None:
    most = {"edge": 3, "reflect": size - 1, "wrap": size}[mode]
    for low, high in ((most, most), (most, 0), (0, most)):
        for other in (2, 5):
            amounts = (low, min(other - 1, 1)), (high, 1)
            Window("Conv", mode, (1, 3, size, other), *amounts, (1, 2), columns=8, before=before).check()
            Window("MaxPool", mode, (1, 8, size, other), *amounts, (1, 2), before=before).check()


def test_what_a_padded_border_is_read_through_is_stored() -> None:
    """A constant pad over a border: what lies beyond the pad has no address to be moved."""
    x = RNG.integers(-4, 5, (1, 8, 9, 9)).astype(np.float32)
    w = RNG.integers(-3, 4, (16, 8, 3, 3)).astype(np.float32)
    text = """(float[1, 8, 9, 9] x) => (y) {
        b = Conv (x, w0) p = Pad<mode = "reflect"> (b, pads) y = Conv<pads = [1, 1, 1, 1]> (p, w) }"""
    more = {"w0": RNG.integers(-2, 3, (8, 8, 1, 1)).astype(np.float32), "pads": np.array([0, 0, 2, 2, 0, 0, 2, 2])}
    model = onnx_model(text, {"w": w, **more}, opset=19)
    wanted = fuseline.compile(model, target="interpreter").run({"x": x})["y"]
    (found,) = ProvedProgram(model).run({"x": x})
    np.testing.assert_allclose(found, wanted, rtol=0, atol=WINOGRAD * np.abs(wanted).max())


@pytest.mark.parametrize("readers", [2, 3])
def test_a_border_with_several_readers_is_part_of_each(readers: int) -> None:
    names = ["y", "z", "v"][:readers]
    nodes = ["y = Conv (p, w)", "z = MaxPool<kernel_shape = [2, 3]> (p)", "v = Conv (p, u)"][:readers]
    text = f"""(float[1, 8, 9, 9] x) => ({", ".join(names)}) {{
        b = Conv (x, w0) p = Pad<mode = "reflect"> (b, pads) {" ".join(nodes)} }}"""
    shapes = {"w0": (8, 8, 1, 1), "w": (16, 8, 3, 3), "u": (16, 8, 1, 5)}
    weights = {name: RNG.integers(-2, 3, shape).astype(np.float32) for name, shape in shapes.items()}
    model = onnx_model(text, {**weights, "pads": np.array([0, 0, 2, 3, 0, 0, 1, 2])}, opset=19)
    x = RNG.integers(-4, 5, (1, 8, 9, 9)).astype(np.float32)
    wanted = fuseline.compile(model, target="interpreter").run({"x": x})
    for found, name in zip(ProvedProgram(model).run({"x": x}), names, strict=True):
        np.testing.assert_allclose(found, wanted[name], rtol=0, atol=WINOGRAD * np.abs(wanted[name]).max())
    assert not any("gather" in dispatch.name for dispatch in fuseline.compile(model, threads=1).record.dispatches)


def _random(then: str) -> Window:
    """Any window that fits its image."""
    mode = BORDER_MODES[RNG.integers(3)]
    channels = int(RNG.choice([1, 2, 3, 4, 8, 16, 17, 33]))
    size = tuple(int(n) for n in RNG.integers(1, 30, 2))
    most = [9 if (n := reach(s, mode)) is None else n for s in size]
    low, high = (tuple(int(min(n, RNG.choice([0, 1, 1, 2, 3, 5, 9]))) for n in most) for _ in range(2))
    taps, steps, apart = (tuple(int(n) for n in RNG.choice([1, 1, 2, 3, 5], 2)) for _ in range(3))
    padded = [s + a + b for s, a, b in zip(size, low, high, strict=True)]
    taps = tuple(min(t, 1 + (n - 1) // a) for t, n, a in zip(taps, padded, apart, strict=True))
    group = int(RNG.choice([n for n in range(1, channels + 1) if channels % n == 0])) if RNG.random() < 0.4 else 1
    columns = group * int(RNG.choice([1, 3, 8, 19])) if RNG.random() < 0.7 else channels
    columns, group = (columns, group) if columns % group == 0 else (channels, channels)
    before = str(RNG.choice(["", "Conv", "Relu"]))
    batch = int(RNG.integers(1, 3))
    return Window(then, mode, (batch, channels, *size), low, high, taps, steps, apart, columns, group, before)


@pytest.mark.parametrize("number", range(12))
def test_any_convolution(number: int) -> None:
    del number
    assert _random("Conv").check(tolerance=WINOGRAD) <= 3


# windows --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", BORDER_MODES)
@pytest.mark.parametrize("then", ["Conv", "MaxPool", "AveragePool"])
@pytest.mark.parametrize("before", ["", "Conv"])
def test_windows_read_borders_in_place(mode: BorderMode, then: str, before: str) -> None:
    """Channel by channel: lines of pixels are copied with their border, channels side by side are read where they
    are."""
    low, high = list(PADS.values())[RNG.integers(len(PADS))]
    window = Window(then, mode, (1, 24, 11, 14), low, high, columns=24, group=24, before=before)
    assert window.check(tolerance=AVERAGE) == (2 if before else 1)


STEPS = [((3, 3), (2, 2), (1, 1)), ((2, 2), (2, 2), (1, 1)), ((5, 3), (1, 4), (2, 1)), ((3, 5), (2, 3), (3, 2))]
"""Taps, steps and what lies between taps, so that windows along a line meet all of its pixels."""


@pytest.mark.parametrize("mode", BORDER_MODES)
@pytest.mark.parametrize("then", ["Conv", "MaxPool", "AveragePool"])
@pytest.mark.parametrize(("taps", "steps", "apart"), STEPS)
def test_windows_that_step_along_lines_read_borders_in_place(
    mode: BorderMode, then: str, taps: tuple[int, ...], steps: tuple[int, ...], apart: tuple[int, ...]
) -> None:
    """Lanes are several pixels apart, of an image whose channels come first."""
    low, high = list(PADS.values())[RNG.integers(len(PADS))]
    apart = apart if then != "AveragePool" else (1, 1)
    window = Window(then, mode, (2, 17, 15, 22), low, high, taps, steps, apart, 17, 17)
    assert window.check(tolerance=AVERAGE) == 1


@pytest.mark.parametrize("mode", BORDER_MODES)
@pytest.mark.parametrize("then", ["Conv", "MaxPool"])
def test_windows_with_steps(mode: BorderMode, then: str) -> None:
    taps, steps, apart = (5, 2), (2, 3), (1, 2)
    shape = (2, 40, 9, 31)
    window = Window(then, mode, shape, (4, 2), (3, 5), taps, steps, apart, 40, 40, "Conv")
    assert window.check() == 2


@pytest.mark.parametrize("mode", BORDER_MODES)
def test_groups(mode: BorderMode) -> None:
    window = Window("Conv", mode, (1, 32, 9, 13), (1, 2), (3, 1), columns=32, group=8, before="Conv")
    assert window.check() == 2


@pytest.mark.parametrize("mode", BORDER_MODES)
def test_crowded_images_are_copied_with_their_borders(mode: BorderMode) -> None:
    """256 channels meet in few sets of the cache."""
    window = Window("Conv", mode, (1, 256, 7, 12), (2, 2), (2, 2), (5, 5), columns=256, group=256, before="Conv")
    assert window.check() == 2


def test_a_pool_pads_what_has_a_border() -> None:
    """A maximum over a pad around a border: steps in the pad are left out, those in the border are not."""
    text = """(float[1, 8, 9, 9] x) => (y) {
        b = Conv (x, w0) p = Pad<mode = "reflect"> (b, pads)
        y = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]> (p) }"""
    weights = {"w0": RNG.integers(-2, 3, (8, 8, 1, 1)).astype(np.float32), "pads": np.array([0, 0, 2, 3, 0, 0, 1, 2])}
    model = onnx_model(text, weights, opset=19)
    x = RNG.integers(-4, 5, (1, 8, 9, 9)).astype(np.float32)
    (found,) = ProvedProgram(model).run({"x": x})
    np.testing.assert_array_equal(found, fuseline.compile(model, target="interpreter").run({"x": x})["y"])


@pytest.mark.parametrize("number", range(12))
def test_any_window(number: int) -> None:
    then = ("Conv", "MaxPool", "AveragePool")[number % 3]
    window = _random(then)
    channels = window.shape[1]
    window = window._replace(columns=channels, group=channels)
    if then == "AveragePool":
        window = window._replace(dilations=(1, 1))
    assert window.check(tolerance=AVERAGE) <= 3
