"""Operators that index by data or by computed places, fed places and sizes that do not exist: every access of their
kernels is proved to stay inside, native code and the interpreter agree, or both refuse with the same code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.errors import FuselineError
from tests.draws import RNG
from tests.one_node import feeds_of, one_node
from tests.proved import ProvedProgram

Array = NDArray[Any]
LEAST, MOST = -(2**63), 2**63 - 1
WILD = np.array([MOST, LEAST, 2**31, -(2**31) - 1, 10**9, -5, 5, 0, 1], np.int64)


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def wild(*shape: int) -> Array:
    return np.resize(WILD, shape)


def numbers(*values: int) -> Array:
    return np.array(values, np.int64)


class Case(NamedTuple):
    """A node and what it reads; `constants`, `outputs`, `opset` and `domain` are those of `one_node`."""

    op_type: str
    inputs: list[Array | None]
    attributes: dict[str, Any] = {}
    options: dict[str, Any] = {}


FAR = floats(2, 3, 4, 2) * 1e30
FAR[0, 0, 0, 0], FAR[0, 1, 1, 1], FAR[1, 0, 0, 0] = np.nan, np.inf, -np.inf
BOXES = np.array([[-9, -9, 99, 99], [5, 5, 1, 1], [1e30, -1e30, 1e30, 1e30], [np.nan, 0, np.inf, 2]], np.float32)
MICROSOFT, ML = {"domain": "com.microsoft", "opset": 1}, {"domain": "ai.onnx.ml", "opset": 2}
CASES: dict[str, Case] = {
    "Gather": Case("Gather", [floats(4, 5), wild(3, 3)], {"axis": 1}),
    "Gather i32": Case("Gather", [floats(4, 5), wild(3, 3).astype(np.int32)]),
    "GatherElements": Case("GatherElements", [floats(4, 5), wild(4, 5)], {"axis": 1}),
    "GatherElements of too many": Case("GatherElements", [floats(4, 5), wild(9, 2)], {"axis": 1}),
    "GatherND": Case("GatherND", [floats(4, 5, 2), wild(3, 2)]),
    "GatherND in batches": Case("GatherND", [floats(3, 5, 2), wild(3, 2)], {"batch_dims": 1}),
    **{
        f"{op} {reduction}": Case(op, [floats(4, 5, 2), indices, updates], {"reduction": reduction})
        for reduction in ("none", "add", "max")
        for op, indices, updates in (
            ("ScatterElements", wild(2, 5, 2), floats(2, 5, 2)),
            ("ScatterND", wild(3, 2), floats(3, 2)),
        )
    },
    "ScatterElements of too many": Case("ScatterElements", [floats(4, 5), np.zeros((2, 9), np.int64), floats(2, 9)]),
    **{
        f"Slice from {start} to {end} by {step}": Case(
            "Slice",
            [floats(6, 4), numbers(start), numbers(end), numbers(0), numbers(step)],
            options={"constants": (1, 2, 3, 4)},
        )
        for start, end, step in (
            (LEAST, MOST, MOST),
            (MOST, LEAST, -1),
            (-1, LEAST, LEAST),
            (3, 1, 2),
            (0, MOST, -3),
            (1, 3, 0),
        )
    },
    "EyeLike": Case("EyeLike", [floats(4, 5)], {"k": LEAST}),
    **{
        f"Trilu {k} {up}": Case("Trilu", [floats(4, 5), np.array(k)], {"upper": up}, {"constants": (1,)})
        for k in (LEAST, MOST)
        for up in (0, 1)
    },
    "OneHot": Case("OneHot", [wild(7), np.array(5), floats(2)], options={"constants": (1,)}),
    "ReverseSequence": Case(
        "ReverseSequence", [floats(4, 3, 2), numbers(9, -3, 2**40)], {"time_axis": 0, "batch_axis": 1}
    ),
    "TopK of too many": Case("TopK", [floats(4, 5), numbers(9)], options={"outputs": 2, "constants": (1,)}),
    "TopK of fewer than none": Case("TopK", [floats(4, 5), numbers(-1)], options={"outputs": 2, "constants": (1,)}),
    "CenterCropPad": Case("CenterCropPad", [floats(4, 5), numbers(2, 9)], options={"constants": (1,)}),
    **{
        f"Pad {mode} {pads}": Case(
            "Pad", [floats(4, 5), numbers(*pads)], {"mode": mode}, {"opset": 19, "constants": (1,)}
        )
        for mode in ("constant", "reflect", "edge", "wrap")
        for pads in ((-1, 0, 0, -2), (-3, 0, -3, 0), (9, 0, 0, 9))
    },
    "Split beyond": Case("Split", [floats(4, 5), numbers(5, -1)], options={"outputs": 2, "constants": (1,)}),
    **{
        f"Resize {mode} {where}": Case(
            "Resize",
            [floats(1, 1, 5, 4), np.array([0, 0, -3, 0.5, 1, 1, 9, 2], np.float32), None, numbers(1, 1, 7, 3)],
            {"mode": mode, "coordinate_transformation_mode": where},
            {"constants": (1, 3)},
        )
        for mode in ("nearest", "linear", "cubic")
        for where in ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_crop_and_resize")
    },
    **{
        f"GridSample {mode} {border}": Case(
            "GridSample", [floats(2, 2, 3, 4), FAR], {"mode": mode, "padding_mode": border}, {"opset": 20}
        )
        for mode in ("nearest", "linear", "cubic")
        for border in ("zeros", "border", "reflection")
    },
    "RoiAlign": Case(
        "RoiAlign",
        [floats(2, 2, 6, 5), BOXES, numbers(0, 1, MOST, -1)],
        {"output_height": 2, "output_width": 2, "sampling_ratio": 2},
    ),
    "MaxRoiPool": Case(
        "MaxRoiPool",
        [floats(2, 2, 6, 5), np.c_[np.array([0, 1, 9, -1], np.float32), BOXES].astype(np.float32)],
        {"pooled_shape": [2, 2]},
    ),
    "MaxUnpool": Case("MaxUnpool", [floats(1, 1, 2, 2), wild(1, 1, 2, 2)], {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "MaxPool with places": Case(
        "MaxPool",
        [floats(1, 2, 7, 6)],
        {"kernel_shape": [3, 2], "dilations": [2, 3], "ceil_mode": 1, "strides": [2, 2]},
        {"outputs": 2},
    ),
    "MaxPool behind its border": Case("MaxPool", [floats(1, 1, 3, 3)], {"kernel_shape": [2, 2], "pads": [3, 3, 3, 3]}),
    "RotaryEmbedding": Case(
        "RotaryEmbedding", [floats(1, 2, 3, 4), floats(5, 2), floats(5, 2), wild(1, 3)], {}, {"opset": 23}
    ),
    "TensorScatter": Case(
        "TensorScatter", [floats(2, 1, 4, 3), floats(2, 1, 2, 3), numbers(MOST, -3)], {"axis": 2}, {"opset": 24}
    ),
    "Attention": Case(
        "Attention", [*(floats(2, 2, n, 4) for n in (3, 5, 5)), None, None, None, numbers(MOST, -4)], {}, {"opset": 24}
    ),
    "RotaryEmbedding of com.microsoft": Case(
        "RotaryEmbedding", [floats(1, 3, 8), wild(1, 3), floats(5, 2), floats(5, 2)], {"num_heads": 2}, MICROSOFT
    ),
    "EmbedLayerNormalization": Case(
        "EmbedLayerNormalization",
        [
            np.resize(WILD, (2, 3)).astype(np.int32),
            np.array([[9, -1, 0], [1, 2**31 - 1, -(2**31)]], np.int32),
            *(floats(n, 4) for n in (7, 3, 2)),
            floats(4),
            floats(4),
        ],
        {},
        MICROSOFT | {"outputs": 2},
    ),
    "Attention of com.microsoft": Case(
        "Attention",
        [floats(2, 3, 8), floats(8, 24), floats(24), np.array([2**31 - 1, -7], np.int32)],
        {"num_heads": 2},
        MICROSOFT,
    ),
    "ArrayFeatureExtractor": Case("ArrayFeatureExtractor", [floats(3, 5), wild(4)], {}, ML),
    "LabelEncoder": Case(
        "LabelEncoder",
        [np.array([np.nan, np.inf, -np.inf, 3, 1e30], np.float32)],
        {"keys_floats": [3.0, float("nan")], "values_floats": [1.0, 2.0]},
        ML,
    ),
    "Compress": Case("Compress", [floats(4, 5), np.array([1, 0, 1, 1, 1, 1, 1], bool)], {"axis": 0}),
}


def answer(run: Any) -> list[Array] | str:
    """The results, or the code of the error."""
    try:
        return run()
    except FuselineError as error:
        return error.code


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_read_or_written_outside(name: str):
    case = CASES[name]
    model = one_node(case.op_type, case.inputs, case.attributes, **case.options)
    feeds = feeds_of(case.inputs, case.options.get("constants", ()))
    native = answer(lambda: ProvedProgram(model).run(feeds))
    reference = answer(lambda: list(fuseline.compile(model, target="interpreter").run(feeds).values()))
    if isinstance(native, str) or isinstance(reference, str):
        assert native == reference and native != "E0901"
        return
    for ours, theirs in zip(native, reference, strict=True):
        np.testing.assert_allclose(ours.astype(np.float64), theirs.astype(np.float64), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("k", "upper"), [(MOST, 0), (LEAST, 1)])
def test_a_diagonal_beyond_all_keeps_everything(k: int, upper: int):
    x = floats(3, 4)
    model = one_node("Trilu", [x, np.array(k)], {"upper": upper}, constants=(1,))
    np.testing.assert_array_equal(ProvedProgram(model).run({"i0": x})[0], x)
