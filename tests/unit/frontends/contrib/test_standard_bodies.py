"""Bodies of operators that the standard has, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuseline.frontends.onnx.contrib_bodies import contrib_body
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from tests.unit.frontends.contrib.bodies import RNG, agrees, call, normal, ran


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_unit_dimension(axis: int) -> None:
    x = normal(3, 4)
    agrees(call("ExpandDims", [x.shape, np.array(axis, np.int32)]), [x, np.array(axis)], np.expand_dims(x, axis))
    with pytest.raises(NoNativeLowering, match="runtime-value"):
        contrib_body(call("ExpandDims", [x.shape, Tensor(np.dtype(np.int32), ())]))


@pytest.mark.parametrize("flat", [True, False])
def test_borders(flat: bool) -> None:
    x, pads, value = normal(3, 4), np.array([1, 0, 0, 2]), np.array([2.5], np.float32)
    given = pads if flat else pads[None]
    wanted = np.pad(x, [(1, 0), (0, 2)], constant_values=2.5)
    agrees(call("Pad", [x.shape, given, value]), [x, given, value], wanted)
    agrees(call("Pad", [x.shape, given], mode="edge"), [x, given], np.pad(x, [(1, 0), (0, 2)], mode="edge"))


def test_maxima_with_channels_last() -> None:
    x = normal(2, 4, 6, 3)
    node = call("NhwcMaxPool", [x.shape], kernel_shape=[2, 3], strides=[2, 3])
    agrees(node, [x], x.reshape(2, 2, 2, 2, 3, 3).max((2, 4)))


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
def test_distances_of_rows(metric: str) -> None:
    x, y = normal(3, 5), normal(4, 5)
    squares = ((x[:, None] - y[None]) ** 2).sum(-1)
    node = call("CDist", [x.shape, y.shape], metric=metric)
    agrees(node, [x, y], np.sqrt(squares) if metric == "euclidean" else squares)


@pytest.mark.parametrize(("mode", "later"), [("bilinear", "linear"), ("bicubic", "cubic"), ("nearest", "nearest")])
def test_the_later_names_of_modes(mode: str, later: str) -> None:
    found = contrib_body(call("GridSample", [(1, 1, 3, 3), (1, 2, 2, 2)], mode=mode, align_corners=1))
    assert found is not None
    (node,) = found[0]
    assert (node.attributes["mode"].as_string(), node.attributes["align_corners"].as_int()) == (later, 1)
    found = contrib_body(call("GridSample", [(1, 1, 3, 3), (1, 2, 2, 2)]))
    assert found is not None and next(iter(found[0])).attributes["mode"].as_string() == "linear"


@pytest.mark.parametrize("axis", [0, 1, 2, None])
def test_shares_of_all_that_follow(axis: int | None) -> None:
    """In bytes: real numbers are (byte - zero) * scale."""
    x = RNG.integers(0, 256, (2, 3, 4)).astype(np.uint8)
    scale, zero = np.float32(0.05), np.uint8(100)
    out, start = [np.float32(1 / 256), np.uint8(3)], np.uint8(3)
    inputs = [Tensor(np.dtype(np.uint8), x.shape), *map(np.asarray, (scale, zero, *out))]
    node = call("QLinearSoftmax", inputs, **dict[str, Any]({} if axis is None else {"axis": axis}))
    real = ((x.astype(np.float32) - zero) * scale).reshape(int(np.prod(x.shape[: 1 if axis is None else axis])), -1)
    shares = np.exp(real) / np.exp(real).sum(1, keepdims=True)
    wanted = np.clip(np.rint(shares * 256) + start, 0, 255).reshape(x.shape)
    (found,) = ran(node, x, *map(np.asarray, (scale, zero, *out)))
    assert np.abs(found.astype(int) - wanted).max() <= 1


def test_choices_of_bytes() -> None:
    c = RNG.integers(0, 2, (3, 4)).astype(bool)
    x, y = (RNG.integers(0, 256, (3, 4)).astype(np.uint8) for _ in range(2))
    scales = [np.float32(0.5), np.uint8(10)], [np.float32(0.25), np.uint8(0)], [np.float32(1), np.uint8(5)]
    arrays = [c, x, *scales[0], y, *scales[1], *scales[2]]
    arrays = [np.asarray(array) for array in arrays]
    real = np.where(c, (x.astype(float) - 10) * 0.5, y * 0.25)
    (found,) = ran(call("QLinearWhere", [Tensor(a.dtype, a.shape) for a in arrays]), *arrays)
    np.testing.assert_array_equal(found, np.clip(np.rint(real) + 5, 0, 255))
