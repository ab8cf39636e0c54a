"""Depthwise convolutions compute a filter that only the run knows, or convert it, in their own dispatch, wherever the
channels are; and where that would take too long, or the window has no way to, a reason."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import fuseline
from tests.draws import RNG
from tests.kernels import assert_close

NUMPY: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "f32": np.float32}

BODIES = {
    "f16": "%r = arith.extf %a : f16 to f32",
    "bf16": "%r = arith.extf %a : bf16 to f32",
    "i8": "%q = arith.sitofp %a : i8 to f32\n    %r = arith.mulf %q, %s : f32",
    "f32": "%r = arith.mulf %a, %s : f32",
}
"""What each element type of the filter is made f32 by; `%s` is a scale of the channel."""


@dataclass(frozen=True)
class Case:
    """A depthwise convolution of random sizes, `first`: the channels come first in image, filter and result."""

    batch: int
    channels: int
    image: tuple[int, int]
    window: tuple[int, int]
    stride: int
    dilation: int
    first: bool

    @classmethod
    def drawn(cls, *, first: bool, stride: int = 1, dilation: int = 1, batch: int = 1) -> Case:
        window = (int(RNG.integers(2, 6)), int(RNG.integers(2, 6)))
        image = (int(RNG.integers(14, 40)), int(RNG.integers(14, 40)))
        return cls(batch, int(RNG.integers(9, 70)), image, window, stride, dilation, first)

    @property
    def pixels(self) -> list[int]:
        sizes = zip(self.image, self.window, strict=True)
        return [(size - self.dilation * (k - 1) - 1) // self.stride + 1 for size, k in sizes]

    def shaped(self, sizes: tuple[int, ...] | list[int], *before: int) -> tuple[int, ...]:
        return (*before, self.channels, *sizes) if self.first else (*before, *sizes, self.channels)

    def text(self, element: str) -> str:
        image, filter_, result = (
            "x".join(map(str, shape))
            for shape in (
                self.shaped(self.image, self.batch), self.shaped(self.window), self.shaped(self.pixels, self.batch)
            )
        )  # fmt: skip
        return f"""func.func @main(%x: tensor<{image}xf32>, %w: tensor<{filter_}x{element}>,
            %scale: tensor<{self.channels}xf32>) -> tensor<{result}xf32> {{
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<{filter_}xf32>
  %v = linalg.generic {{indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>,
      affine_map<(a, b, c) -> ({"a" if self.first else "c"})>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%w, %scale : tensor<{filter_}x{element}>, tensor<{self.channels}xf32>) outs(%e : tensor<{filter_}xf32>) {{
  ^bb0(%a: {element}, %s: f32, %o: f32):
    {BODIES[element]}
    linalg.yield %r : f32
  }} -> tensor<{filter_}xf32>
  %i = tensor.empty() : tensor<{result}xf32>
  %f = linalg.fill ins(%zero : f32) outs(%i : tensor<{result}xf32>) -> tensor<{result}xf32>
  %y = linalg.depthwise_conv_2d_{"nchw_chw" if self.first else "nhwc_hwc"}
      {{dilations = dense<{self.dilation}> : vector<2xi64>, strides = dense<{self.stride}> : vector<2xi64>}}
      ins(%x, %v : tensor<{image}xf32>, tensor<{filter_}xf32>) outs(%f : tensor<{result}xf32>) -> tensor<{result}xf32>
  return %y : tensor<{result}xf32>
}}"""

    def feeds(self, element: str) -> dict[str, NDArray[Any]]:
        shape = self.shaped(self.window)
        drawn = RNG.integers(-128, 128, shape) if element == "i8" else RNG.standard_normal(shape)
        return {
            "x": RNG.standard_normal(self.shaped(self.image, self.batch)).astype(np.float32),
            "w": drawn.astype(NUMPY[element]),
            "scale": RNG.uniform(0.01, 0.1, self.channels).astype(np.float32),
        }


def _compiled(text: str, feeds: dict[str, NDArray[Any]], folder: Path, **options: Any) -> Any:
    """The program, whose outputs are those of the interpreter."""
    path = folder / "filter.mlir"
    path.write_text(text)
    program = fuseline.compile(path, threads=int(RNG.integers(1, 3)), **options)
    (found,), (wanted,) = (
        one.run(feeds).values() for one in (program, fuseline.compile(path, target="interpreter", fusion="none"))
    )
    assert_close(found, wanted, bits=18)
    return program


@pytest.mark.parametrize("fusion", ["default", "aggressive"])
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("element", BODIES)
def test_a_filter_that_is_computed_is_one_dispatch(
    element: str, first: bool, stride: int, dilation: int, fusion: str, tmp_path: Path
):
    case = Case.drawn(first=first, stride=stride, dilation=dilation)
    program = _compiled(case.text(element), case.feeds(element), tmp_path, fusion=fusion)
    assert program.stats["dispatches"] == 1


@pytest.mark.parametrize("first", [False, True])
def test_images_of_a_batch_evaluate_it_anew(first: bool, tmp_path: Path):
    """Large ones: what each of them takes is far more than the filter."""
    case = Case(3, int(RNG.integers(9, 70)), (40, 50), (3, 3), 1, 1, first)
    assert _compiled(case.text("f16"), case.feeds("f16"), tmp_path).stats["dispatches"] == 1


def test_many_small_images_have_a_price(tmp_path: Path):
    """Of four pixels each, so that every filter is evaluated for as many."""
    case = Case(16, 8 * int(RNG.integers(20, 50)), (4, 4), (3, 3), 1, 1, first=False)
    program = _compiled(case.text("f32"), case.feeds("f32"), tmp_path)
    missed = [decision for decision in program.decisions if decision.verdict == "missed"]
    assert program.stats["dispatches"] == 2 and [one.code for one in missed] == ["unprofitable"]
    assert missed[0].numbers["evaluation_ns"] > missed[0].numbers["saved_ns"]


CONCAT = """func.func @main(%a: tensor<1x{h}x{w}x{c}xf32>, %b: tensor<1x{h}x{w}x{d}xf32>, %f: tensor<3x3x{n}xf16>)
    -> tensor<1x{u}x{v}x{n}xf32> {{
  %x = tensor.concat dim(3) %a, %b : (tensor<1x{h}x{w}x{c}xf32>, tensor<1x{h}x{w}x{d}xf32>) -> tensor<1x{h}x{w}x{n}xf32>
  %e = tensor.empty() : tensor<3x3x{n}xf32>
  %g = linalg.generic {{indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}} ins(%f : tensor<3x3x{n}xf16>)
      outs(%e : tensor<3x3x{n}xf32>) {{
  ^bb0(%i: f16, %o: f32):
    %r = arith.extf %i : f16 to f32
    linalg.yield %r : f32
  }} -> tensor<3x3x{n}xf32>
  %zero = arith.constant 0.0 : f32
  %s = tensor.empty() : tensor<1x{u}x{v}x{n}xf32>
  %t = linalg.fill ins(%zero : f32) outs(%s : tensor<1x{u}x{v}x{n}xf32>) -> tensor<1x{u}x{v}x{n}xf32>
  %y = linalg.depthwise_conv_2d_nhwc_hwc {{dilations = dense<1> : vector<2xi64>, strides = dense<1> : vector<2xi64>}}
      ins(%x, %g : tensor<1x{h}x{w}x{n}xf32>, tensor<3x3x{n}xf32>)
      outs(%t : tensor<1x{u}x{v}x{n}xf32>) -> tensor<1x{u}x{v}x{n}xf32>
  return %y : tensor<1x{u}x{v}x{n}xf32>
}}"""


def test_beside_a_concat_one_of_both_is_read_through(tmp_path: Path):
    """Panels of the filter would reach over the parts of the image."""
    h, w, c, d = (int(RNG.integers(8, 30)) for _ in range(4))
    text = CONCAT.format(h=h, w=w, c=c, d=d, n=c + d, u=h - 2, v=w - 2)
    shapes = {"a": (1, h, w, c), "b": (1, h, w, d), "f": (3, 3, c + d)}
    feeds = {name: RNG.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    program = _compiled(text, {**feeds, "f": feeds["f"].astype(np.float16)}, tmp_path)
    missed = [decision.code for decision in program.decisions if decision.verdict == "missed"]
    assert program.stats["dispatches"] == 2 and missed == ["recompute"]
