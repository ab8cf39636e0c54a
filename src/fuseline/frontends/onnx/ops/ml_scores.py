"""What classifiers and regressors of ai.onnx.ml make of scores `[rows, targets]`: transforms, the second class of two,
labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray
from xdsl.dialects import arith, math, tensor
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, lowest, mlir_element
from fuseline.frontends.onnx.emission import cast, elementwise, mapped, reduce, with_units
from fuseline.frontends.onnx.host_models import HostNode
from fuseline.frontends.onnx.host_values import Value, known_value
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.arg_extremes import arg_of
from fuseline.frontends.onnx.ops.indexing import gather_at
from fuseline.frontends.onnx.ops.softmax import softmax_along
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known
from fuseline.ir.build import Body, element_of

Array = NDArray[Any]
Unary = Callable[[Body, SSAValue], SSAValue]
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
NEARLY_NOTHING = 1e-7
"""Scores no larger count as 0 in SOFTMAX_ZERO."""

OF_NOTHING = 0.5
"""What SOFTMAX_ZERO makes of a row of zeros, as onnxruntime does."""


def plus_row(node: OnnxNode, scores: Tensor, row: Array) -> Tensor:
    """`scores` plus one number per column; a single one is added to the first column only, as in onnxruntime, none to
    nothing."""
    if not len(row):
        return scores
    columns = scores.dims[1]
    if len(row) > 1 and columns != len(row):
        raise NoNativeLowering("malformed-scores", f"{len(row)} numbers for {columns} columns")
    filled = np.zeros(int(columns) if isinstance(columns, int) else 1, scores.dtype)
    filled[: len(row)] = row
    return elementwise(node, [scores, known(filled)], scores.dtype, lambda b, x, y: s.add(b, scores.dtype, x, y))


def finished(node: OnnxNode, scores: Tensor, post: str) -> Tensor:
    """The transform `post` of scores, each row for itself. A single score is never shared out or squashed, only PROBIT
    is one of a single score."""
    if post not in TRANSFORMS:
        raise NoNativeLowering("unsupported-mode", f"post_transform {post}")
    if post == "PROBIT":
        return elementwise(node, [scores], scores.dtype, lambda b, e: _probit(b, scores, e))
    if post == "NONE" or scores.dims[1] == 1:
        return scores
    if post == "LOGISTIC":
        return elementwise(node, [scores], scores.dtype, lambda b, e: logistic(b, scores, e))
    return softmax_along(node, scores, [1]) if post == "SOFTMAX" else _softmax_zero(node, scores)


def logistic(b: Body, like: Tensor, x: SSAValue) -> SSAValue:
    """1 / (1 + exp(-x))."""
    one = b.constant(1.0, mlir_element(like.dtype))
    return b.op(arith.DivfOp, one, b.op(arith.AddfOp, one, b.op(math.ExpOp, b.op(arith.NegfOp, x))))


def _probit(b: Body, like: Tensor, x: SSAValue) -> SSAValue:
    """The quantile of the normal distribution, by Winitzki's inverse of erf, as onnxruntime computes it."""

    def number(value: float) -> SSAValue:
        return b.constant(value, mlir_element(like.dtype))

    at = b.op(arith.SubfOp, b.op(arith.MulfOp, number(2.0), x), number(1.0))
    log = b.op(math.LogOp, b.op(arith.MulfOp, b.op(arith.SubfOp, number(1.0), at), b.op(arith.AddfOp, number(1.0), at)))
    v = b.op(arith.AddfOp, number(2.0 / (3.14159 * 0.147)), b.op(arith.MulfOp, number(0.5), log))
    square = b.op(arith.SubfOp, b.op(arith.MulfOp, v, v), b.op(arith.MulfOp, number(1.0 / 0.147), log))
    size = b.op(math.SqrtOp, b.op(arith.SubfOp, b.op(math.SqrtOp, square), v))
    signed = s.select(b, s.compare(b, like.dtype, "lt", at, number(0.0)), b.op(arith.NegfOp, size), size)
    return b.op(arith.MulfOp, number(1.41421356), signed)


def _softmax_zero(node: OnnxNode, scores: Tensor) -> Tensor:
    """Softmax that leaves what is 0 alone."""
    dtype, element = scores.dtype, mlir_element(scores.dtype)
    top = with_units(
        reduce(node, [scores], [1], lowest(dtype), lambda b, e, acc: s.maximum(b, dtype, e, acc), dtype=dtype), [1], 2
    )

    def raised(b: Body, e: SSAValue, peak: SSAValue) -> SSAValue:
        some = s.compare(b, dtype, "gt", b.op(math.AbsFOp, e), b.constant(NEARLY_NOTHING, element))
        small = b.op(arith.MulfOp, e, b.op(math.ExpOp, b.op(arith.NegfOp, peak)))
        return s.select(b, some, b.op(math.ExpOp, b.op(arith.SubfOp, e, peak)), small)

    def counted(b: Body, e: SSAValue, peak: SSAValue, acc: SSAValue) -> SSAValue:
        some = s.compare(b, dtype, "gt", b.op(math.AbsFOp, e), b.constant(NEARLY_NOTHING, element))
        return b.op(arith.AddfOp, acc, s.select(b, some, raised(b, e, peak), b.constant(0.0, element)))

    total = with_units(reduce(node, [scores, top], [1], 0.0, counted, dtype=dtype), [1], 2)

    def shared(b: Body, e: SSAValue, peak: SSAValue, whole: SSAValue) -> SSAValue:
        nothing = s.compare(b, dtype, "eq", whole, b.constant(0.0, element))
        return s.select(b, nothing, b.constant(OF_NOTHING, element), b.op(arith.DivfOp, raised(b, e, peak), whole))

    return elementwise(node, [scores, top, total], dtype, shared)


# -- classes -----------------------------------------------------------------------------------------------------------


def two_columns(node: OnnxNode, score: Tensor, first: Unary, second: Unary) -> Tensor:
    """`[rows, 2]` from one score per row."""
    rows = score.dims[0]

    def body(b: Body, e: SSAValue) -> SSAValue:
        left = b.op(arith.CmpiOp, s.loop_index(b, 1), s.index_constant(b, 0), "eq")
        return s.select(b, left, first(b, e), second(b, e))

    return mapped(node, [(score, [0])], (rows, 2), score.dtype, body)


def column_of(node: OnnxNode, scores: Tensor, column: int) -> Tensor:
    """One column of scores, `[rows]`."""
    source = node.ssa(scores)
    return mapped(
        node,
        [],
        scores.dims[:1],
        scores.dtype,
        lambda b: b.op(tensor.ExtractOp, source, [s.loop_index(b, 0), s.index_constant(b, column)], element_of(source)),
    )


def refuse_probit_of_one(node: OnnxNode, post: str) -> None:
    """Nothing says what the other class is then, and onnxruntime answers memory that it has not written. Raises
    FuselineError: E0106 for PROBIT."""
    if post == "PROBIT":
        raise FuselineError(
            "E0106", f"{node.op_type} has one score for two classes, of which PROBIT makes no second", node=node.label
        )


def second_of_two(node: OnnxNode, score: Tensor, post: str, *, share: bool) -> Tensor:
    """Both classes of one score: its complement and itself where it is a share, else its opposite and itself, or their
    logistics."""
    dtype, one = score.dtype, 1.0
    refuse_probit_of_one(node, post)
    if share and post != "LOGISTIC":
        return two_columns(
            node, score, lambda b, e: s.sub(b, dtype, b.constant(one, mlir_element(dtype)), e), lambda b, e: e
        )
    if post == "LOGISTIC":
        return two_columns(
            node, score, lambda b, e: logistic(b, score, b.op(arith.NegfOp, e)), lambda b, e: logistic(b, score, e)
        )
    return two_columns(node, score, lambda b, e: b.op(arith.NegfOp, e), lambda b, e: e)


def best_class(node: OnnxNode, scores: Tensor) -> Tensor:
    """The number of the first largest score of each row."""
    return arg_of(node, scores, 1, largest=True, last=False)


def above(node: OnnxNode, score: Tensor, limit: float) -> Tensor:
    """1 where a score `[rows]` is larger than the limit, else 0."""
    dtype = score.dtype

    def body(b: Body, e: SSAValue) -> SSAValue:
        return b.op(
            arith.ExtUIOp,
            s.compare(b, dtype, "gt", e, b.constant(limit, mlir_element(dtype))),
            mlir_element(INDEX_DTYPE),
        )

    return elementwise(node, [score], INDEX_DTYPE, body)


def labelled(node: OnnxNode, classes: Tensor, labels: Sequence[int] | Sequence[str]) -> Value:
    """The label of each class number; strings are looked up on the host."""
    if all(isinstance(label, int) for label in labels):
        if list(labels) == list(range(len(labels))):
            return classes
        table = known(np.asarray(labels, np.int64), name=f"{node.label}_labels")
        return gather_at(node, table, [(classes, [0])], classes.dims, lambda b, at: [s.as_index(b, at)])
    table = known_value(np.asarray(labels, object), f"{node.label}_labels")
    source = ir.Node("", "Gather", [ir.Value(name="labels"), ir.Value(name="classes")], name=node.label)
    picked = HostNode(source, node.label, [table, classes], {}, "", {"": 18}, {}, {})
    found = node.importer.host.run(picked, NoNativeLowering("host-value", "labels are strings"))[0]
    assert found is not None
    return found


def classified(
    node: OnnxNode,
    scores: Tensor,
    labels: Sequence[int] | Sequence[str],
    base: Array,
    columns: Sequence[int],
    *,
    positive: bool,
    ranked: Tensor | None = None,
) -> list[Value]:
    """Labels and scores `[rows, classes]` of an ensemble. Of two classes only one may have been scored (`columns`), a
    share if no weight is negative (`positive`): its score decides. It is that of the second class; one that the model
    gives to the first class makes the other score, too, as in onnxruntime. Of more classes the largest of `ranked` (of
    the scores where it is None) gives the label; that of a single one is its side of 0, whatever it is called."""
    post = node.text("post_transform", "NONE")
    if len(labels) == 2 and list(columns) == [1] and len(base) < 2:
        second = above(node, column_of(node, scores, 1), 0.5 if positive else 0.0)
        return [labelled(node, second, labels), cast(node, finished(node, scores, post), np.dtype(np.float32))]
    if len(labels) == 2 and len(columns) == 1 and len(base) < 2:
        return _one_of_two(node, column_of(node, scores, columns[0]), labels, base, post, positive=positive)
    based = plus_row(node, scores, base)
    final = cast(node, finished(node, based, post), np.dtype(np.float32))
    if len(labels) == 1:
        return [above(node, column_of(node, based, 0), 0.0), final]
    return [labelled(node, best_class(node, based if ranked is None else ranked), labels), final]


def _one_of_two(
    node: OnnxNode, score: Tensor, labels: Sequence[int] | Sequence[str], base: Array, post: str, *, positive: bool
) -> list[Value]:
    if len(base):
        based = known(base.astype(score.dtype))
        score = elementwise(node, [score, based], score.dtype, lambda b, x, y: s.add(b, score.dtype, x, y))
    both = second_of_two(node, score, post, share=positive)
    return [
        labelled(node, above(node, score, 0.5 if positive else 0.0), labels),
        cast(node, both, np.dtype(np.float32)),
    ]
