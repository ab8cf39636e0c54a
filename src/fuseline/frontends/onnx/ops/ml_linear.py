"""Linear models and support vector regression of ai.onnx.ml: products, then what `ml_scores.py` makes of scores."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import mlir_element
from fuseline.frontends.onnx.emission import cast, elementwise, reduce, reshape
from fuseline.frontends.onnx.host_values import Value
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.matmul import matmul_of
from fuseline.frontends.onnx.ops.ml_scores import (
    above,
    best_class,
    column_of,
    finished,
    labelled,
    plus_row,
    second_of_two,
)
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known, static_size, view
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim, to_text

ML = "ai.onnx.ml"
FLOAT32 = np.dtype(np.float32)


def float_rows(node: OnnxNode) -> Tensor:
    """The input as rows of f32 features."""
    x = node[0]
    if x.rank not in (1, 2):
        raise NoNativeLowering("unsupported-rank", f"rank {x.rank}")
    wide = cast(node, x, FLOAT32)
    return reshape(node, wide, (1, x.dims[0])) if x.rank == 1 else wide


def product_with(node: OnnxNode, x: Tensor, weights: list[float], outputs: int) -> Tensor:
    """`[rows, outputs]`: the features of each row times the weights of each output, one output after the other."""
    features = static_size(x.dims[1])
    if len(weights) != outputs * features:
        raise NoNativeLowering(
            "malformed-scores", f"{len(weights)} coefficients for {outputs} outputs of {features} features"
        )
    table = np.ascontiguousarray(np.asarray(weights, np.float32).reshape(outputs, features).T)
    return matmul_of(node, x, known(table, name=f"{node.label}_coefficients"))


def _linear(node: OnnxNode, x: Tensor, outputs: int) -> Tensor:
    scores = product_with(node, x, node.numbers("coefficients"), outputs)
    return plus_row(node, scores, np.asarray(node.numbers("intercepts"), np.float32))


def _require_intercepts(node: OnnxNode, outputs: int) -> None:
    """Refuse intercepts that are neither left out nor one for each output (E0105)."""
    found = len(node.numbers("intercepts"))
    if found not in (0, outputs):
        raise FuselineError("E0105", f"{found} intercepts for {outputs} outputs", node=node.label)


@onnx_op("LinearRegressor", domain=ML)
def linear_regressor(node: OnnxNode) -> Tensor:
    """x W + b. Raises FuselineError: E0105 for other than one intercept per output, or none."""
    x, targets = float_rows(node), node.integer("targets", 1)
    require_table(node, "coefficients", targets, x.dims[1])
    _require_intercepts(node, targets)
    scores = _linear(node, x, targets)
    return finished(node, scores, node.text("post_transform", "NONE"))


@onnx_op("LinearClassifier", domain=ML)
def linear_classifier(node: OnnxNode) -> list[Value]:
    """The class with the largest score; of two classes with one score the second where it is positive. Raises
    FuselineError: E0105 for other than one intercept per class, or none."""
    x, post = float_rows(node), node.text("post_transform", "NONE")
    outputs = _class_scores(node, x.dims[1])
    _require_intercepts(node, outputs)
    scores = _linear(node, x, outputs)
    labels = (
        node.texts("classlabels_strings")
        or node.integers("classlabels_ints")
        or list(range(static_size(scores.dims[1])))
    )
    if scores.dims[1] == 1:
        if len(labels) != 2:
            raise NoNativeLowering("unsupported-labels", f"one score for {len(labels)} classes")
        score = column_of(node, scores, 0)
        return [labelled(node, above(node, score, 0.0), labels), second_of_two(node, score, post, share=True)]
    if len(labels) != scores.dims[1]:
        raise NoNativeLowering("unsupported-labels", f"{scores.dims[1]} scores for {len(labels)} classes")
    return [labelled(node, best_class(node, scores), labels), finished(node, scores, post)]


def _class_scores(node: OnnxNode, features: Dim) -> int:
    """How many scores a linear classifier makes of a row: as many as its coefficients are rows of features, or, where
    the number of features is symbolic, as it has intercepts.

    Raises:
        FuselineError: E0105 for coefficients that are no whole number of rows.
    """
    if isinstance(features, int):
        outputs = len(node.numbers("coefficients")) // max(features, 1)
    else:
        outputs = len(node.numbers("intercepts"))
    require_table(node, "coefficients", max(outputs, 1), features)
    return max(outputs, 1)


@onnx_op("SVMRegressor", domain=ML)
def svm_regressor(node: OnnxNode) -> Tensor:
    """The sum of the kernels of all support vectors; of one class only on which side it lies. Raises FuselineError:
    E0105 without an offset (`rho`)."""
    x, count = float_rows(node), node.integer("n_supports")
    weights, rho = node.numbers("coefficients"), node.numbers("rho")
    if not rho:
        raise FuselineError("E0105", "it needs an offset (rho)", node=node.label)
    require_table(node, "coefficients", 1, count or x.dims[1])
    scores = product_with(node, kernels(node, x, count), weights, 1) if count else product_with(node, x, weights, 1)
    scores = plus_row(node, scores, np.asarray(rho[:1], np.float32))
    if node.integer("one_class"):
        number = mlir_element(FLOAT32)
        side = {True: 1.0, False: -1.0}

        def sign(b: Body, e: SSAValue) -> SSAValue:
            positive = s.compare(b, FLOAT32, "gt", e, b.constant(0.0, number))
            return s.select(b, positive, b.constant(side[True], number), b.constant(side[False], number))

        return elementwise(node, [scores], FLOAT32, sign)
    return finished(node, scores, node.text("post_transform", "NONE"))


def kernels(node: OnnxNode, x: Tensor, count: int) -> Tensor:
    """`[rows, vectors]`: the kernel of each row and each support vector.

    Raises:
        FuselineError: E0105 for support vectors that do not fit their number, or the features.
    """
    require_table(node, "support_vectors", count, x.dims[1])
    features, kind = static_size(x.dims[1]), node.text("kernel_type", "LINEAR")
    vectors = np.asarray(node.numbers("support_vectors"), np.float32).reshape(count, features)
    gamma, shift, degree = _kernel_parameters(node)
    if kind == "RBF":
        return _radial(node, x, known(vectors, name=f"{node.label}_vectors"), gamma)
    products = matmul_of(node, x, known(np.ascontiguousarray(vectors.T), name=f"{node.label}_vectors"))
    if kind == "LINEAR":
        return products
    if kind not in ("POLY", "SIGMOID"):
        raise NoNativeLowering("unsupported-mode", f"kernel_type {kind}")
    number = mlir_element(FLOAT32)

    def body(b: Body, e: SSAValue) -> SSAValue:
        inner = b.op(arith.AddfOp, b.op(arith.MulfOp, e, b.constant(gamma, number)), b.constant(shift, number))
        return b.op(math.TanhOp, inner) if kind == "SIGMOID" else b.op(math.PowFOp, inner, b.constant(degree, number))

    return elementwise(node, [products], FLOAT32, body)


def _kernel_parameters(node: OnnxNode) -> tuple[float, float, float]:
    """gamma, coef0 and degree, 0 where they are left out; raises FuselineError (E0105) for another number of them."""
    given = node.numbers("kernel_params") or [0.0] * 3
    if len(given) != 3:
        raise FuselineError("E0105", f"{len(given)} kernel_params, not gamma, coef0 and degree", node=node.label)
    return given[0], given[1], given[2]


def require_table(node: OnnxNode, name: str, rows: int, width: Dim) -> None:
    """Refuse an attribute whose numbers are no table of `rows` times `width`; around a symbolic width, one that is a
    table of no width at all.

    Raises:
        FuselineError: E0105, with both numbers.
    """
    found = len(node.numbers(name))
    fits = found == rows * width if isinstance(width, int) else rows > 0 and found > 0 and found % rows == 0
    if rows < 0 or not fits:
        raise FuselineError("E0105", f"{found} {name} are no {rows} rows of {to_text(width)}", node=node.label)


def _radial(node: OnnxNode, x: Tensor, vectors: Tensor, gamma: float) -> Tensor:
    """exp(-gamma |x - v|^2), the squares of differences summed as they are: no digits are lost where they are close."""
    rows, (count, features) = x.dims[0], vectors.dims
    dims, number = (rows, count, features), mlir_element(FLOAT32)

    def add_square(b: Body, p: SSAValue, q: SSAValue, total: SSAValue) -> SSAValue:
        difference = b.op(arith.SubfOp, p, q)
        return b.op(arith.AddfOp, total, b.op(arith.MulfOp, difference, difference))

    distance = reduce(node, [view(x, dims, [0, 2]), view(vectors, dims, [1, 2])], [2], 0.0, add_square, dtype=FLOAT32)
    return elementwise(
        node, [distance], FLOAT32, lambda b, e: b.op(math.ExpOp, b.op(arith.MulfOp, e, b.constant(-gamma, number)))
    )
