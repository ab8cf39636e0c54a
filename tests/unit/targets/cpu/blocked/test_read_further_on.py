"""What a block makes in full along a dimension, read from further on: at a sum of loops of which one is in blocks.

phases of an upsampling     y[q, p] = x[q + p, p] + z[q, p]        z of another root, p in blocks, q in full
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import fuseline
from fuseline.ir.dim import symbol
from fuseline.targets.cpu.families.blocked.tiles import Box
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

ort = pytest.importorskip("onnxruntime")


@pytest.mark.parametrize(("batch", "threads"), [(1, 1), (1, 2), (1, 4), (2, 2)])
@pytest.mark.parametrize(
    ("sizes", "kernel", "strides", "pads"),
    [
        ((8, 8), (4, 4), (2, 2), (1, 1)),
        ((40, 32), (4, 4), (2, 2), (1, 1)),
        ((9, 7), (4, 4), (2, 2), (1, 1)),
        ((6, 10), (4, 6), (2, 2), (1, 2)),
        ((5, 6), (8, 8), (4, 4), (2, 2)),
        ((21,), (4,), (2,), (1,)),
    ],
)
def test_phases_beside_another_root(
    sizes: Sequence[int], kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int], batch: int, threads: int
):
    big = [size * stride for size, stride in zip(sizes, strides, strict=True)]
    extra = [-(k - 2 * pad - s) for k, pad, s in zip(kernel, pads, strides, strict=True)]
    assert not any(extra)
    w, u, b = (
        RNG.standard_normal(shape).astype(np.float32)
        for shape in ((12, 16, *kernel), (16, 8, *[1] * len(sizes)), (16,))
    )
    upsampled = f"ConvTranspose<strides: ints = {list(strides)}, pads: ints = {[*pads, *pads]}>(x, w, b)"
    model = onnx_model(
        f"(float{[batch, 12, *sizes]} x, float{[batch, 8, *big]} z) => (y) "
        f"{{ t = {upsampled} s = Conv(z, u) r = Relu(s) y = Add(t, r) }}",
        w=w,
        u=u,
        b=b,
    )
    feeds = {
        name: RNG.standard_normal(shape).astype(np.float32)
        for name, shape in (("x", (batch, 12, *sizes)), ("z", (batch, 8, *big)))
    }
    (ours,) = fuseline.compile(model, threads=threads).run(feeds).values()
    (theirs,) = ort.InferenceSession(model.SerializeToString()).run(None, feeds)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_a_box_within_what_is_made():
    block = symbol("block", 0)
    made = Box((0, block, 0), (9, 4, 2))
    assert Box((block, block, 0), (8, 4, 2)).within(made) == Box((block, 0, 0), (8, 4, 2))
    assert Box((0, 0, 0), (1, 4, 2)).within(made) == Box((0, 0, 0), (9, 4, 2))
