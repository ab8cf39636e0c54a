"""Operators that reduce, order, select or normalise along axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.node_calls.draw import Call, Draw, calls

REDUCTIONS = (
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare"
).split()


@calls(*REDUCTIONS)
def reduction(d: Draw) -> Call:
    sizes = d.sizes(0 if d.chance(0.1) else 1)
    x = d.positive(sizes) if d.schema.name in ("ReduceLogSum", "ReduceProd") else d.values(sizes)
    axes: Any = d.axes(len(sizes), 0) if d.chance(0.8) and sizes else None
    given = d.some(keepdims=d.whole(0, 1))
    if d.before(13 if d.schema.name == "ReduceSum" else 18):
        return Call([x], {**given, **({"axes": axes} if axes else {})})
    return Call(
        [x, None if axes is None else np.array(axes, np.int64)], {**given, **d.some(noop_with_empty_axes=d.whole(0, 1))}
    )


@calls("ArgMax", "ArgMin")
def arg(d: Draw) -> Call:
    sizes = d.sizes()
    given = d.some(
        axis=d.axis(len(sizes)), keepdims=d.whole(0, 1), select_last_index=None if d.before(12) else d.whole(0, 1)
    )
    return Call([d.values(sizes)], given)


@calls("Softmax", "LogSoftmax", "Hardmax")
def softmax(d: Draw) -> Call:
    sizes = d.sizes(2)
    return Call([d.values(sizes)], d.some(axis=d.axis(len(sizes))))


@calls("CumSum", "CumProd")
def cumulative(d: Draw) -> Call:
    sizes = d.sizes()
    return Call(
        [d.values(sizes), np.asarray(d.axis(len(sizes)), d.dtype(1))],
        d.some(exclusive=d.whole(0, 1), reverse=d.whole(0, 1)),
    )


@calls("TopK")
def top_k(d: Draw) -> Call:
    sizes = d.sizes()
    axis = d.axis(len(sizes))
    k, given = d.whole(1, sizes[axis]), {"axis": axis}
    x = d.distinct(sizes)
    if d.before(10):
        return Call([x], {**given, "k": k}, 2)
    return Call([x, np.array([k])], {**given, **({} if d.before(11) else d.some(largest=d.whole(0, 1)))}, 2)


@calls("LpNormalization")
def lp_normalization(d: Draw) -> Call:
    sizes = d.sizes()
    return Call([d.values(sizes)], d.some(axis=d.axis(len(sizes)), p=d.whole(1, 2)))


@calls("MeanVarianceNormalization")
def mean_variance(d: Draw) -> Call:
    return Call([d.values(d.sizes(4, 4))], d.some(axes=[0, 2, 3] if d.chance() else [1, 2]))


@calls("LayerNormalization", "RMSNormalization")
def layer_normalization(d: Draw) -> Call:
    sizes = d.sizes()
    axis = d.axis(len(sizes))
    inner = sizes[axis if axis >= 0 else len(sizes) + axis :]
    biased = d.schema.name == "LayerNormalization"
    inputs = [d.values(sizes), d.values(inner, place=1), *([d.values(inner, place=1)] if biased and d.chance() else [])]
    return Call(inputs, {"axis": axis, **d.some(epsilon=d.number(1e-5, 1e-2))})


@calls("BatchNormalization")
def batch_normalization(d: Draw) -> Call:
    sizes = d.sizes(2)
    channels = [
        d.values((sizes[1],), place=1),
        d.values((sizes[1],), place=2),
        d.values((sizes[1],), place=3),
        d.positive((sizes[1],), place=4),
    ]
    training = {"training_mode": 1} if not d.before(14) and d.chance(0.25) else {}
    return Call(
        [d.values(sizes), *channels],
        {**d.some(epsilon=d.number(1e-5, 1e-2), momentum=d.number(0.5, 1)), **training},
        3 if training else 1,
    )


@calls("InstanceNormalization")
def instance_normalization(d: Draw) -> Call:
    sizes = d.sizes(3)
    return Call([d.values(sizes), d.values((sizes[1],)), d.values((sizes[1],))], d.some(epsilon=d.number(1e-5, 1e-2)))


@calls("GroupNormalization")
def group_normalization(d: Draw) -> Call:
    groups, per = d.whole(1, 3), d.whole(1, 3)
    return Call(
        [d.values((d.whole(1, 2), groups * per, *d.sizes(1, 2))), d.values((groups * per,)), d.values((groups * per,))],
        {"num_groups": groups},
    )


@calls("LRN")
def lrn(d: Draw) -> Call:
    given = d.some(alpha=d.number(0.01, 1), beta=d.number(0.5, 1), bias=d.number(0.5, 2))
    return Call([d.values((d.whole(1, 2), d.whole(1, 7), *d.sizes(2, 2)))], {"size": d.one_of(1, 3, 5), **given})


@calls("NonZero")
def non_zero(d: Draw) -> Call:
    x = d.values(d.sizes(0))
    return Call([x if d.holds_words() or d.chance(0.7) else np.zeros_like(x)])


@calls("Unique")
def unique(d: Draw) -> Call:
    sizes = d.sizes(1, 3)
    return Call([d.values(sizes)], d.some(axis=d.axis(len(sizes)), sorted=d.whole(0, 1)), d.whole(1, 4))


@calls("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(d: Draw) -> Call:
    batch, classes, rest = d.whole(1, 3), d.whole(2, 4), d.sizes(0, 2)
    target = d.rng.integers(0, classes, (batch, *rest)).astype(d.dtype(1))
    weights = [d.positive((classes,))] if d.chance() else []
    given = d.some(reduction=d.one_of("none", "sum", "mean"), ignore_index=d.whole(0, classes - 1))
    outputs = d.whole(1, 2) if d.schema.name == "SoftmaxCrossEntropyLoss" else 1
    return Call([d.values((batch, classes, *rest)), target, *weights], given, outputs)
