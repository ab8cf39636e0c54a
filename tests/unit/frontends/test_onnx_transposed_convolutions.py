"""ConvTranspose by phases and with the flipped filter, against the definition: every pixel adds its multiple of the
filter to the output."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from xdsl.dialects import linalg, tensor

import fuseline
from fuseline.analysis.structured import StructuredOp, kind
from fuseline.ir.build import shape_of
from tests.draws import RNG
from tests.graphs.onnx_text import attributes_of
from tests.native import assert_as_onnxruntime, assert_same, native
from tests.one_node import by_onnxruntime

from .test_onnx_reading import model, read, run

Array = NDArray[np.float32]


def transposed(x: Sequence[int | str], w: Array, **attributes: Any) -> onnx.ModelProto:
    """A transposed convolution of an image of shape `x` with constant weights."""
    node = f"y = ConvTranspose{attributes_of(attributes)}(x, w)"
    return model(f"(float[{', '.join(map(str, x))}] x) => (y) {{ {node} }}", w=w)


def expected(
    x: Array,
    w: Array,
    strides: tuple[int, ...],
    pads: tuple[int, ...],
    extra: tuple[int, ...],
    dilations: tuple[int, ...],
) -> Array:
    """One group, two spatial dimensions."""
    batch, channels, height, width = x.shape
    filters, *kernel = w.shape[1:]
    full = [
        s * (size - 1) + (k - 1) * d + 1 + e
        for s, size, k, d, e in zip(strides, (height, width), kernel, dilations, extra, strict=True)
    ]
    out = np.zeros((batch, filters, *full), np.float32)
    for i, j, y, z in product(range(height), range(width), range(kernel[0]), range(kernel[1])):
        row, column = i * strides[0] + y * dilations[0], j * strides[1] + z * dilations[1]
        out[:, :, row, column] += np.einsum("nc,cf->nf", x[:, :, i, j], w[:, :, y, z])
    assert channels == w.shape[0]
    return out[:, :, pads[0] : full[0] - pads[2], pads[1] : full[1] - pads[3]]


@pytest.mark.parametrize(
    ("kernel", "strides", "pads", "extra", "dilations"),
    [
        ((2, 2), (2, 2), (0, 0, 0, 0), (0, 0), (1, 1)),
        ((4, 3), (2, 2), (1, 1, 1, 1), (0, 1), (1, 1)),
        ((3, 5), (3, 2), (0, 2, 1, 1), (2, 0), (1, 1)),
        ((2, 3), (3, 2), (0, 0, 0, 0), (1, 0), (1, 1)),  # gaps between the pixels' parts
        ((3, 3), (2, 1), (3, 0, 2, 0), (0, 0), (1, 1)),  # more is cut than the window is wide
        ((2, 2), (2, 2), (0, 0, 0, 0), (1, 1), (1, 1)),  # more output than the phases give
        ((3, 2), (2, 2), (0, 1, 2, 1), (0, 0), (2, 1)),
        ((3, 3), (1, 1), (1, 0, 1, 2), (0, 0), (1, 1)),
    ],
)
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("image", [(5, 3), (7, 4)])  # with much border around it, and too large for that
def test_a_transposed_convolution(
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    pads: tuple[int, ...],
    extra: tuple[int, ...],
    dilations: tuple[int, ...],
    groups: int,
    constant: bool,
    image: tuple[int, ...],
):
    rng = np.random.default_rng(7)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 4, *image), (4, 3, *kernel)))
    attributes: dict[str, Any] = {
        "strides": strides,
        "pads": pads,
        "output_padding": extra,
        "dilations": dilations,
        "group": groups,
    }
    node = f"y = ConvTranspose{attributes_of(attributes)}(x, w)"
    fed = f"(float{list(x.shape)} x, float{list(w.shape)} w) => (y) {{ {node} }}"
    proto = transposed(x.shape, w, **attributes) if constant else model(fed)
    (ours,) = run(proto, x, *([] if constant else [w]))
    parts = zip(np.split(x, groups, 1), np.split(w, groups), strict=True)
    np.testing.assert_allclose(
        ours,
        np.concatenate([expected(a, b, strides, pads, extra, dilations) for a, b in parts], 1),
        rtol=1e-4,
        atol=1e-4,
    )


def test_no_zeros_are_put_between_pixels_of_a_constant_filter():
    module, _ = read(transposed((1, 4, "h", "w"), np.ones((4, 3, 2, 2), np.float32), strides=[2, 2]))
    assert not [op for op in module.walk() if isinstance(op, tensor.PadOp)]


FILTERS = {
    "given": "",
    "f16": "w = Cast<to: int = 1>(v)",
    "turned": "w = Transpose<perm: ints = [3, 2, 1, 0]>(v)",
    "dequantised": "w = DequantizeLinear<axis: int = 1>(v, s, z)",
    "all of one scale": "w = DequantizeLinear(v, s, z)",
}


def filter_of(kind: str, shape: tuple[int, ...]) -> tuple[Array, dict[str, Any]]:
    """A filter, and the constants that `FILTERS[kind]` makes it of; numbers of few bits."""
    whole = RNG.integers(-8, 8, shape)
    if kind == "f16":
        return whole.astype(np.float32), {"v": whole.astype(np.float16)}
    if kind == "turned":
        return whole.astype(np.float32), {"v": np.ascontiguousarray(whole.T).astype(np.float32)}
    if kind == "given":
        return whole.astype(np.float32), {}
    scale = (2.0 ** RNG.integers(-3, 3, shape[1] if kind == "dequantised" else ())).astype(np.float32)
    zero = RNG.integers(-3, 3, scale.shape).astype(np.int8)
    spread = (shape[1], 1, 1) if scale.shape else ()
    made = (whole - zero.reshape(spread)) * scale.reshape(spread)
    return made.astype(np.float32), {"v": whole.astype(np.int8), "s": scale, "z": zero}


@pytest.mark.parametrize("kind", FILTERS)
@pytest.mark.parametrize("image", ["float", "quantised"])
def test_pixels_are_not_spread_whatever_makes_the_filter(kind: str, image: str):
    """Whole numbers and powers of two: nothing rounds, whatever is summed first."""
    strides = tuple(RNG.integers(2, 4, 2).tolist())
    kernel = tuple(int(stride + RNG.integers(0, 3)) for stride in strides)
    channels, filters, height, width = (int(size) for size in RNG.integers((2, 2, 11, 11), (5, 5, 14, 14)))
    w, constants = filter_of(kind, (channels, filters, *kernel))
    x = RNG.integers(-9, 9, (1, channels, height, width)).astype(np.float32)
    nodes = [FILTERS[kind], f"y = ConvTranspose{attributes_of({'strides': strides})}(q, w)"]
    rounded = "r = QuantizeLinear(x, a, b) q = DequantizeLinear(r, a, b)"
    nodes.insert(0, rounded if image == "quantised" else "q = Identity(x)")
    given = "" if constants else f", float{list(w.shape)} w"
    of_image = {"a": np.array(0.5, np.float32), "b": np.array(2, np.int8)} if image == "quantised" else {}
    proto = model(f"(float{list(x.shape)} x{given}) => (y) {{ {' '.join(nodes)} }}", **constants, **of_image)
    module, _ = read(proto)
    assert not [op for op in module.walk() if isinstance(op, tensor.PadOp) and len(shape_of(op.result)) > x.ndim]
    feeds = {"x": x} if constants else {"x": x, "w": w}
    wanted = expected(x, w, strides, (0,) * 4, (0,) * 2, (1, 1))
    np.testing.assert_array_equal(run(proto, *feeds.values())[0], wanted)
    for (ours,) in native(proto, feeds):
        np.testing.assert_array_equal(ours, wanted)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_phases_begin_where_the_outputs_do(groups: int, constant: bool, dimensions: int):
    """Of whole numbers of strides nothing is cut behind, wherever they begin."""
    strides = [2, *RNG.integers(1, 6 - dimensions, dimensions - 1).tolist()]
    kernel = [int(stride * RNG.integers(2, 4)) for stride in strides]
    image = [int(size) for size in RNG.integers(15, 18, dimensions)]
    low = [int(RNG.integers(stride, kernel[i])) if i else 1 for i, stride in enumerate(strides)]
    high = [int((k - a) % s) for k, a, s in zip(kernel, low, strides, strict=True)]
    x, w = (RNG.integers(-8, 8, shape).astype(np.float32) for shape in ((2, 4, *image), (4, 3, *kernel)))
    attributes: dict[str, Any] = {"strides": strides, "pads": [*low, *high], "group": groups}
    node = f"y = ConvTranspose{attributes_of(attributes)}(x, w)"
    fed = model(f"(float{list(x.shape)} x, float{list(w.shape)} w) => (y) {{ {node} }}")
    proto = transposed(x.shape, w, **attributes) if constant else fed
    module, _ = read(proto)
    assert not [op for op in module.walk() if isinstance(op, tensor.ExtractSliceOp)]
    feeds = {"x": x} if constant else {"x": x, "w": w}
    assert_same(native(proto, feeds), by_onnxruntime(proto, feeds), 0, 0)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_phases_that_are_cut_anywhere(dimensions: int):
    """At the begin, at the end, at both or nowhere, along each axis by itself."""
    for _ in range(4):
        strides = [2, *RNG.integers(1, 4, dimensions - 1).tolist()]
        kernel = [int(stride * RNG.integers(1, 3) + RNG.integers(0, stride)) for stride in strides]
        image = [int(size) for size in RNG.integers(4, 8, dimensions)]
        pads = [int(RNG.integers(0, min(size, 3))) for size in kernel * 2]
        x, w = (RNG.integers(-8, 8, shape).astype(np.float32) for shape in ((1, 2, *image), (2, 3, *kernel)))
        proto = transposed(x.shape, w, strides=strides, pads=pads)
        assert_same(native(proto, {"x": x}), by_onnxruntime(proto, {"x": x}), 0, 0)


def windows(x: tuple[int | str, ...], w: tuple[int, ...], **attributes: Any) -> list[tuple[str, int]]:
    """How a transposed convolution with a constant filter reduces: the kind, and the number of loops that it sums
    over."""
    module, _ = read(transposed(x, np.ones(w, np.float32), **attributes))
    found = [
        StructuredOp(op) for op in module.walk() if isinstance(op, linalg.ops.GenericOp) and StructuredOp(op).reduction
    ]
    return [(kind(view.op).value, len(view.reduction)) for view in found]


@pytest.mark.parametrize(
    ("stride", "kernel", "found"),
    [
        (2, 4, [("depthwise", 2)]),
        (3, 6, [("depthwise", 2)]),
        (4, 8, [("convolution", 3)]),
        (8, 16, [("convolution", 3)]),
    ],
)
def test_a_depthwise_image_is_spread_where_that_makes_few_zeros(stride: int, kernel: int, found: list[tuple[str, int]]):
    assert windows((1, 4, 5, 6), (4, 1, kernel, kernel), strides=[stride] * 2, group=4) == found


@pytest.mark.parametrize(
    ("x", "strides", "found"),
    [
        ((1, 4, 1, 1), [1, 1], [("contraction", 1), ("pooling", 2)]),
        ((1, 4, 4, 4), [2, 2], [("contraction", 1), ("pooling", 2)]),
        ((1, 4, 5, 4), [2, 2], [("convolution", 3)]),
        ((1, 4, 3, 5), [2, 2], [("contraction", 1), ("pooling", 2)]),
        ((1, 4, 2, 2), [4, 4], [("convolution", 3)]),  # no border at all
        ((1, 4, 9, 9), [1, 1], [("convolution", 3)]),
        ((1, 4, "h", "w"), [2, 2], [("convolution", 3)]),
    ],
)
def test_a_small_image_is_multiplied_without_its_border(
    x: tuple[int | str, ...], strides: list[int], found: list[tuple[str, int]]
):
    assert windows(x, (4, 3, 4, 4), strides=strides) == found


def test_three_dimensions_and_one():
    rng = np.random.default_rng(11)
    for image, kernel in (((3,), (5,)), ((2, 1, 2), (3, 2, 4))):
        x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 3, *image), (3, 5, *kernel)))
        pads = [1] + [0] * (2 * len(kernel) - 1)
        proto = transposed(x.shape, w, strides=[2] * len(kernel), pads=pads)
        (wanted,) = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"]).run(
            None, {"x": x}
        )  # pyright: ignore
        np.testing.assert_allclose(run(proto, x)[0], np.asarray(wanted), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("mode", "before"), [("NOTSET", 1), ("SAME_LOWER", 1), ("SAME_UPPER", 0)])
def test_an_output_of_given_size(mode: str, before: int):
    """What is too much is cut at the beginning first, but with SAME_UPPER (ONNX operator schemas, ConvTranspose)."""
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 2, 4, 4), (2, 3, 3, 3)))
    (ours,) = run(transposed(x.shape, w, strides=[2, 2], output_shape=[8, 8], auto_pad=mode), x)
    pads = (before, before, 1 - before, 1 - before)
    np.testing.assert_allclose(ours, expected(x, w, (2, 2), pads, (0, 0), (1, 1)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("numerics", "kernel"), [("strict", 3), ("strict", 2), ("default", 2)])
def test_an_infinity_reaches_only_its_own_outputs(numerics: str, kernel: int):
    """The filter of three ends in a zero where its parts are two wide; `strict` does without."""
    rng = np.random.default_rng(9)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 4, 6, 6), (4, 3, kernel, kernel)))
    x[0, 1, 2, 3] = np.inf
    found = fuseline.compile(transposed(x.shape, w, strides=[2, 2]), numerics=numerics, threads=1)(x)
    with np.errstate(invalid="ignore"):
        wanted = expected(x, w, (2, 2), (0, 0, 0, 0), (0, 0), (1, 1))
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


WIDE: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "a bias for each of two groups": ((1, 2, 2), (2, 1, 1), {"group": 2, "strides": [2], "pads": [1, 0]}),
    "two filters per group": ((1, 2, 2), (2, 2, 1), {"group": 2, "strides": [2], "pads": [1, 0]}),
    "before the image": ((2, 2, 5), (2, 3, 2), {"strides": [3], "pads": [4, 0]}),
    "behind the image": ((2, 2, 5), (2, 3, 2), {"strides": [3], "pads": [1, 7]}),
    "nothing but what is added": (
        (1, 2, 2),
        (2, 3, 2),
        {"strides": [2], "pads": [4, 0], "output_padding": [1], "dilations": [2]},
    ),
    "two axes": (
        (1, 4, 3, 4),
        (4, 2, 3, 2),
        {"group": 2, "strides": [2, 1], "pads": [3, 0, 1, 2], "dilations": [1, 2]},
    ),
    "three axes": ((1, 2, 3, 2, 4), (2, 3, 1, 3, 2), {"strides": [2, 2, 1], "pads": [1, 0, 2, 2, 1, 0]}),
    "a given shape": ((1, 2, 3, 4), (2, 3, 2, 3), {"strides": [2, 3], "output_shape": [3, 14]}),
    "the same size below": ((1, 2, 3, 4), (2, 3, 5, 3), {"strides": [2, 3], "auto_pad": "SAME_LOWER"}),
    "the same size above": ((1, 2, 3, 4), (2, 3, 5, 3), {"strides": [2, 3], "auto_pad": "SAME_UPPER"}),
}


@pytest.mark.parametrize("constant", [(), (1,)], ids=["runtime", "constant"])
@pytest.mark.parametrize("name", WIDE)
def test_more_padding_than_the_window_is_wide(name: str, constant: tuple[int, ...]):
    image, filters, attributes = WIDE[name]
    rng = np.random.default_rng(3)
    bias = rng.standard_normal(filters[1] * attributes.get("group", 1), np.float32)
    x, w = (rng.standard_normal(shape, np.float32) for shape in (image, filters))
    assert_as_onnxruntime(
        "ConvTranspose", [x, w, bias], attributes=attributes, constants=constant, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_more_padding_than_a_symbolic_image_has(size: int):
    rng = np.random.default_rng(5)
    w, x = rng.standard_normal((2, 3, 2), np.float32), rng.standard_normal((1, 2, size), np.float32)
    node = "y = ConvTranspose<strides = [3], pads = [2, 0], output_padding = [2], dilations = [1]>(x, w)"
    whole = model(f"(float[1, 2, n] x, float{list(w.shape)} w) => (y) {{ {node} }}")
    wanted = by_onnxruntime(whole, {"x": x, "w": w})
    assert_same(native(whole, {"x": x, "w": w}), wanted, 1e-4, 1e-4)


def test_a_filter_without_taps_that_is_computed():
    """Nothing is multiplied."""
    x, w = RNG.standard_normal((1, 1, 3, 3)).astype(np.float32), np.zeros((1, 2, 3, 0), np.float32)
    node = (
        "y = ConvTranspose<strides: ints = [3, 2], output_padding: ints = [1, 1], output_shape: ints = [10, 8]>(x, w)"
    )
    program = model(f"(float[1,1,3,3] x, float[1,2,3,0] w) => (y) {{ {node} }}")
    for found in native(program, {"x": x, "w": w}):
        np.testing.assert_array_equal(found[0], np.zeros((1, 2, 10, 8), np.float32))
