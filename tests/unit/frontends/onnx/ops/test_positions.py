"""Operators that read and write at computed places, or between the elements of an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from fuseline.frontends.onnx import read_onnx
from fuseline.frontends.onnx.ops import (
    affine_grid,
    computed_positions,
    grid_sample,
    indexing,
    resampling,
    resize,
    scatter,
    selection,
    symbolic_resampling,
)
from fuseline.frontends.onnx.tensors import NoNativeLowering
from fuseline.ir.context import new_context
from fuseline.ir.dim import evaluate, symbol
from tests.one_node import by_onnxruntime, feeds_of, one_node
from tests.unit.frontends.onnx.ops.lowerings import (
    F32,
    RNG,
    Array,
    agree,
    error,
    ints,
    model_of,
    normal,
    operators_of,
    refusal,
)

SYMBOLS = pytest.mark.parametrize("free", [(), (0,)])
CONSTANT = pytest.mark.parametrize("constants", [(), (1,)])


def test_what_is_lowered_here() -> None:
    assert operators_of(indexing) == {"Gather", "GatherElements", "GatherND", "Trilu"}
    assert operators_of(scatter) == {"Scatter", "ScatterElements", "ScatterND"}
    assert operators_of(selection) == {"BitCast", "OneHot", "ReverseSequence"}
    assert operators_of(grid_sample) == {"GridSample"}
    assert operators_of(resize) == {"Resize", "Upsample"}
    assert operators_of(affine_grid) == {"AffineGrid"}
    assert not operators_of(computed_positions) | operators_of(resampling) | operators_of(symbolic_resampling)


# -- reading -----------------------------------------------------------------------------------------------------------


@CONSTANT
@SYMBOLS
def test_slices_at_indices(constants: Sequence[int], free: Sequence[int]) -> None:
    x = normal(4, 5)
    for axis, at in ((0, ints(-4, 4, 3)), (1, ints(-5, 5, 2, 2)), (-1, np.array(3))):
        agree("Gather", [x, at], {"axis": axis}, constants=constants, free=free)
    agree("Gather", [x, ints(0, 4, 3, dtype=np.int32)], constants=constants, free=free)


def looks_up(x: Array, at: Array, axis: int) -> bool:
    """Whether the lowering of a Gather at constant indices, which answers what onnxruntime does, reads at computed
    places."""
    agree("Gather", [x, at], {"axis": axis}, constants=(1,))
    module = read_onnx(model_of("Gather", [x, at], {"axis": axis}, constants=(1,)), new_context())
    return any(op.name == "tensor.extract" for op in module.walk())


@pytest.mark.parametrize("axis", range(3))
def test_constant_indices_in_equal_steps_are_a_slice(axis: int) -> None:
    first, count, step = (int(RNG.integers(low, 5)) for low in (0, 1, 1))
    at = first + step * np.arange(count)
    size = int(at.max() + RNG.integers(1, 4))
    x = normal(*(size if i == axis else 3 for i in range(3)))
    assert not looks_up(x, at, axis)
    assert not looks_up(x, at - size, axis)
    assert looks_up(x, np.append(at[::-1], at), axis)


def test_steps_that_lead_outside_are_looked_up() -> None:
    x = normal(4, 3)
    agree("Gather", [x, np.array([1, 3, 5])], constants=(1,), wanted=[x[[1, 3, 3]]])
    agree("Gather", [x, np.array([-6, -5, -4])], constants=(1,), wanted=[x[[0, 0, 0]]])


@pytest.mark.parametrize("axis", range(3))
def test_constant_indices_that_shuffle_channels_are_a_transposition(axis: int) -> None:
    """But innermost, where neighbours would be stored apart."""
    rows, columns = (int(RNG.integers(2, 6)) for _ in range(2))
    at = np.arange(rows * columns).reshape(rows, columns).T.ravel()
    x = normal(*(at.size if i == axis else 3 for i in range(3)))
    assert looks_up(x, at, axis) == (axis == 2)
    agree("Gather", [x, at], {"axis": axis}, constants=(1,), free=() if axis == 2 else (0,))
    assert looks_up(x, np.roll(at, 1), axis)


def test_indices_outside_are_moved_to_the_nearest_end() -> None:
    x = normal(4, 3)
    agree("Gather", [x, np.array([9, -9, 1])], wanted=[x[[3, 0, 1]]])
    agree("GatherElements", [x, np.array([[9, -9, 1]])], wanted=[x[[[3, 0, 1]], [[0, 1, 2]]]])
    words = "index 4 lies outside a constant of 4 along the axis"
    error("E0105", words, "Gather", [x, np.array([0, 4])], constants=(0, 1))


@CONSTANT
@SYMBOLS
def test_elements_at_indices(constants: Sequence[int], free: Sequence[int]) -> None:
    x = normal(3, 4)
    agree("GatherElements", [x, ints(-4, 4, 3, 6)], {"axis": 1}, constants=constants, free=free)
    agree("GatherElements", [x, ints(-3, 3, 2, 4)], constants=constants)


@CONSTANT
@pytest.mark.parametrize(("batch", "at"), [(0, (5, 2)), (0, (2, 3, 1)), (1, (3, 2, 1)), (2, (3, 4, 1)), (0, (5, 3))])
def test_slices_at_spelled_places(batch: int, at: tuple[int, ...], constants: Sequence[int]) -> None:
    agree("GatherND", [normal(3, 4, 5), ints(-3, 3, *at)], {"batch_dims": batch}, constants=constants)


@pytest.mark.parametrize(("batch", "at"), [(3, (3, 4, 5, 1)), (0, (5, 4)), (2, (3, 4, 2))])
def test_places_that_do_not_fit(batch: int, at: tuple[int, ...]) -> None:
    words = "do not fit data"
    error("E0107", words, "GatherND", [normal(3, 4, 5), ints(0, 2, *at)], {"batch_dims": batch})


@pytest.mark.parametrize("k", [None, 0, 2, -1, 2**62])
@pytest.mark.parametrize("upper", [0, 1])
@SYMBOLS
def test_triangles(k: int | None, upper: int, free: Sequence[int]) -> None:
    x = normal(2, 4, 5)
    inputs = [x] if k is None else [x, np.array(k)]
    shift = min(k or 0, 99)
    wanted = np.triu(x, shift) if upper else np.tril(x, shift)
    agree("Trilu", inputs, {"upper": upper}, wanted=[wanted], constants=() if k is None else (1,), free=free)


# -- writing -----------------------------------------------------------------------------------------------------------

KINDS = pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])


@KINDS
@CONSTANT
@pytest.mark.parametrize("dtype", ["float32", "int64", "float16"])
def test_updates_along_an_axis(reduction: str, dtype: str, constants: Sequence[int]) -> None:
    x = ints(-9, 9, 4, 5, dtype=dtype)
    for axis, shape, size in ((0, (3, 5), 4), (1, (4, 3), 5)):
        at = np.argsort(RNG.random((size, 5) if axis == 0 else (4, size)), axis=axis).take(range(3), axis)
        updates = ints(-3, 4, *shape, dtype=dtype)
        inputs, attributes = [x, at, updates], {"axis": axis, "reduction": reduction}
        found = x.copy()
        where: list[Any] = list(np.indices(shape, sparse=True))
        where[axis] = at
        if reduction == "none":
            found[tuple(where)] = updates
        else:
            function = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[reduction]
            function.at(found, tuple(where), updates)
        agree("ScatterElements", inputs, attributes, wanted=[found], constants=constants)


@KINDS
@CONSTANT
def test_updates_of_slices(reduction: str, constants: Sequence[int]) -> None:
    x = normal(4, 5, 3)
    rows = RNG.permutation(4)[:2].reshape(2, 1)
    agree("ScatterND", [x, rows, normal(2, 5, 3)], {"reduction": reduction}, constants=constants)
    pairs = np.stack([RNG.permutation(4)[:3], RNG.integers(0, 5, 3)], -1)
    agree("ScatterND", [x, pairs, normal(3, 3)], {"reduction": reduction}, constants=constants)


def test_several_updates_of_one_place() -> None:
    x, at, updates = normal(4), np.array([1, 1, 3, 1]), normal(4)
    last = x.copy()
    last[[1, 3]] = updates[[3, 2]]
    for constants in ((), (1,)):
        agree("ScatterElements", [x, at, updates], wanted=[last], constants=constants)
        total = x.copy()
        np.add.at(total, at, updates)
        agree("ScatterElements", [x, at, updates], {"reduction": "add"}, wanted=[total], constants=constants)
    truth = np.array([False, True, False, False])
    flips = np.array([True, True, False, False])
    wanted = truth.copy()
    wanted[3], wanted[1] = truth[3] | flips[2], True
    agree("ScatterElements", [truth, at, flips], {"reduction": "add"}, wanted=[wanted], opset=18)


def test_updates_that_do_not_fit() -> None:
    x, at = normal(4, 5), np.array([[0], [2]])
    error("E0107", r"updates have sizes \[3, 5\]", "ScatterND", [x, at, normal(3, 5)])
    error("E0107", "indices of 3 axes for data of 2", "ScatterND", [x, ints(0, 2, 2, 3), normal(2)])
    error("E0107", r"updates have sizes \[2, 4\]", "ScatterElements", [x, ints(0, 2, 2, 5), normal(2, 4)])
    outside = [x, np.array([[0], [4]]), normal(2, 5)]
    error("E0107", "ScatterND writes outside of sizes", "ScatterND", outside, constants=(1,))


# -- choosing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("values", ["float32", "int64"])
def test_ones_at_an_index(axis: int, values: str) -> None:
    at = np.array([[0, -1, 7], [2, 3, -9]])
    inputs = [at, np.array(4), np.array([3, 5], values)]
    agree("OneHot", inputs, {"axis": axis}, constants=(1,))
    wanted = by_onnxruntime(one_node("OneHot", inputs, {"axis": axis}), feeds_of(inputs))
    agree("OneHot", [at.astype(F32), *inputs[1:]], {"axis": axis}, wanted=wanted, constants=(1, 2))


@pytest.mark.parametrize(("time", "batch"), [(0, 1), (1, 0)])
@SYMBOLS
def test_the_first_elements_in_reverse(time: int, batch: int, free: Sequence[int]) -> None:
    x = normal(4, 4, 3)
    lengths = np.array([1, 4, 2, 3])
    agree("ReverseSequence", [x, lengths], {"time_axis": time, "batch_axis": batch}, free=free)
    one = refusal("ReverseSequence", [x, lengths], {"time_axis": 1, "batch_axis": 1})
    assert one == "axis-out-of-range: one axis for time and batch"


@pytest.mark.parametrize(
    ("source", "target"), [("float32", "int32"), ("int64", "float64"), ("uint8", "int8"), ("int16", "float16")]
)
def test_bits_as_another_type(source: str, target: str) -> None:
    number = {"int32": 6, "float64": 11, "int8": 3, "float16": 10}[target]
    x = RNG.integers(0, 100, (3, 4)).astype(source)
    agree("BitCast", [x], {"to": number}, wanted=[x.view(target)], opset=26)
    assert refusal("BitCast", [normal(3)], {"to": 11}, opset=26) == "element-type: DOUBLE"


# -- between the elements ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [0, 1])
def test_images_at_the_places_of_a_grid(mode: str, padding: str, align: int) -> None:
    attributes = {"mode": mode, "padding_mode": padding, "align_corners": align}
    inputs = [normal(2, 3, 4, 5), RNG.uniform(-1.5, 1.5, (2, 3, 2, 2)).astype(F32)]
    agree("GridSample", inputs, attributes, opset=20, rtol=1e-3, atol=1e-3)
    agree("GridSample", inputs, attributes, opset=20, free=(0,), rtol=1e-3, atol=1e-3)


def test_grids_that_are_refused() -> None:
    whole, grid = ints(0, 9, 1, 1, 3, 3), normal(1, 2, 2, 2)
    assert refusal("GridSample", [whole, grid], {"mode": "linear"}, opset=20).startswith("unsupported-mode: linear in")


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("sizes", [(2, 1, 3, 4), (2, 1, 3, 2, 4)])
def test_places_of_regular_grids(align: int, sizes: tuple[int, ...]) -> None:
    rank = len(sizes) - 2
    theta = normal(2, rank, rank + 1)
    agree("AffineGrid", [theta, np.array(sizes)], {"align_corners": align}, opset=20, constants=(1,))
    odd = [normal(2, rank, rank), np.array(sizes)]
    error("E0107", f"for {rank} spatial axes", "AffineGrid", odd, opset=20, constants=(1,))
    negative = [theta, np.array([2, 1, *[-3] * rank])]
    error("E0107", "a grid of", "AffineGrid", negative, opset=20, constants=(1,))
    large = [normal(2, 2, 3), np.array([2, 1, 1 << 11, 1 << 10])]
    assert refusal("AffineGrid", large, opset=20, constants=(1,)).startswith("large-constant: a grid of")


SCALES, SIZES = np.array([1, 1, 1.6, 0.5], F32), np.array([1, 2, 7, 4])


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("positions", ["half_pixel", "pytorch_half_pixel", "align_corners", "half_pixel_symmetric"])
def test_images_resized(mode: str, positions: str) -> None:
    x = normal(1, 2, 5, 6)
    attributes = {"mode": mode, "coordinate_transformation_mode": positions}
    if positions != "half_pixel_symmetric":
        agree("Resize", [x, None, SCALES], attributes, constants=(2,), rtol=1e-4, atol=1e-4)
    agree("Resize", [x, None, None, SIZES], attributes, constants=(3,), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "more",
    [
        {"mode": "linear", "antialias": 1},
        {"mode": "cubic", "exclude_outside": 1, "cubic_coeff_a": -0.5},
        {"mode": "nearest", "nearest_mode": "ceil"},
        {"mode": "nearest", "nearest_mode": "round_prefer_ceil"},
        {"mode": "linear", "keep_aspect_ratio_policy": "not_larger"},
        {"mode": "linear", "keep_aspect_ratio_policy": "not_smaller"},
    ],
)
def test_ways_to_resize(more: Mapping[str, Any]) -> None:
    axes = {"axes": [2, 3]}
    agree("Resize", [normal(1, 2, 5, 6), None, None, SIZES[2:]], {**axes, **more}, constants=(3,), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_images_of_older_models(mode: str) -> None:
    x, scales = normal(1, 1, 4, 6), np.array([1, 1, 2, 3], F32)
    agree("Upsample", [x, scales], {"mode": mode}, constants=(1,), opset=9, rtol=1e-4)
    agree("Resize", [x, scales], {"mode": mode}, constants=(1,), opset=10, rtol=1e-4)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("positions", ["half_pixel", "asymmetric", "align_corners"])
def test_images_of_symbolic_sizes(mode: str, positions: str) -> None:
    x, scales = normal(1, 2, 5, 6), np.array([1, 1, 2, 0.5], F32)
    attributes = {"mode": mode, "coordinate_transformation_mode": positions, "nearest_mode": "floor"}
    agree("Resize", [x, None, scales], attributes, constants=(2,), free=(0,), rtol=1e-4, atol=1e-4)


def test_images_that_are_refused() -> None:
    x = normal(1, 1, 4, 4)
    for scales in ([1, 1, 0, 2], [1, 1, -1, 2], [1, 1, np.inf, 2]):
        error("E0107", "are not all positive", "Resize", [x, None, np.array(scales, F32)], constants=(2,))
    odd = [x, None, np.array([1, 1, 1.2345678, 1], F32)]
    assert refusal("Resize", odd, constants=(2,), free=(0,)).startswith("symbolic-resize: a symbolic size")
    two = [x, None, np.array([1, 1, 2, 2], F32)]
    words = "symbolic-resize: weights that sum up to one only with their neighbours"
    assert refusal("Resize", two, {"mode": "linear", "antialias": 1}, constants=(2,), free=(0,)) == words


# -- tables ------------------------------------------------------------------------------------------------------------


def test_sizes_times_fractions() -> None:
    n = symbol("n")
    for scale, wanted in ((2.0, lambda k: 2 * k), (0.5, lambda k: k // 2), (1.5, lambda k: 3 * k // 2)):
        size = symbolic_resampling.scaled_size(n, scale)
        assert [evaluate(size, {"n": k}) for k in range(1, 9)] == [wanted(k) for k in range(1, 9)]
    for scale in (1.2345678, -1.0, 0.0):
        with pytest.raises(NoNativeLowering):
            symbolic_resampling.scaled_size(n, scale)


def test_shares_of_the_elements_around_a_place() -> None:
    at = np.array([-0.25, 0.25, 1.0, 2.6])
    for mode in ("linear", "cubic"):
        positions, weights = resampling.taps(resampling.Resampling(mode, "asymmetric"), at, 4, 2.0)
        np.testing.assert_allclose(weights.sum(1), 1)
        assert positions.min() >= 0 and positions.max() <= 3
        inside = slice(1, 3) if mode == "linear" else slice(2, 3)
        np.testing.assert_allclose((positions * weights).sum(1)[inside], at[inside], atol=1e-9)
    _, shrunk = resampling.taps(resampling.Resampling("linear", "asymmetric", antialias=True), at, 4, 0.5)
    assert shrunk.shape[1] > 2
    np.testing.assert_allclose(shrunk.sum(1), 1)


def test_nearest_elements() -> None:
    at = np.array([-1.0, 0.5, 1.5, 2.4, 9.0])
    rounded = {
        "floor": [0, 0, 1, 2, 3],
        "ceil": [0, 1, 2, 3, 3],
        "round_prefer_floor": [0, 0, 1, 2, 3],
        "round_prefer_ceil": [0, 1, 2, 2, 3],
    }
    for mode, wanted in rounded.items():
        assert resampling.nearest_positions(at, 4, mode).tolist() == wanted
    old = resampling.Resampling("nearest", "asymmetric")
    assert [old.rounding(scale) for scale in (0.5, 1.0, 2.0, None)] == ["ceil", "floor", "floor", "floor"]
    assert resampling.Resampling("nearest", "asymmetric", "ceil").rounding(2.0) == "ceil"
