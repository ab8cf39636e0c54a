"""Maxima of an argument that is rounded: read as it is, and rounded behind, with the numbers of before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.api import emit
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.one_node import by_onnxruntime


def _pooled(element: Any, size: tuple[int, int, int], window: int, stride: int) -> tuple[Any, NDArray[Any]]:
    pads = ", ".join([str(window // 2)] * 4)
    text = f"(float[1, {size[0]}, {size[1]}, {size[2]}] x) => (float[] y) {{"
    text += "  q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)"
    text += f"  m = MaxPool<kernel_shape=[{window}, {window}], pads=[{pads}], strides=[{stride}, {stride}]>(d)"
    text += "  r = QuantizeLinear(m, s, z)  y = DequantizeLinear(r, s, z) }"
    zero = np.iinfo(element).min + int(RNG.integers(90, 170))
    model = onnx_model(text, {"s": np.float32(RNG.uniform(0.01, 0.05)), "z": np.asarray(zero, element)}, opset=20)
    return model, RNG.normal(0, 2, (1, *size)).astype(np.float32)


@pytest.mark.parametrize("element", [np.uint8, np.int8])
@pytest.mark.parametrize("stride", [1, 2])
def test_results_are_those_of_the_model(element: Any, stride: int):
    channels, height, width = (int(n) for n in RNG.integers((1, 5, 5), (20, 40, 40)))
    model, x = _pooled(element, (channels, height, width), int(RNG.choice([2, 3, 5])), stride)
    program = fuseline.compile(model, threads=int(RNG.integers(1, 3)))
    assert program.stats["dispatches"] == 1
    (found,) = program.run({"x": x}).values()
    np.testing.assert_array_equal(found, by_onnxruntime(model, {"x": x})[0])


@pytest.mark.parametrize("element", [np.uint8, np.int8])
def test_maxima_of_integers_are_those_of_what_they_round(element: Any):
    """As operators of integers have them: with their order, and a border below all of them. NaN is the least there
    is."""
    channels, height, width = (int(n) for n in RNG.integers((1, 5, 5), (20, 40, 40)))
    text = f"(float[1, {channels}, {height}, {width}] x) => ({'uint8' if element is np.uint8 else 'int8'}[] y) {{"
    text += "  q = QuantizeLinear(x, s, z)  y = MaxPool<kernel_shape=[3, 3], pads=[1, 1, 1, 1]>(q) }"
    zero = np.iinfo(element).min + int(RNG.integers(0, 256))
    model = onnx_model(text, {"s": np.float32(RNG.uniform(0.01, 0.05)), "z": np.asarray(zero, element)}, opset=20)
    x = RNG.normal(0, 2, (1, channels, height, width)).astype(np.float32)
    x[:, :, ::4, ::3], x[:, 0, :4, :4] = np.nan, np.nan
    program = fuseline.compile(model, threads=int(RNG.integers(1, 3)))
    assert program.stats["dispatches"] == 1
    before = fuseline.compile(model, target="interpreter", passes="form-dispatch-regions")
    np.testing.assert_array_equal(program.run({"x": x})["y"], before.run({"x": x})["y"])


_SIGNED = """
func.func @main(%x: tensor<9x12xf32>) -> tensor<7x10xi8> {
  %e = tensor.empty() : tensor<9x12xi8>
  %q = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]}
       ins(%x : tensor<9x12xf32>) outs(%e : tensor<9x12xi8>) {
  ^bb0(%a: f32, %o: i8):
    %low = arith.constant LEAST : f32
    %high = arith.constant MOST : f32
    %r = math.roundeven %a : f32
    %s = arith.maxnumf %r, %low : f32
    %t = arith.minnumf %s, %high : f32
    %w = arith.fptosi %t : f32 to i32
    %n = arith.trunci %w : i32 to i8
    linalg.yield %n : i8
  } -> tensor<9x12xi8>
  %c = arith.constant -128 : i8
  %g = tensor.empty() : tensor<7x10xi8>
  %f = linalg.fill ins(%c : i8) outs(%g : tensor<7x10xi8>) -> tensor<7x10xi8>
  %k = tensor.empty() : tensor<3x3xi8>
  %m = linalg.generic {indexing_maps = [affine_map<(i, j, u, v) -> (i + u, j + v)>, affine_map<(i, j, u, v) -> (u, v)>,
                                        affine_map<(i, j, u, v) -> (i, j)>],
                       iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
       ins(%q, %k : tensor<9x12xi8>, tensor<3x3xi8>) outs(%f : tensor<7x10xi8>) {
  ^bb0(%a: i8, %d: i8, %o: i8):
    %n = arith.maxsi %o, %a : i8
    linalg.yield %n : i8
  } -> tensor<7x10xi8>
  return %m : tensor<7x10xi8>
}
"""


@pytest.mark.parametrize(("least", "most", "rounded_behind"), [(-128.0, 127.0, True), (0.0, 255.0, False)])
def test_integers_that_are_compared_as_others_stay(tmp_path: Path, least: float, most: float, rounded_behind: bool):
    """What is 0 to 255 is not, with a sign."""
    text = _SIGNED.replace("LEAST", str(least)).replace("MOST", str(most))
    (tmp_path / "m.mlir").write_text(text)
    program = fuseline.compile(tmp_path / "m.mlir", threads=1)
    assert ("arith.maxsi" not in emit(tmp_path / "m.mlir", "cleanup", threads=1)) is rounded_behind
    x = RNG.uniform(-300, 300, (9, 12)).astype(np.float32)
    before = fuseline.compile(tmp_path / "m.mlir", target="interpreter", passes="form-dispatch-regions")
    found, wanted = (next(iter(one.run({"x": x}).values())) for one in (program, before))
    np.testing.assert_array_equal(found, wanted)


def test_nan_and_infinities_are_rounded_as_before():
    """NaN is the least there is where it is rounded, so that it is no maximum."""
    model, x = _pooled(np.uint8, (3, 12, 13), 3, 1)
    x[:, :, ::4, ::3], x[:, :, 1::5, ::4], x[:, 1, 5:9, 4:9] = np.nan, np.inf, -np.inf
    x[:, 2, :6, :6] = np.nan
    programs = fuseline.compile(model, threads=1, passes="form-dispatch-regions"), fuseline.compile(model, threads=1)
    wanted, found = (next(iter(program.run({"x": x}).values())) for program in programs)
    np.testing.assert_array_equal(found, wanted)


def test_maxima_with_their_places_stay_as_they_are():
    """A body with two results is no maximum alone."""
    text = "(float[1, 3, 12, 13] x) => (float[] y, int64[] p) { q = QuantizeLinear(x, s, z)"
    text += "  d = DequantizeLinear(q, s, z)  y, p = MaxPool<kernel_shape=[3, 3], strides=[2, 2]>(d) }"
    model = onnx_model(text, {"s": np.float32(0.03), "z": np.uint8(120)}, opset=20)
    x = RNG.normal(0, 2, (1, 3, 12, 13)).astype(np.float32)
    found = fuseline.compile(model, threads=1).run({"x": x})
    for name, wanted in zip("yp", by_onnxruntime(model, {"x": x}), strict=True):
        np.testing.assert_array_equal(found[name], wanted)
