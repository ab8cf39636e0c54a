"""Windows evaluate an image that is computed strip by strip of its lines, in their own dispatch, wherever the channels
are; and where that takes too long, or they have no way to, a reason."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fuseline
from tests.draws import RNG
from tests.kernels import assert_close

LAYOUTS = ("nhwc", "nchw", "turned")
"""Channels last, first, and an image with channels first of which the result has them last."""


@dataclass(frozen=True)
class Window:
    """A depthwise convolution or a maximum over a padded image that an elementwise op makes, of random sizes."""

    channels: int
    image: tuple[int, int]
    window: tuple[int, int]
    stride: int
    dilation: int
    layout: str
    low: tuple[int, int]

    @classmethod
    def drawn(cls, layout: str, stride: int = 1, dilation: int = 1, most: int = 40) -> Window:
        window = (int(RNG.integers(2, 6)), int(RNG.integers(2, 6)))
        reach = max(dilation * (k - 1) + 1 for k in window)
        image = (int(RNG.integers(reach + 2, most)), int(RNG.integers(reach + 2, most)))
        low = (int(RNG.integers(0, window[0])), int(RNG.integers(1, window[1])))
        return cls(int(RNG.integers(2, 70)), image, window, stride, dilation, layout, low)

    @property
    def padded(self) -> list[int]:
        return [size + 2 * low for size, low in zip(self.image, self.low, strict=True)]

    @property
    def pixels(self) -> list[int]:
        sizes = zip(self.padded, self.window, strict=True)
        return [(size - self.dilation * (k - 1) - 1) // self.stride + 1 for size, k in sizes]

    def shaped(self, sizes: tuple[int, ...] | list[int]) -> tuple[int, ...]:
        return (*sizes, self.channels) if self.layout == "nhwc" else (self.channels, *sizes)

    def text(self, kind: str) -> str:
        h, w = self.pixels
        result = (self.channels, h, w) if self.layout == "nchw" else (h, w, self.channels)
        written = "(c, h, w)" if self.layout == "nchw" else "(h, w, c)"
        place = f"h * {self.stride} + i * {self.dilation}, w * {self.stride} + j * {self.dilation}"
        read = f"({place}, c)" if self.layout == "nhwc" else f"(c, {place})"
        low = ", ".join(map(str, (*self.low, 0) if self.layout == "nhwc" else (0, *self.low)))
        shapes = (self.shaped(self.image), self.shaped(self.padded), result)
        image, padded, out = ("x".join(map(str, shape)) for shape in shapes)
        kernel = f"{self.window[0]}x{self.window[1]}x{self.channels}"
        filter_map = "(i, j, c)" if kind == "sum" else "(i, j)"
        kernel = kernel if kind == "sum" else f"{self.window[0]}x{self.window[1]}"
        start, body = BODIES[kind]
        return f"""func.func @main(%x: tensor<{image}xf32>, %w: tensor<{kernel}xf32>, %s: tensor<{self.channels}xf32>)
    -> tensor<{out}xf32> {{
  %zero = arith.constant {start} : f32
  %e = tensor.empty() : tensor<{image}xf32>
  %v = linalg.generic {{indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>,
      affine_map<(a, b, c) -> ({"c" if self.layout == "nhwc" else "a"})>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}} ins(%x, %s : tensor<{image}xf32>,
      tensor<{self.channels}xf32>) outs(%e : tensor<{image}xf32>) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %r = math.roundeven %m : f32
    linalg.yield %r : f32
  }} -> tensor<{image}xf32>
  %p = tensor.pad %v low[{low}] high[{low}] {{
  ^bb0(%a: index, %b: index, %c: index):
    tensor.yield %zero : f32
  }} : tensor<{image}xf32> to tensor<{padded}xf32>
  %i = tensor.empty() : tensor<{out}xf32>
  %f = linalg.fill ins(%zero : f32) outs(%i : tensor<{out}xf32>) -> tensor<{out}xf32>
  %y = linalg.generic {{indexing_maps = [affine_map<(h, w, c, i, j) -> {read}>,
      affine_map<(h, w, c, i, j) -> {filter_map}>, affine_map<(h, w, c, i, j) -> {written}>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}}
      ins(%p, %w : tensor<{padded}xf32>, tensor<{kernel}xf32>) outs(%f : tensor<{out}xf32>) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    {body}
  }} -> tensor<{out}xf32>
  return %y : tensor<{out}xf32>
}}"""

    def feeds(self, kind: str) -> dict[str, NDArray[Any]]:
        kernel = (*self.window, self.channels) if kind == "sum" else self.window
        return {
            "x": (4 * RNG.standard_normal(self.shaped(self.image))).astype(np.float32),
            "w": RNG.standard_normal(kernel).astype(np.float32),
            "s": RNG.uniform(0.5, 2.0, self.channels).astype(np.float32),
        }


BODIES = {
    "sum": ("0.0", "%m = arith.mulf %a, %b : f32\n    %r = arith.addf %o, %m : f32\n    linalg.yield %r : f32"),
    "maximum": ("-1.0e30", "%r = arith.maximumf %o, %a : f32\n    linalg.yield %r : f32"),
}


def _compiled(window: Window, kind: str, folder: Path, **options: Any) -> Any:
    """The program, whose outputs are those of the interpreter."""
    path, feeds = folder / "window.mlir", window.feeds(kind)
    path.write_text(window.text(kind))
    program = fuseline.compile(path, threads=int(RNG.integers(1, 3)), **options)
    (found,), (wanted,) = (
        one.run(feeds).values() for one in (program, fuseline.compile(path, target="interpreter", fusion="none"))
    )
    assert_close(found, wanted, bits=18)
    return program


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("kind", BODIES)
def test_an_image_that_is_computed_is_part_of_its_window(
    kind: str, stride: int, dilation: int, layout: str, tmp_path: Path
):
    window = Window.drawn(layout, stride, dilation)
    program = _compiled(window, kind, tmp_path, fusion="aggressive")
    assert program.stats["dispatches"] == 1 and program.stats["fallbacks"] == 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_strips_of_long_lines_evaluate_what_lies_between_them(layout: str, tmp_path: Path):
    """Lines of which few fit the scratch together."""
    size = int(RNG.integers(150, 260)), int(RNG.integers(300, 420))
    window = Window(int(RNG.integers(1, 20)), size, (3, 3), int(RNG.integers(1, 3)), 1, layout, (1, 1))
    _compiled(window, "sum", tmp_path, fusion=["default", "aggressive"][int(RNG.integers(2))])


@pytest.mark.parametrize("layout", ["nhwc", "turned"])
def test_strips_of_one_cache_line_of_channels(layout: str, tmp_path: Path):
    """Tall windows of many channels: strips are as tall as scratch has room for."""
    size = int(RNG.integers(40, 64)), int(RNG.integers(50, 64))
    window = int(RNG.integers(5, 8)), int(RNG.integers(3, 8))
    drawn = Window(int(RNG.integers(33, 100)), size, window, int(RNG.integers(1, 3)), 1, layout, (2, 2))
    program = _compiled(drawn, "sum", tmp_path, fusion="aggressive")
    assert program.stats["dispatches"] == 1


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", BODIES)
def test_strips_of_lines_too_long_for_the_scratch_have_some_of_their_pixels(kind: str, layout: str, tmp_path: Path):
    size = int(RNG.integers(5, 40)), int(RNG.integers(2500, 3000))
    window = Window(int(RNG.integers(2, 9)), size, (3, 3), int(RNG.integers(1, 3)), 1, layout, (1, 1))
    program = _compiled(window, kind, tmp_path)
    assert program.stats["dispatches"] == 1 and program.stats["fallbacks"] == 0


def test_windows_too_large_for_the_scratch_read_stored_images(tmp_path: Path):
    """A pixel of the result has more under it than there is room for, of one cache line of channels."""
    window = Window(16, (90, 90), (9, 9), 1, 9, "nhwc", (1, 1))
    program = _compiled(window, "sum", tmp_path)
    missed = [decision.code for decision in program.decisions if decision.verdict == "missed"]
    assert program.stats["dispatches"] == 2 and missed == ["recompute"]


@pytest.mark.parametrize("body", ["sum of squares", "whole numbers"])
def test_windows_that_do_something_else_read_stored_images(body: str, tmp_path: Path):
    window = Window.drawn("nhwc")
    text = window.text("maximum")
    if body == "whole numbers":
        text = text.replace("xf32", "xi32").replace("f32", "i32").replace("mulf", "muli").replace("maximumf", "maxsi")
        text = text.replace("-1.0e30", "-100").replace("math.roundeven %m", "arith.addi %m, %m")
    else:
        text = text.replace("%r = arith.maximumf %o, %a", "%q = arith.addf %a, %a : f32\n %r = arith.addf %o, %q")
    path = tmp_path / "window.mlir"
    path.write_text(text)
    program = fuseline.compile(path, threads=1)
    missed = [decision.code for decision in program.decisions if decision.verdict == "missed"]
    assert program.stats["dispatches"] == 2 and missed == ["recompute"]
