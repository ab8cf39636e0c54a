"""Normalisations."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from tests.fuzz.exclusions import exclude
from tests.fuzz.graph import Graph
from tests.fuzz.recipe import recipe
from tests.fuzz.recipes.convolution import image
from tests.fuzz.tensors import F64, FLOATS, Array, Value


def _positive(g: Graph, x: Value, count: int) -> Value:
    return g.constant(g.rng.uniform(0.5, 2, count).astype(x.dtype))


@recipe("BatchNormalization", since=9)
def batch_normalization(g: Graph, op: str) -> None:
    """In inference."""
    x = image(g) if g.chance(0.7) else g.pick(FLOATS, lambda v: v.rank >= 2 and v.fixed(1))
    count = x.shape[1]
    vectors = [
        _positive(g, x, count),
        *(g.constant(g.contents(x.dtype, (count,))) for _ in range(2)),
        _positive(g, x, count),
    ]
    g.add(op, x, *vectors, **({"epsilon": 0.01} if g.chance(0.5) else {}))


@recipe("InstanceNormalization", weight=0.6)
def instance_normalization(g: Graph, op: str) -> None:
    """Over the pixels of each channel."""
    x = image(g)
    exclude("instance-norm-of-nothing", any(prod(shape[2:]) == 0 for shape in x.shapes))
    exclude("instance-norm-of-one-element", any(prod(shape[2:]) == 1 for shape in x.shapes))
    g.add(op, x, _positive(g, x, x.shape[1]), g.constant(g.contents(x.dtype, (x.shape[1],))), epsilon=0.01)


@recipe("LayerNormalization", since=17)
def layer_normalization(g: Graph, op: str) -> None:
    """From any axis on whose sizes are fixed; mean and deviation at times."""
    x = g.pick(FLOATS, lambda v: v.rank > 0 and v.fixed(-1) and v.shape[-1] > 1)
    axis = x.rank - 1
    while axis > 0 and x.fixed(axis - 1) and g.chance(0.3):
        axis -= 1
    shape = x.shape[axis:]
    bias = [g.constant(g.contents(x.dtype, shape))] if g.chance(0.6) else []
    scale = g.constant(g.contents(x.dtype, shape))
    g.add_all(
        op, x, scale, *bias, outputs=g.choose([1, 1, 1, 2, 3]), axis=g.choose([axis, axis - x.rank]), epsilon=0.01
    )


@recipe("RMSNormalization", since=23)
def rms_normalization(g: Graph, op: str) -> None:
    """Along the last axis."""
    x = g.pick(FLOATS, lambda v: v.rank > 0 and v.fixed(-1) and v.shape[-1] > 1)
    g.add(op, x, g.constant(g.contents(x.dtype, x.shape[-1:])), epsilon=0.01)


@recipe("GroupNormalization", since=21, weight=0.6)
def group_normalization(g: Graph, op: str) -> None:
    """Groups that divide the channels."""
    x = image(g)
    exclude("group-norm-of-doubles", x.dtype == F64)
    groups = g.choose([d for d in (1, 2, 3, 4, x.shape[1]) if x.shape[1] % d == 0])
    g.add(
        op,
        x,
        _positive(g, x, x.shape[1]),
        g.constant(g.contents(x.dtype, (x.shape[1],))),
        num_groups=groups,
        epsilon=0.01,
    )


@recipe("MeanVarianceNormalization", since=9, weight=0.3)
def mean_variance(g: Graph, op: str) -> None:
    """Over batch and pixels."""
    x = image(g)
    axes = [0, 2, 3] if x.rank == 4 and g.chance(0.5) else [1, 2]
    exclude("mean-variance-of-nearly-equal-numbers", any(_nearly_equal(array, axes) for array in x.arrays))
    g.add(op, x, axes=axes)


def _nearly_equal(array: Array, axes: Sequence[int]) -> bool:
    """Whether somewhere what is added to a standard deviation shows beside it, though not all numbers are one."""
    deviation = array.astype(np.float64).std(axis=tuple(axes))
    return bool(((deviation > 0) & (deviation < 1e-2)).any())


@recipe("LRN", weight=0.4)
def lrn(g: Graph, op: str) -> None:
    """Over neighbouring channels."""
    x, size, alpha = image(g), g.choose([1, 3, 5]), 0.1
    largest = max(float(np.abs(array).max(initial=0)) for array in x.arrays)
    exclude("response-norm-of-unlike-channels", alpha / size * largest**2 > 16)
    g.add(op, x, size=size, alpha=alpha, beta=0.75, bias=1.5)
