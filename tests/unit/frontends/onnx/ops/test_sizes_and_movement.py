"""Operators of sizes, constants and movement: what each gives, and each refusal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from fuseline.frontends.onnx.ops import (
    borders,
    columns,
    constants,
    optional,
    padding,
    shape,
    slices,
    slicing,
    spreading,
)
from fuseline.ir.dim import symbol
from tests.graphs.custom_lowering import computed, read_with
from tests.unit.frontends.onnx.ops.lowerings import Array, agree, error, normal, operators_of, refusal

FAR = 2**62


def test_what_is_lowered_here() -> None:
    assert operators_of(constants) == {"Constant", "ConstantOfShape", "Dropout", "EyeLike", "Range", "Shape", "Size"}
    assert operators_of(optional) == {"OptionalGetElement", "OptionalHasElement"}
    assert operators_of(columns) == {"Col2Im"}
    assert operators_of(padding) == {"Pad"}
    assert operators_of(shape) >= {"Concat", "Expand", "Flatten", "Reshape", "Split", "Squeeze", "Tile", "Transpose"}
    assert operators_of(slicing) == {"Slice", "DynamicSlice"}


# -- constants ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attributes", "wanted"),
    [
        ({"value_float": 1.5}, np.float32(1.5)),
        ({"value_floats": [1.5, -2.0]}, np.array([1.5, -2], np.float32)),
        ({"value_int": 7}, np.int64(7)),
        ({"value_ints": [7, 8]}, np.array([7, 8])),
    ],
)
def test_constants(attributes: Mapping[str, Any], wanted: Any) -> None:
    agree("Constant", [], attributes, wanted=[np.asarray(wanted)])


def test_a_constant_that_no_tensor_holds() -> None:
    assert refusal("Constant", [], {"value_strings": ["a"]}) == "unsupported-constant: value_strings"


@pytest.mark.parametrize("attributes", [{}, {"start": 1}, {"start": -2, "end": -1}, {"end": 2}, {"start": 2, "end": 1}])
@pytest.mark.parametrize("free", [(), (0,)])
def test_sizes(attributes: Mapping[str, int], free: Sequence[int]) -> None:
    agree("Shape", [normal(2, 3, 5)], attributes, free=free)
    agree("Size", [normal(2, 3, 5)], free=free)


@pytest.mark.parametrize("sizes", [[2, 3], [], [0, 4], [5000]])
def test_one_value_everywhere(sizes: list[int]) -> None:
    agree("ConstantOfShape", [np.array(sizes, np.int64)], constants=(0,), wanted=[np.zeros(sizes, np.float32)])


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32", "float64"])
def test_ranges(dtype: str) -> None:
    for first, last, step in ((0, 7, 2), (5, -3, -2), (1, 1, 1), (0, 6000, 1)):
        numbers = [np.array(number, dtype) for number in (first, last, step)]
        agree("Range", numbers, wanted=[np.arange(first, last, step, dtype=dtype)], constants=(0, 1, 2))


@pytest.mark.parametrize("step", [1, 3, -2])
def test_ranges_up_to_a_size(step: int) -> None:
    ends = "zero, n, step" if step > 0 else "n, zero, step"
    text = f"(float[k, 4] x) => (y) {{ s = Shape<end = 1>(x) n = Squeeze(s) y = Range({ends}) }}"
    for k in (1, 4, 7):
        found = computed(text, lambda node: node[0], normal(k, 4), zero=np.array(0), step=np.array(step))[0]
        np.testing.assert_array_equal(found, np.arange(0, k, step) if step > 0 else np.arange(k, 0, step))


def test_ranges_without_an_end() -> None:
    one = np.array(1.0, np.float32)
    error("E0107", "steps of 0 has no end", "Range", [one, one, one * 0], constants=(2,))
    error("E0107", "from 1.0 to inf in steps of 1.0 has no end", "Range", [one, one * np.inf, one], constants=(0, 1, 2))
    assert refusal("Range", [np.array(0), np.array(5), np.array(1)], constants=(0, 1)).startswith("runtime-value")


@pytest.mark.parametrize("k", [-2, 0, 1])
@pytest.mark.parametrize("free", [(), (0,)])
def test_diagonals(k: int, free: Sequence[int]) -> None:
    x = normal(4, 6)
    agree("EyeLike", [x], {"k": k}, wanted=[np.eye(4, 6, k, np.float32)], free=free)
    agree("EyeLike", [x], {"k": k, "dtype": 7}, wanted=[np.eye(4, 6, k, np.int64)], free=free)


def test_dropout_of_a_model_that_is_used() -> None:
    x = normal(3, 4)
    agree("Dropout", [x], outputs=2, wanted=[x, np.ones((3, 4), bool)])
    off, on = np.array(False), np.array(True)
    agree("Dropout", [x, np.array(0.5, np.float32), off], wanted=[x], constants=(1, 2))
    assert refusal("Dropout", [x, None, on], constants=(2,)) == "training: training_mode is set"


@pytest.mark.parametrize(("opset", "mask"), [(7, np.float32), (9, np.float32), (10, bool), (11, bool)])
def test_the_mask_of_an_old_dropout(opset: int, mask: Any) -> None:
    """Version 7 gives it the input's type, version 10 truth values; onnxruntime fills it with zeros."""
    x = normal(3, 4)
    agree("Dropout", [x], outputs=2, opset=opset, wanted=[x, np.zeros((3, 4), mask)])
    agree("Dropout", [x], outputs=2, opset=opset)


def test_optionals_of_tensors() -> None:
    x = normal(3)
    agree("OptionalGetElement", [x], wanted=[x])
    agree("OptionalHasElement", [x], wanted=[np.array(True)])
    agree("OptionalHasElement", [], wanted=[np.array(False)])


# -- movement ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "zero", "sizes"),
    [
        ([4, 6], 0, (4, 6)),
        ([-1, 3], 0, (8, 3)),
        ([0, -1], 0, (2, 12)),
        ([0, 0, 4, 1], 0, (2, 3, 4, 1)),
        ([24], 1, (24,)),
    ],
)
def test_reshapes(wanted: list[int], zero: int, sizes: tuple[int, ...]) -> None:
    x = normal(2, 3, 4)
    agree("Reshape", [x, np.array(wanted)], {"allowzero": zero}, wanted=[x.reshape(sizes)], constants=(1,))


@pytest.mark.parametrize(
    ("x", "wanted", "attributes", "words"),
    [
        ((2, 3), [-1, -1], {}, "more than one -1"),
        ((2, 3), [-2, 3], {}, "sizes below"),
        ((2, 3), [4, 2], {}, "6 elements cannot have the shape"),
        ((2, 0), [-1, 0], {"allowzero": 1}, "is ambiguous"),
    ],
)
def test_reshapes_that_cannot_be(x: tuple[int, ...], wanted: list[int], attributes: Any, words: str) -> None:
    error("E0107", words, "Reshape", [normal(*x), np.array(wanted)], attributes, constants=(1,))


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
def test_flattening(axis: int) -> None:
    agree("Flatten", [normal(2, 3, 4)], {"axis": axis})
    agree("Flatten", [normal(2, 3, 4)], {"axis": axis}, free=(0,))


def test_units_come_and_go() -> None:
    x = normal(1, 3, 1, 4)
    agree("Squeeze", [x])
    agree("Squeeze", [x, np.array([2])], constants=(1,))
    agree("Squeeze", [x], {"axes": [-2, 0]}, opset=11)
    agree("Unsqueeze", [x, np.array([0, -1])], constants=(1,))
    agree("Unsqueeze", [x], {"axes": [1, 3]}, opset=11)
    error("E0107", "axis 1 has size 3 and cannot be squeezed", "Squeeze", [x, np.array([1])], constants=(1,))


def test_orders_of_axes() -> None:
    x = normal(2, 3, 4, 5)
    for order in ([0, 2, 1, 3], [3, 2, 1, 0], [0, 1, 2, 3], [1, 0, 3, 2]):
        agree("Transpose", [x], {"perm": order}, free=(0,))
    agree("Transpose", [x])
    error("E0107", r"perm \[0, 1, 2, 2\] is no order of 4 axes", "Transpose", [x], {"perm": [0, 1, 2, 2]})


def test_repeating() -> None:
    x = normal(3, 1)
    agree("Expand", [x, np.array([2, 1, 4])], constants=(1,))
    agree("Tile", [normal(2, 3), np.array([2, 3])], constants=(1,))
    agree("Tile", [normal(2, 3), np.array([1, 2])], constants=(1,), free=(0,))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_joining(axis: int) -> None:
    shapes = [[2, 3], [2, 3], [2, 3]]
    for number, size in enumerate((1, 4, 3)):
        shapes[number][axis] = size
    agree("Concat", [normal(*shape) for shape in shapes], {"axis": axis})
    error("E0107", "they differ beside axis 0", "Concat", [normal(2, 3), normal(2, 4)], {"axis": 0})


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_pieces(opset: int) -> None:
    x, sizes = normal(7, 6), [2, 4]
    if opset == 11:
        agree("Split", [x], {"split": sizes, "axis": 1}, outputs=2, opset=opset)
    else:
        agree("Split", [x, np.array(sizes)], {"axis": 1}, outputs=2, opset=opset, constants=(1,))
    if opset == 18:
        agree("Split", [x], {"num_outputs": 3}, outputs=3, opset=opset)
        agree("Split", [x], {"axis": -1, "num_outputs": 4}, outputs=4, opset=opset)


SLICES = [(1, 5, 1), (-3, FAR, 1), (0, -2, 2), (-1, -FAR, -1), (4, 0, -2), (5, 2, 1)]


@pytest.mark.parametrize("cut", SLICES)
@pytest.mark.parametrize("free", [(), (0,)])
def test_slices(cut: tuple[int, int, int], free: Sequence[int]) -> None:
    x, numbers = normal(3, 6), [np.array([number]) for number in cut]
    inputs = [x, numbers[0], numbers[1], np.array([1]), numbers[2]]
    agree("Slice", inputs, wanted=[x[:, slice(*cut)]], constants=(1, 2, 3, 4), free=free)


def test_slices_of_older_models() -> None:
    agree("Slice", [normal(4, 5)], {"starts": [1, -3], "ends": [3, 2**31 - 1], "axes": [0, 1]}, opset=9)
    zero = [normal(4), *(np.array([number]) for number in (0, 4, 0, 0))]
    error("E0107", "a slice has step 0", "Slice", zero, constants=(1, 2, 3, 4))


def test_a_slice_that_is_the_whole_is_the_tensor_itself() -> None:
    n = symbol("n", 0)

    def lowering(node: Any) -> Any:
        assert slices.slice_of(node, node[0], [0, 0], [n, 5], [1, 1]) is node[0]
        return slices.slice_of(node, node[0], [0, 1], [n, 2], [1, 2])

    x = normal(4, 5)
    np.testing.assert_array_equal(computed("(float[n, 5] x) => (y) { y = test.Op (x) }", lowering, x)[0], x[:, 1::2])


@pytest.mark.parametrize("sizes", [(3, 1), (3, 3), (1, 3), (1, 1)])
def test_only_the_run_tells_what_repeats(sizes: tuple[int, int]) -> None:
    def lowering(node: Any) -> Any:
        n, m = node[0].dims[0], node[1].dims[0]
        assert spreading.spread(node, node[0], (n, 2)) is node[0]
        return spreading.spread(node, node[1], (n, 2)) if sizes[0] != 1 else spreading.spread(node, node[0], (m, 2))

    x, y = (normal(size, 2) for size in sizes)
    text = "(float[n, 2] x, float[m, 2] y) => (z) { z = test.Op (x, y) }"
    wanted = np.broadcast_to(y if sizes[0] != 1 else x, (max(sizes), 2))
    np.testing.assert_array_equal(computed(text, lowering, x, y)[0], wanted)
    assert len(read_with(text, lowering)[1].requirements) == 1


# -- borders -----------------------------------------------------------------------------------------------------------

PADS = [[1, 2, 0, 3], [0, 1, 2, 0], [-1, 2, 1, -2]]


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize("pads", PADS)
@pytest.mark.parametrize("free", [(), (0,)])
def test_pads(mode: str, pads: list[int], free: Sequence[int]) -> None:
    if free and min(pads) < 0:
        return
    x: Array = normal(4, 5)
    cut = x[max(-pads[0], 0) : 4 + min(pads[2], 0), max(-pads[1], 0) : 5 + min(pads[3], 0)]
    low, high = [max(n, 0) for n in pads[:2]], [max(n, 0) for n in pads[2:]]
    more = {"constant_values": 1.5} if mode == "constant" else {}
    wanted = np.pad(cut, list(zip(low, high, strict=True)), mode=mode, **more)  # pyright: ignore
    value = [np.array(1.5, np.float32)] if mode == "constant" else []
    constants_ = (1, 2) if value else (1,)
    agree(
        "Pad", [x, np.array(pads), *value], {"mode": mode}, wanted=[wanted], constants=constants_, free=free, opset=19
    )


@pytest.mark.parametrize("mode", ["reflect", "wrap", "edge"])
def test_borders_wider_than_the_tensor(mode: str) -> None:
    for size in (1, 2, 3):
        x, many = normal(size), 7
        wanted = np.pad(x, (many, many), mode=mode)  # pyright: ignore
        agree("Pad", [x, np.array([many, many])], {"mode": mode}, wanted=[wanted], constants=(1,), opset=19)


def test_pads_of_some_axes_and_older_models() -> None:
    x = normal(3, 4, 2)
    agree("Pad", [x, np.array([1, 2]), None, np.array([-2])], constants=(1, 3), opset=18)
    agree(
        "Pad",
        [x],
        {"pads": [0, 1, 0, 0, 2, 0], "value": 2.5},
        opset=2,
        wanted=[np.pad(x, [(0, 0), (1, 2), (0, 0)], constant_values=2.5)],
    )


def test_pads_that_are_refused() -> None:
    x = normal(3, 4)
    error("E0107", "3 pads for 2 axes", "Pad", [x, np.array([1, 2, 3])], constants=(1,))
    error("E0105", "Pad knows no mode .circle.", "Pad", [x, np.array([1] * 4)], {"mode": "circle"}, constants=(1,))
    cut = refusal("Pad", [x, np.array([-1, 0, 0, 0])], constants=(1,), free=(0,))
    assert cut == "symbolic-pad: more may be cut than there is"
    empty = refusal("Pad", [normal(0, 4), np.array([1, 0, 0, 0])], {"mode": "edge"}, constants=(1,))
    assert empty == "empty-border: nothing to repeat"


def test_positions_of_a_border() -> None:
    positions = borders._positions  # pyright: ignore[reportPrivateUsage] - the table that `bordered` reads through
    assert positions(3, 2, 4, "wrap").tolist() == [1, 2, 0, 1, 2, 0, 1, 2, 0]
    assert positions(3, 2, 4, "reflect").tolist() == [2, 1, 0, 1, 2, 1, 0, 1, 2]


# -- columns -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [(2, 3), (1, 1), (4, 6), (2, 1)])
def test_columns_that_tile_an_image(block: tuple[int, int]) -> None:
    count = 24 // (block[0] * block[1])
    x = normal(2, 3 * block[0] * block[1], count)
    image, size = np.array([4, 6]), np.array(block)
    agree("Col2Im", [x, image, size], {"strides": list(block)}, constants=(1, 2))


@pytest.mark.parametrize(
    ("size", "count", "attributes"),
    [
        ((4, 6), 15, {}),
        ((4, 6), 6, {"strides": [2, 2], "pads": [0, 0, 0, 1]}),
        ((4, 6), 6, {"strides": [2, 2], "dilations": [2, 1], "pads": [0, 0, 1, 0]}),
        ((4, 5), 4, {"strides": [2, 2]}),
        ((1, 3), 2, {"pads": [1, 0, 0, 0]}),
    ],
)
def test_columns_that_overlap(size: tuple[int, int], count: int, attributes: dict[str, list[int]]) -> None:
    agree("Col2Im", [normal(2, 4, count), np.array(size), np.array([2, 2])], attributes, constants=(1, 2))


def test_columns_of_integers_and_of_large_windows() -> None:
    numbers = np.arange(-30, 30, dtype=np.int32).reshape(1, 4, 15)
    words = "overlapping-windows: elements of several windows are summed up"
    assert refusal("Col2Im", [numbers, np.array([4, 6]), np.array([2, 2])], constants=(1, 2)) == words
    large = [normal(1, 49, 9), np.array([9, 9]), np.array([7, 7])]
    assert refusal("Col2Im", large, constants=(1, 2)) == "overlapping-windows: elements of many windows are summed up"


def test_without_axes_every_size_but_one_stays() -> None:
    text = "(float[n, 3, 1] x) => (y) { y = Squeeze(x) }"
    for n in (0, 2, 5):
        found = computed(text, lambda node: node[0], normal(n, 3, 1))[0]
        assert found.shape == (n, 3)
