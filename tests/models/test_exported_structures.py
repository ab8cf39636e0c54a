"""Structures that exporters make of real models: each is compiled whole for both targets and compared with onnxruntime
at several sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from tests.graphs.onnx_builder import FLOAT, Builder, Shape

ort = pytest.importorskip("onnxruntime")

Feeds = Mapping[str, np.ndarray[Any, Any]]


def model(b: Builder, inputs: dict[str, Shape], *outputs: str) -> onnx.ModelProto:
    """The model of `b`; onnxruntime infers the outputs' types."""
    return b.model({name: (FLOAT, shape) for name, shape in inputs.items()}, outputs)


def normal(shape: Sequence[int], seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def agree(
    proto: onnx.ModelProto, *runs: Feeds, tolerance: float = 1e-5, **options: Any
) -> list[fuseline.CompiledModel]:
    """Both targets' programs, after they agreed with onnxruntime on every one of `runs`."""
    reference = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    programs = [fuseline.compile(proto, target=target, threads=1, **options) for target in ("cpu", "interpreter")]
    for feeds in runs:
        expected = reference.run(None, dict(feeds))
        for program in programs:
            for ours, theirs in zip(program.run(feeds).values(), expected, strict=True):
                assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
                np.testing.assert_allclose(
                    ours, theirs, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(theirs).max(initial=0.0)))
                )
    return programs


def host_ops(program: fuseline.CompiledModel) -> list[str]:
    return [op.op_type for op in program.record.host_ops]


def test_a_gate_by_the_mean_of_an_image_of_unknown_size():
    """Squeeze and excitation: the count that the mean divides by is known at run time only, and goes into the dispatch
    of the convolution."""
    b = Builder()
    image = b.node("Conv", "x", b.weight(8, 3, 3, 3), pads=[1, 1, 1, 1])
    small = b.node("ReduceMean", image, b.constant([2, 3]), keepdims=1)
    y = b.node("Mul", image, b.node("HardSigmoid", b.node("Conv", small, b.weight(8, 8, 1, 1))))
    runs = [{"x": normal((2, 3, 9, 7))}, {"x": normal((1, 3, 16, 21), 1)}]
    for program in agree(model(b, {"x": ("n", 3, "h", "w")}, y), *runs):
        assert host_ops(program) == []


def test_arms_are_not_joined_across_a_size_that_a_host_op_finds():
    """The count of nonzeros is made from the size of what the host answers: it may not join the dispatch that the host
    reads from."""
    b = Builder()
    made = b.node("Exp", "x")
    found = b.node("NonZero", made)
    count = b.node("Cast", b.node("Gather", b.node("Shape", found), b.constant(1)), to=FLOAT)
    y = b.node("Mul", count, b.constant(np.float32(0.5)))
    agree(model(b, {"x": (1,)}, y, made), {"x": normal((1,))}, {"x": normal((1,)) - 1000})


def test_a_window_over_a_size_that_is_too_small_where_nothing_is_known():
    """Frames of a signal: at the size that stands for unknown ones the second convolution would have no output."""
    b = Builder()
    frames = b.node("Conv", "x", b.weight(16, 1, 256), strides=[128])
    y = b.node("Conv", frames, b.weight(16, 16, 3))
    agree(
        model(b, {"x": ("n", 1, "length")}, y),
        {"x": normal((1, 1, 1024))},
        {"x": normal((2, 1, 777), 1)},
        tolerance=2e-5,
    )


def _anchors(b: Builder, image: str, step: float) -> str:
    """The centres of the pixels of an image whose size is counted in floats, as detectors make them."""
    axes: list[str] = []
    for axis in (2, 3):
        size = b.node("Cast", b.node("Gather", b.node("Shape", image), b.constant(axis)), to=FLOAT)
        scaled = b.node("Div", b.node("Mul", size, b.constant(np.float32(2))), b.constant(np.float32(2)))
        axes.append(
            b.node(
                "Add",
                b.node("Range", b.constant(np.float32(0)), scaled, b.constant(np.float32(1))),
                b.constant(np.float32(step)),
            )
        )
    grid = b.node("Add", b.node("Unsqueeze", axes[0], b.constant([1])), b.node("Unsqueeze", axes[1], b.constant([0])))
    return b.node("Reshape", grid, b.constant([-1]))


def test_anchors_counted_in_floats_are_native():
    b = Builder()
    small = b.node("MaxPool", "x", kernel_shape=[2, 2], strides=[2, 2])
    y = b.node("Concat", _anchors(b, "x", 0.5), _anchors(b, small, 0.25), axis=0)
    for program in agree(
        model(b, {"x": (1, 2, "h", "w")}, y), {"x": normal((1, 2, 6, 8))}, {"x": normal((1, 2, 5, 9))}
    ):
        assert host_ops(program) == []


def test_a_range_between_fractions_and_sizes_is_left_to_the_host():
    b = Builder()
    size = b.node("Cast", b.node("Gather", b.node("Shape", "x"), b.constant(0)), to=FLOAT)
    half = b.node("Range", b.constant(np.float32(0)), size, b.constant(np.float32(0.5)))
    late = b.node("Range", b.constant(np.float32(0.25)), size, b.constant(np.float32(1)))
    agree(model(b, {"x": ("n",)}, half, late), {"x": normal((3,))}, {"x": normal((5,))})


def test_sizes_called_question_mark_are_not_equal():
    b = Builder()
    y = b.node("Conv", "x", b.weight(4, 2, 3, 3))
    (program, _) = agree(
        model(b, {"x": ("?", 2, "?", "?")}, y), {"x": normal((1, 2, 6, 9))}, {"x": normal((3, 2, 5, 5))}
    )
    assert program.inputs[0].shape == ("x_0", 2, "x_2", "x_3")


def test_a_size_counted_in_floats_scales_elements():
    b = Builder()
    count = b.node("Cast", b.node("Gather", b.node("Shape", "x"), b.constant(1)), to=FLOAT)
    agree(model(b, {"x": (2, "n")}, b.node("Div", "x", count)), {"x": normal((2, 3))}, {"x": normal((2, 40))})


def test_a_part_of_a_concat_is_one_number_under_another_shape():
    """Index pairs as exporters make them for scatters: one column counts, the other repeats."""
    b = Builder()
    found = b.node("Transpose", b.node("NonZero", "x"), perm=[1, 0])
    zeros = b.node("Expand", b.constant(0), b.node("Shape", found))
    pair = (b.node("Unsqueeze", column, b.constant([-1])) for column in (zeros, found))
    agree(
        model(b, {"x": (4,)}, b.node("Concat", *pair, axis=-1)), {"x": normal((4,))}, {"x": np.maximum(normal((4,)), 0)}
    )


def test_a_slice_to_a_far_end_keeps_a_symbolic_size():
    """tf2onnx writes 10**9 for "to the end": the rows are those of the input, so they add to it natively."""
    b = Builder()
    rows = b.node("Slice", "x", b.constant([0, 1]), b.constant([10**9, 10**9]), b.constant([0, 1]))
    y = b.node("Add", rows, b.node("Slice", "x", b.constant([0]), b.constant([-1]), b.constant([1])))
    for program in agree(model(b, {"x": ("n", 5)}, y), {"x": normal((1, 5))}, {"x": normal((4, 5))}):
        assert host_ops(program) == []
        assert program.outputs[0].shape == ("n", 4)


def _shuffled(b: Builder, image: str, spelling: str, groups: int, channels: int) -> str:
    """`image`, of 9 by 7 pixels where reshapes spell it, with its channels in rows read by columns."""
    columns = channels // groups
    if spelling == "reshapes":
        opened = b.node("Reshape", image, b.constant([1, groups, columns, 9, 7]))
        turned = b.node("Transpose", opened, perm=[0, 2, 1, 3, 4])
        return b.node("Reshape", turned, b.constant([1, channels, 9, 7]))
    order = [row * columns + column for column in range(columns) for row in range(groups)]
    places = [(c, channels, columns) for c in range(columns)] if spelling == "steps" else [(c, c + 1, 1) for c in order]
    parts = [
        b.node("Slice", image, b.constant([start]), b.constant([end]), b.constant([1]), b.constant([step]))
        for start, end, step in places
    ]
    return b.node("Concat", *parts, axis=1)


def _shuffling(spelling: str, groups: int, channels: int, *pixels: int | str) -> onnx.ModelProto:
    b = Builder()
    image = b.node("Relu", b.node("Conv", "x", b.weight(channels, 5, 1, 1)))
    turned = _shuffled(b, image, spelling, groups, channels)
    y = b.node("Conv", turned, b.weight(channels, 1, 3, 3), group=channels, pads=[1, 1, 1, 1])
    return model(b, {"x": (1, 5, *pixels)}, y)


@pytest.mark.parametrize("spelling", ["steps", "single"])
@pytest.mark.parametrize(("groups", "channels"), [(2, 8), (3, 12), (2, 24)])
def test_a_channel_shuffle_spelt_by_slices(spelling: str, groups: int, channels: int):
    """Slices and a concat between two convolutions are the transposition that reshapes would say, of any number of
    slices, and become the same dispatches."""
    runs = [{"x": normal((1, 5, 9, 7))}, {"x": normal((1, 5, 16, 21), 1)}]
    for program in agree(_shuffling(spelling, groups, channels, "h", "w"), *runs):
        assert host_ops(program) == []
    sliced, reshaped = (
        agree(_shuffling(name, groups, channels, 9, 7), runs[0])[0].record for name in (spelling, "reshapes")
    )
    assert [d.root for d in sliced.dispatches] == [d.root for d in reshaped.dispatches]
