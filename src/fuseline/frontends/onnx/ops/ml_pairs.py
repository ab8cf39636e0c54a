"""SVMClassifier of ai.onnx.ml: every pair of classes decided by the kernels of its support vectors, then votes and what
is made of the decisions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, mlir_element
from fuseline.frontends.onnx.emission import mapped, reduce
from fuseline.frontends.onnx.host_values import Value
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.coupling import coupled
from fuseline.frontends.onnx.ops.matmul import matmul_of
from fuseline.frontends.onnx.ops.ml_linear import FLOAT32, ML, float_rows, kernels, product_with
from fuseline.frontends.onnx.ops.ml_scores import (
    best_class,
    finished,
    labelled,
    logistic,
    plus_row,
    second_of_two,
)
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import Tensor, known, view
from fuseline.ir.build import Body

Array = NDArray[Any]
LEAST_SHARE = 1e-7
"""A class of a pair is never less likely than this (as in LIBSVM, which onnxruntime follows)."""


@onnx_op("SVMClassifier", domain=ML)
def svm_classifier(node: OnnxNode) -> list[Value]:
    """The class that wins most pairs, and the decisions of all pairs or, where they were fitted, the probabilities of
    all classes. Raises FuselineError: E0105 for labels, weights, offsets or fits that do not match the classes."""
    x, vectors, post = float_rows(node), node.integers("vectors_per_class"), node.text("post_transform", "NONE")
    labels = node.texts("classlabels_strings") or node.integers("classlabels_ints")
    if not sum(vectors):
        return _one_for_each(node, x, labels, post)
    if len(vectors) < 2 or len(labels) != len(vectors):
        raise FuselineError("E0105", f"{len(labels)} labels for {len(vectors)} classes", node=node.label)
    if min(vectors) < 0:
        raise FuselineError("E0105", f"vectors_per_class {vectors}: fewer than none", node=node.label)
    _require_fit(node, vectors)
    decisions = _decisions(node, x, vectors)
    best = best_class(node, _votes(node, decisions, len(vectors)))
    return [labelled(node, best, labels), _scores(node, decisions, len(vectors), post)]


def _one_for_each(node: OnnxNode, x: Tensor, labels: Sequence[int] | Sequence[str], post: str) -> list[Value]:
    """A linear machine without support vectors: one score per class, the first offset for all."""
    if not labels or not node.numbers("rho"):
        raise FuselineError("E0105", "without support vectors it needs labels and an offset", node=node.label)
    scores = product_with(node, x, node.numbers("coefficients"), len(labels))
    scores = plus_row(node, scores, np.full(len(labels), node.numbers("rho")[0], np.float32))
    return [labelled(node, best_class(node, scores), labels), finished(node, scores, post)]


# -- decisions ---------------------------------------------------------------------------------------------------------


def _decisions(node: OnnxNode, x: Tensor, vectors: Sequence[int]) -> Tensor:
    """`[rows, pairs]`: above 0 for the first class of the pair."""
    total, pairs = sum(vectors), list(combinations(range(len(vectors)), 2))
    weights, rho = node.numbers("coefficients"), np.asarray(node.numbers("rho"), np.float32)
    table = _weights(np.asarray(weights, np.float32).reshape(-1, total), vectors, pairs)
    return plus_row(
        node, matmul_of(node, kernels(node, x, total), known(table, name=f"{node.label}_coefficients")), rho
    )


def _require_fit(node: OnnxNode, vectors: Sequence[int]) -> None:
    """Refuse numbers of coefficients, offsets and probabilities that do not fit the classes (E0105), before anything
    asks for the features."""
    total, pairs = sum(vectors), len(vectors) * (len(vectors) - 1) // 2
    weights, rho, *fit = (len(node.numbers(name)) for name in ("coefficients", "rho", "prob_a", "prob_b"))
    if weights != total * (len(vectors) - 1) or rho != pairs:
        found = f"{weights} coefficients and {rho} offsets for {pairs} pairs of classes of {total} vectors"
        raise FuselineError("E0105", found, node=node.label)
    if fit[0] and fit != [pairs, pairs]:
        found = f"{fit[0]} of prob_a and {fit[1]} of prob_b for {pairs} pairs of classes"
        raise FuselineError("E0105", found, node=node.label)


def _weights(weights: Array, vectors: Sequence[int], pairs: Sequence[tuple[int, int]]) -> Array:
    """`[vectors, pairs]`: ONNX lists a vector's weight against the other classes in their order, its own left out."""
    ends = np.cumsum(vectors)
    ranges = [slice(end - count, end) for end, count in zip(ends, vectors, strict=True)]
    table = np.zeros((weights.shape[1], len(pairs)), np.float32)
    for column, (i, j) in zip(table.T, pairs, strict=True):
        column[ranges[i]], column[ranges[j]] = weights[j - 1, ranges[i]], weights[i, ranges[j]]
    return table


def _votes(node: OnnxNode, decisions: Tensor, classes: int) -> Tensor:
    """`[rows, classes]`: how many pairs each class wins."""
    pairs, rows = list(combinations(range(classes), 2)), decisions.dims[0]
    winners = np.asarray(pairs, np.int64)
    loops = (rows, classes, len(pairs))
    first, second = (view(known(winners[:, side]), loops, [2]) for side in (0, 1))
    each = view(known(np.arange(classes)), loops, [1])

    def count(b: Body, e: SSAValue, i: SSAValue, j: SSAValue, own: SSAValue, total: SSAValue) -> SSAValue:
        wins = s.select(b, s.compare(b, FLOAT32, "gt", e, b.constant(0.0, mlir_element(FLOAT32))), i, j)
        return b.op(
            arith.AddiOp,
            total,
            b.op(arith.ExtUIOp, s.compare(b, INDEX_DTYPE, "eq", wins, own), mlir_element(INDEX_DTYPE)),
        )

    return reduce(node, [view(decisions, loops, [0, 2]), first, second, each], [2], 0, count, dtype=INDEX_DTYPE)


# -- scores ------------------------------------------------------------------------------------------------------------


def _scores(node: OnnxNode, decisions: Tensor, classes: int, post: str) -> Tensor:
    slopes, offsets = (np.asarray(node.numbers(name), np.float32) for name in ("prob_a", "prob_b"))
    if len(slopes):
        return finished(node, coupled(node, _shares(node, decisions, slopes, offsets), classes), post)
    if classes > 2:
        return finished(node, decisions, post)
    score = view(decisions, decisions.dims[:1], [0, None])
    return second_of_two(node, score, post, share=post != "NONE")


def _shares(node: OnnxNode, decisions: Tensor, slopes: Array, offsets: Array) -> Tensor:
    """`[rows, pairs]`: how likely the first class of each pair is, by Platt's fit to the decisions."""
    element = mlir_element(FLOAT32)

    def body(b: Body, e: SSAValue, slope: SSAValue, offset: SSAValue) -> SSAValue:
        share = logistic(b, decisions, b.op(arith.NegfOp, b.op(arith.AddfOp, b.op(arith.MulfOp, e, slope), offset)))
        low, high = b.constant(LEAST_SHARE, element), b.constant(1 - LEAST_SHARE, element)
        return s.minimum(b, FLOAT32, s.maximum(b, FLOAT32, share, low), high)

    operands = [(decisions, [0, 1]), (known(slopes), [1]), (known(offsets), [1])]
    return mapped(node, operands, decisions.dims, FLOAT32, body)
