"""Random chains of moves and arithmetic read by a convolution, a contraction or a pooling; every value is made in NumPy
beside the IR.

Whatever a chain is, the kernel is right, and never leaves a buffer; how it reads (addresses, segments, scratch) is not
looked at here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.ir.build import dims_map, identity_map
from fuseline.targets.cpu.families.contraction.convolution import ConvolutionFamily
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.family import Family, Refusal
from fuseline.targets.cpu.families.window.family import WindowFamily
from fuseline.targets.cpu.isa import machine
from tests.graphs.program import Program
from tests.kernels import Array, Runner, assert_close, random

from .test_convolution import convolve, maps_of
from .test_window import BODIES, image_map, taps

Image = tuple[SSAValue, Array]


class Maker:
    """Images `[n, h, w, c]` made of the arguments of a dispatch."""

    def __init__(self, seed: int, *, arithmetic: bool) -> None:
        self.rng = np.random.default_rng(seed)
        size = [int(n) for n in self.rng.integers(2, 6, 2)]
        channels = [int(n) for n in self.rng.choice([1, 2, 3, 5, 8, 9, 16, 19], 4)]
        shapes = [(1, *size, c) for c in channels]
        self.arrays = [random(shape, seed + i) for i, shape in enumerate(shapes)]
        self.filter_at = len(shapes)
        self.arithmetic, self.size = arithmetic, size
        self.shapes: list[tuple[int, ...]] = list(shapes)

    def number(self, low: int, high: int) -> int:
        """From `low` to `high`, both included."""
        return int(self.rng.integers(low, high + 1))

    def image(self, p: Program, depth: int) -> Image:
        """A random chain of up to `depth` steps over the arguments."""
        image = self._argument(p)
        steps = [self.pad, self.slice, self.concat, self.repeat, self.turned, self.regrouped] + (
            [self.scaled] * 2 if self.arithmetic else []
        )
        for _ in range(self.number(1, depth)):
            image = steps[self.number(0, len(steps) - 1)](p, image)
        return image

    def _argument(self, p: Program) -> Image:
        i = self.number(0, self.filter_at - 1)
        return p.x[i], self.arrays[i]

    def pad(self, p: Program, image: Image) -> Image:
        low, high = [0, self.number(0, 2), self.number(0, 2), 0], [0, self.number(0, 2), self.number(0, 2), 0]
        return p.pad(image[0], low, high), np.pad(image[1], list(zip(low, high, strict=True)))

    def slice(self, p: Program, image: Image) -> Image:
        shape = image[1].shape
        sizes = [1, *(self.number(max(1, n - 3), n) for n in shape[1:])]
        offsets = [self.number(0, n - size) for n, size in zip(shape, sizes, strict=True)]
        where = tuple(slice(o, o + size) for o, size in zip(offsets, sizes, strict=True))
        return p.slice(image[0], offsets, sizes), np.ascontiguousarray(image[1][where])

    def concat(self, p: Program, image: Image) -> Image:
        """With parts of the same lines and columns: itself, or arguments where they fit; along the channels mostly."""
        axis = 3 if self.rng.random() < 0.8 else self.number(1, 2)
        others = [image, *((p.x[i], self.arrays[i]) for i in range(self.filter_at))]
        kept = [i for i in range(4) if i != axis]
        fitting = [o for o in others if all(o[1].shape[i] == image[1].shape[i] for i in kept)]
        parts = [image, *(fitting[self.number(0, len(fitting) - 1)] for _ in range(self.number(1, 2)))]
        order = [parts[i] for i in self.rng.permutation(len(parts))]
        return p.concat(*(part[0] for part in order), axis=axis), np.concatenate([part[1] for part in order], axis=axis)

    def repeat(self, p: Program, image: Image) -> Image:
        factors = [1, self.number(1, 2), self.number(1, 3), 1]
        if max(image[1].shape[1:3]) > 8:
            return image
        return p.repeated(image[0], factors), np.repeat(np.repeat(image[1], factors[1], 1), factors[2], 2)

    def turned(self, p: Program, image: Image) -> Image:
        """Lines and columns change places."""
        n, h, w, c = image[1].shape
        return p.moved(image[0], [0, 2, 1, 3], n, w, h, c), np.ascontiguousarray(image[1].transpose(0, 2, 1, 3))

    def regrouped(self, p: Program, image: Image) -> Image:
        """Lines and columns joined and opened again the other way round, as reshapes between layers do."""
        n, h, w, c = image[1].shape
        joined = p.collapse(image[0], [[0], [1, 2], [3]])
        return p.expand(joined, n, w, h, c, groups=[[0], [1, 2], [3]]), image[1].reshape(n, w, h, c)

    def scaled(self, p: Program, image: Image) -> Image:
        shape = image[1].shape
        factor = float(self.rng.choice([0.5, -1.5, 2.0]))
        value = p.elementwise(
            [image[0]],
            p.empty(*shape),
            lambda b: b.op(arith.MulfOp, b.args[0], b.constant(factor, p.element)),
            [identity_map(4)] * 2,
        )
        return value, image[1] * np.float32(factor)


def run(
    family: Family, p: Program, result: SSAValue, arrays: Sequence[Array], expected: Array, *, may_refuse: bool = False
) -> None:
    view = p.dispatch(result)
    if may_refuse and isinstance(family.accepts(view, machine()), Refusal):
        return
    runner = Runner(family, view)
    for at_end in (True, False):
        assert_close(runner(*arrays, at_end=at_end)[0], expected, least=1.0)


@pytest.mark.parametrize("seed", range(40))
def test_convolutions(seed: int):
    maker, window = Maker(seed, arithmetic=seed % 3 == 0), 1 + 2 * (seed % 2)
    probe = maker.rng.bit_generator.state
    p = Program(*maker.shapes)
    _, array = maker.image(p, 5)  # once to learn the channels, once more for the dispatch that has the filter
    maker.rng.bit_generator.state = probe
    oc, stride = 1 + seed * 7 % 37, 1 + seed // 2 % 2
    w = random((window, window, array.shape[3], oc), seed + 50)
    p = Program(*maker.shapes, w.shape, constants=[maker.filter_at] if seed % 4 else [])
    value, array = maker.image(p, 5)
    pad = window // 2
    x = p.pad(value, [0, pad, pad, 0], [0, pad, pad, 0]) if pad else value
    expected = convolve(np.pad(array, [(0, 0), (pad, pad), (pad, pad), (0, 0)]), w, (stride, stride), (1, 1))
    y = p.multiply_add(x, p.x[-1], p.zeros(*expected.shape), maps_of(2, (stride, stride), (1, 1)), "pppprrr")
    run(ConvolutionFamily(), p, y, [*maker.arrays, w], expected)


@pytest.mark.parametrize("seed", range(100, 124))
def test_contractions(seed: int):
    """Pixels by channels, times weights, or times the pixels of another chain (as queries and keys are)."""
    maker = Maker(seed, arithmetic=seed % 2 == 0)
    probe = maker.rng.bit_generator.state
    _, array = maker.image(Program(*maker.shapes), 5)
    maker.rng.bit_generator.state = probe
    _, h, w, c = array.shape
    other = random((9, c), seed)
    p = Program(*maker.shapes, other.shape)
    value, array = maker.image(p, 5)
    rows = p.collapse(value, [[0, 1, 2], [3]])
    flat = array.reshape(h * w, c).astype(np.float64)
    if seed % 4 < 2:
        maps = [dims_map(3, [0, 2]), dims_map(3, [1, 2]), dims_map(3, [0, 1])]
        y, expected = p.multiply_add(rows, p.x[-1], p.zeros(h * w, 9), maps, "ppr"), flat @ other.T
    else:
        maps = [dims_map(3, [0, 2]), dims_map(3, [1, 2]), dims_map(3, [0, 1])]
        y, expected = p.multiply_add(rows, rows, p.zeros(h * w, h * w), maps, "ppr"), flat @ flat.T
    run(ContractionFamily(), p, y, [*maker.arrays, other], expected)


@pytest.mark.parametrize("seed", range(200, 224))
def test_poolings(seed: int):
    maker = Maker(seed, arithmetic=False)
    p = Program(*maker.shapes)
    value, array = maker.image(p, 5)
    op, identity, combine = BODIES["max"]
    x = p.pad(value, [0, 1, 1, 0], [0, 1, 1, 0], identity)
    padded = np.pad(array, [(0, 0), (1, 1), (1, 1), (0, 0)], constant_values=identity)
    seen = taps(padded, (3, 3), 1, 1)
    expected = seen[0]
    for tap in seen[1:]:
        expected = combine(expected, tap)
    body: Callable[..., list[SSAValue]] = lambda b: [b.op(op, b.args[2], b.args[0])]  # noqa: E731
    maps = [image_map(2, 1, 1), dims_map(6, [4, 5]), dims_map(6, [0, 1, 2, 3])]
    out = p.zeros(*expected.shape, value=identity)
    y = p.emit.generic([x, p.empty(3, 3)], [out], maps, ["parallel"] * 4 + ["reduction"] * 2, body).results[0]
    run(WindowFamily(), p, y, maker.arrays, expected, may_refuse=True)
