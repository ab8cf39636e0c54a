"""MaxPool with the places of its maxima, and MaxUnpool, natively and as onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.interop import onnx_host
from fuseline.interop.onnx_reference import evaluator
from tests.native import assert_as_onnxruntime, assert_same, native
from tests.one_node import by_onnxruntime, feeds_of, one_node

NAN = np.nan
WINDOWS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 3, 6, 8), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "one axis": ((2, 3, 9), {"kernel_shape": [3], "strides": [2], "pads": [1, 2], "dilations": [2]}),
    "padded": ((2, 3, 6, 7), {"kernel_shape": [3, 2], "pads": [2, 1, 1, 0], "strides": [1, 2]}),
    "dilated": ((1, 2, 7, 9), {"kernel_shape": [2, 3], "dilations": [3, 2], "pads": [1, 0, 0, 1]}),
    "hanging over": ((1, 2, 6, 8), {"kernel_shape": [3, 3], "strides": [2, 3], "ceil_mode": 1, "pads": [0, 1, 1, 0]}),
    "the same size": ((2, 2, 5, 6), {"kernel_shape": [2, 3], "strides": [2, 2], "auto_pad": "SAME_LOWER"}),
    "three axes": ((2, 2, 4, 5, 3), {"kernel_shape": [2, 3, 2], "strides": [2, 1, 1], "pads": [1, 0, 1, 0, 2, 1]}),
}


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("name", WINDOWS)
def test_places_of_maxima(name: str, order: int):
    """Of few numbers, so that several in a window are equal."""
    shape, attributes = WINDOWS[name]
    x = np.random.default_rng(3).integers(-3, 3, shape).astype(np.float32)
    assert_as_onnxruntime("MaxPool", [x], attributes=attributes | {"storage_order": order}, opset=12, outputs=2)


@pytest.mark.parametrize("dtype", [np.float64, np.int8, np.uint8])
def test_element_types(dtype: type[np.generic]):
    x = np.random.default_rng(5).integers(0, 90, (2, 2, 6, 5)).astype(dtype)
    x[0, 0] = np.iinfo(np.int8).min if dtype == np.int8 else 0  # nothing is larger than what a maximum starts from
    assert_as_onnxruntime(
        "MaxPool", [x], attributes={"kernel_shape": [3, 2], "pads": [1, 1, 1, 1]}, opset=12, outputs=2
    )


def _first_of_the_largest(row: Any, at: Any) -> int:
    """NaN where there is one, and never padding."""
    inside = np.flatnonzero(at >= 0)
    missing = inside[np.isnan(row[inside])]
    return int(missing[0] if len(missing) else inside[np.argmax(row[inside])])


@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 1, 1, 1]])
def test_what_is_no_number(pads: list[int]):
    """It is the maximum, the first of several; onnxruntime passes over some."""
    x = np.array([[NAN, 1, 2, NAN], [2, NAN, 1, NAN], [1, NAN, NAN, NAN], [-np.inf, -np.inf, 3, 4]], np.float32)[
        None, None
    ]
    model = one_node("MaxPool", [x], {"kernel_shape": [2, 2], "pads": pads}, opset=12, outputs=2)
    edge = pads[0]
    padded, numbers = (
        np.pad(x[0, 0], edge, constant_values=-np.inf),
        np.pad(np.arange(16).reshape(4, 4), edge, constant_values=-1),
    )
    windows, positions = (np.lib.stride_tricks.sliding_window_view(y, (2, 2)).reshape(-1, 4) for y in (padded, numbers))
    first = [_first_of_the_largest(row, at) for row, at in zip(windows, positions, strict=True)]
    shape = (1, 1, 3 + 2 * edge, 3 + 2 * edge)
    wanted = [np.array([row[k] for row, k in zip(y, first, strict=True)]).reshape(shape) for y in (windows, positions)]
    assert_same(native(model, feeds_of([x])), wanted)
    assert_same([onnx_host.execute(model.SerializeToString(), [x])] * 2, wanted)


def test_places_in_an_image_of_any_size():
    x = np.zeros((1, 2, 5, 7), np.float32)
    model = one_node(
        "MaxPool", [x], {"kernel_shape": [2, 3], "strides": [2, 2], "pads": [0, 1, 1, 1]}, opset=12, outputs=2
    )
    for axis, name in enumerate("nchw"):
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = name
    for shape in ((1, 2, 5, 7), (3, 1, 6, 4)):
        feeds = {"i0": np.random.default_rng(1).standard_normal(shape, np.float32)}
        assert_same(native(model, feeds), by_onnxruntime(model, feeds))


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_values_back_at_their_places(rank: int, given: bool):
    """Into an image of an odd size where its shape is given."""
    size, attributes = (
        [5, 7, 5][:rank] if given else [4, 6, 4][:rank],
        {"kernel_shape": [2] * rank, "strides": [2] * rank},
    )
    x = np.random.default_rng(2).standard_normal((2, 3, *size), np.float32)
    pooled = native(one_node("MaxPool", [x], attributes, opset=12, outputs=2), feeds_of([x]))[0]
    shape = [np.array(x.shape, np.int64)] if given else []
    assert_as_onnxruntime(
        "MaxUnpool", [*pooled, *shape], attributes=attributes, opset=11, constants=(2,) if given else ()
    )


@pytest.mark.parametrize("installed", [False, True])
def test_a_shape_that_is_fed_is_one_that_is_known(installed: bool):
    """On the host, whoever computes there."""
    attributes: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    x = np.random.default_rng(7).standard_normal((2, 3, 5, 7), np.float32)
    pooled = native(one_node("MaxPool", [x], attributes, opset=12, outputs=2), feeds_of([x]))[0]
    inputs = [*pooled, np.array(x.shape, np.int64)]
    held = one_node("MaxUnpool", inputs, attributes, opset=11, constants=(2,))
    expected = by_onnxruntime(held, feeds_of(inputs, (2,)))[0]
    fed = one_node("MaxUnpool", inputs, attributes, opset=11)
    if installed:
        program = fuseline.compile(fed, threads=1)
        assert [op.op_type for op in program.record.host_ops] == ["MaxUnpool"]
        found: Any = program.run(feeds_of(inputs))["o0"]
    else:
        found = evaluator(fed).run(None, feeds_of(inputs))[0]  # pyright: ignore[reportArgumentType] - a list
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(fuseline.compile(held, threads=1).run(feeds_of(inputs, (2,)))["o0"], expected)


def test_wild_places_stay_inside():
    positions = np.array([0, 15, -1, 16, -17, 2**62, -(2**63), 5], np.int64).reshape(1, 2, 4)
    model = one_node(
        "MaxUnpool", [np.ones((1, 2, 4), np.float32), positions], {"kernel_shape": [2], "strides": [2]}, opset=11
    )
    for target in ("interpreter", "cpu"):
        out = fuseline.compile(model, threads=1, target=target).run(
            {"i0": np.ones((1, 2, 4), np.float32), "i1": positions}
        )["o0"]
        assert sorted(np.flatnonzero(out)) == [0, 5, 15]
