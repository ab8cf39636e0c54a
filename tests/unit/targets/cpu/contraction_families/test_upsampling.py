"""Convolutions and contractions that read upsampled, broadcast and gathered operands without storing them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuseline.targets.cpu.families.contraction.convolution import ConvolutionFamily
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from tests.graphs.program import Program
from tests.kernels import Array, Runner, assert_close, random

from .test_convolution import convolve, maps_of
from .test_segments import check

CONVOLUTION, CONTRACTION = ConvolutionFamily(), ContractionFamily()


def upsampled(x: Array, factors: Sequence[int]) -> Array:
    """Every element `factors[i]` times along dimension `i`."""
    for axis, factor in enumerate(factors):
        x = np.repeat(x, factor, axis)
    return x


class UpsampledConvolution:
    """A convolution of a padded, upsampled image `[1, h, w, ic]`, with bias and relu."""

    def __init__(
        self, image: tuple[int, int], factors: tuple[int, int], channels: tuple[int, int], *, window: int = 3,
        stride: int = 1, dilation: int = 1,
        constant: bool = True, value: float = 0.0,
    ) -> None:  # fmt: skip
        self.image, self.factors, self.channels, self.window = image, factors, channels, window
        self.stride, self.dilation, self.constant, self.value = stride, dilation, constant, value
        self.pad = (window - 1) * dilation // 2

    def check(self, lhs: str | None = "linear") -> Runner:
        (h, w), (fh, fw), (ic, oc), k = self.image, self.factors, self.channels, self.window
        out = [(n + 2 * self.pad - (k - 1) * self.dilation - 1) // self.stride + 1 for n in (h * fh, w * fw)]
        shape = (1, *out, oc)
        p = Program((1, h, w, ic), (k, k, ic, oc), (oc,), constants=[1, 2] if self.constant else [])
        x = p.repeated(p.x[0], (1, fh, fw, 1))
        if self.pad:
            x = p.pad(x, [0, self.pad, self.pad, 0], [0, self.pad, self.pad, 0], self.value)
        y = p.multiply_add(x, p.x[1], p.zeros(*shape), maps_of(2, (self.stride,) * 2, (self.dilation,) * 2), "pppprrr")
        y = p.relu(p.bias(y, p.x[2], 3))
        arrays = [random(s, i) for i, s in enumerate(((1, h, w, ic), (k, k, ic, oc), (oc,)))]
        border = [(0, 0), (self.pad, self.pad), (self.pad, self.pad), (0, 0)]
        padded = np.pad(upsampled(arrays[0], (1, fh, fw, 1)), border, constant_values=self.value)
        expected = np.maximum(convolve(padded, arrays[1], (self.stride,) * 2, (self.dilation,) * 2) + arrays[2], 0)
        return check(CONVOLUTION, p, y, arrays, expected, lhs)


CASES = {
    "twice": UpsampledConvolution((5, 7), (2, 2), (8, 20)),
    "twice, one pixel": UpsampledConvolution((1, 1), (2, 2), (5, 9)),
    "by different factors": UpsampledConvolution((4, 3), (3, 4), (6, 17)),
    "along the width": UpsampledConvolution((6, 5), (1, 2), (8, 16)),
    "along the height": UpsampledConvolution((5, 6), (3, 1), (8, 16)),
    "1x1": UpsampledConvolution((6, 5), (2, 2), (12, 24), window=1),
    "stride 2": UpsampledConvolution((5, 6), (3, 3), (8, 16), stride=2),
    "dilated": UpsampledConvolution((6, 6), (2, 2), (8, 16), dilation=2),
    "filter known at run time": UpsampledConvolution((5, 4), (2, 2), (7, 19), constant=False),
    "wide": UpsampledConvolution((3, 9), (2, 2), (3, 8), window=5),
}


@pytest.mark.parametrize("name", CASES)
def test_convolutions_of_an_upsampled_image(name: str):
    CASES[name].check()


def test_every_access_lies_inside():
    p = Program((1, 2, 3, 3), (3, 3, 3, 9), constants=[1])
    x = p.pad(p.repeated(p.x[0], (1, 2, 2, 1)), [0, 1, 1, 0], [0, 1, 1, 0])
    run = Runner(
        CONVOLUTION, p.dispatch(p.multiply_add(x, p.x[1], p.zeros(1, 4, 6, 9), maps_of(2, (1, 1), (1, 1)), "pppprrr"))
    )
    a, w = random((1, 2, 3, 3), 1), random((3, 3, 3, 9), 2)
    padded = np.pad(upsampled(a, (1, 2, 2, 1)), [(0, 0), (1, 1), (1, 1), (0, 0)])
    assert_close(run.evaluated(a, w)[0], convolve(padded, w, (1, 1), (1, 1)))


@settings(max_examples=12, deadline=None)
@given(
    st.integers(1, 6), st.integers(1, 6), st.integers(1, 4), st.integers(1, 4), st.integers(1, 12), st.integers(1, 24),
    st.sampled_from([1, 3]),
    st.integers(1, 2),
)  # fmt: skip
def test_any_shape(h: int, w: int, fh: int, fw: int, ic: int, oc: int, window: int, stride: int):
    UpsampledConvolution((h, w), (fh, fw), (ic, oc), window=window, stride=stride).check(None)


def test_padding_that_is_not_zero():
    UpsampledConvolution((4, 4), (2, 2), (4, 8), value=2.0).check("boxed")


def test_a_concat_with_an_upsampled_part():
    """The decoder of a U-shaped network: `conv(concat(skip, upsample(deep)))`."""
    p = Program((1, 6, 8, 5), (1, 3, 4, 9), (3, 3, 14, 21), constants=[2])
    x = p.pad(p.concat(p.x[0], p.repeated(p.x[1], (1, 2, 2, 1)), axis=3), [0, 1, 1, 0], [0, 1, 1, 0])
    a, b, w = (random(shape, i) for i, shape in enumerate(((1, 6, 8, 5), (1, 3, 4, 9), (3, 3, 14, 21))))
    whole = np.concatenate([a, upsampled(b, (1, 2, 2, 1))], axis=3)
    expected = convolve(np.pad(whole, [(0, 0), (1, 1), (1, 1), (0, 0)]), w, (1, 1), (1, 1))
    check(
        CONVOLUTION,
        p,
        p.multiply_add(x, p.x[2], p.zeros(1, 6, 8, 21), maps_of(2, (1, 1), (1, 1)), "pppprrr"),
        [a, b, w],
        expected,
    )


def test_a_concat_with_a_broadcast_part():
    """Image pooling in a pyramid: one pixel for the whole image."""
    p = Program((1, 5, 6, 8), (1, 7), (1, 1, 15, 20), constants=[2])
    x = p.concat(p.x[0], p.moved(p.x[1], [0, 3], 1, 5, 6, 7), axis=3)
    a, b, w = (random(shape, i) for i, shape in enumerate(((1, 5, 6, 8), (1, 7), (1, 1, 15, 20))))
    whole = np.concatenate([a, np.broadcast_to(b[:, None, None, :], (1, 5, 6, 7))], axis=3)
    expected = convolve(whole, w, (1, 1), (1, 1))
    check(
        CONVOLUTION,
        p,
        p.multiply_add(x, p.x[2], p.zeros(1, 5, 6, 20), maps_of(2, (1, 1), (1, 1)), "pppprrr"),
        [a, b, w],
        expected,
    )


@pytest.mark.parametrize("rows", [1, 4, 33])
def test_rows_gathered_from_a_table(rows: int):
    """An embedding looked up and multiplied: a block of rows is copied to scratch once."""
    p = Program((rows, 4), (50, 24), (24, 37), constants=[1, 2])
    picked = p.gathered(p.x[1], p.x[0], rows, 24)
    x, table, w = random((rows, 4), 1), random((50, 24), 2), random((24, 37), 3)
    x[:, 0] = np.random.default_rng(4).integers(0, 50, rows)
    expected = table[x[:, 0].astype(np.int64)].astype(np.float64) @ w
    check(CONTRACTION, p, p.matmul(picked, p.x[2]), [x, table, w], expected, "packed")
