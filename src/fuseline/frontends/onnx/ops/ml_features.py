"""Features of ai.onnx.ml, made of numbers: scaled, filled in, cut out, compared. What strings are in stays on the
host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import is_float, lowest, mlir_element
from fuseline.frontends.onnx.emission import cast, elementwise, filled, mapped, reduce, reshape, result, with_units
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.indexing import gather_at, position
from fuseline.frontends.onnx.ops.recurrent_slices import concat
from fuseline.frontends.onnx.ops.slices import slice_of
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known, static_size
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim, product, to_text

ML = "ai.onnx.ml"
FLOAT32, INT64 = np.dtype(np.float32), np.dtype(np.int64)


def _row(node: OnnxNode, values: Sequence[float], x: Tensor, dtype: np.dtype[np.generic]) -> Tensor:
    """One number per feature, or one for all."""
    if len(values) != 1 and len(values) != x.dims[-1]:
        raise NoNativeLowering("malformed-features", f"{len(values)} numbers for {x.dims[-1]} features")
    return known(np.asarray(values, dtype), name=f"{node.label}_row")


@onnx_op("Scaler", domain=ML)
def scaler(node: OnnxNode) -> Tensor:
    """(x - offset) * scale, in f32. Raises FuselineError: E0105 for other than one offset and scale, or one per
    feature."""
    numbers = [node.numbers("offset") or [0.0], node.numbers("scale") or [1.0]]
    _require_widths(node, [len(row) for row in numbers], node[0].dims[-1] if node[0].rank else 1)
    x = cast(node, node[0], FLOAT32)
    offset, scale = (_row(node, row, x, FLOAT32) for row in numbers)
    return elementwise(
        node, [x, offset, scale], FLOAT32, lambda b, e, o, k: b.op(arith.MulfOp, b.op(arith.SubfOp, e, o), k)
    )


def _require_widths(node: OnnxNode, counts: Sequence[int], features: Dim) -> None:
    """Refuse numbers of offsets and scales that fit neither each other nor the features, where those are known
    (E0105)."""
    widths = {count for count in counts if count != 1}
    if len(widths) > 1 or (widths and isinstance(features, int) and widths != {features}):
        found = f"{counts[0]} offsets and {counts[1]} scales for {to_text(features)} features"
        raise FuselineError("E0105", found, node=node.label)


@onnx_op("Binarizer", domain=ML)
def binarizer(node: OnnxNode) -> Tensor:
    """1 above the threshold, else 0."""
    x, element = node[0], mlir_element(node[0].dtype)
    if not is_float(x.dtype):
        raise NoNativeLowering("unsupported-dtype", x.dtype.name)
    limit = node.number("threshold", 0.0)

    def body(b: Body, e: SSAValue) -> SSAValue:
        return s.select(
            b,
            s.compare(b, x.dtype, "gt", e, b.constant(limit, element)),
            b.constant(1, element),
            b.constant(0, element),
        )

    return elementwise(node, [x], x.dtype, body)


@onnx_op("Normalizer", domain=ML)
def normalizer(node: OnnxNode) -> Tensor:
    """Each row by its largest element, the sum of its magnitudes or its length; rows of zeros stay."""
    x, kind, element = cast(node, node[0], FLOAT32), node.text("norm", "MAX"), mlir_element(FLOAT32)
    if x.rank not in (1, 2) or kind not in ("MAX", "L1", "L2"):
        raise NoNativeLowering("unsupported-mode", f"norm {kind} of rank {x.rank}")

    def combine(b: Body, e: SSAValue, total: SSAValue) -> SSAValue:
        if kind == "MAX":
            return s.maximum(b, FLOAT32, e, total)
        return b.op(arith.AddfOp, total, b.op(math.AbsFOp, e) if kind == "L1" else b.op(arith.MulfOp, e, e))

    axis = x.rank - 1
    size = with_units(
        reduce(node, [x], [axis], lowest(FLOAT32) if kind == "MAX" else 0.0, combine, dtype=FLOAT32), [axis], x.rank
    )

    def body(b: Body, e: SSAValue, total: SSAValue) -> SSAValue:
        length = b.op(math.SqrtOp, total) if kind == "L2" else total
        nothing = s.compare(b, FLOAT32, "eq", length, b.constant(0.0, element))
        return b.op(arith.DivfOp, e, s.select(b, nothing, b.constant(1.0, element), length))

    return elementwise(node, [x, size], FLOAT32, body)


@onnx_op("Imputer", domain=ML, least_ranks=(1,))
def imputer(node: OnnxNode) -> Tensor:
    """Another number in the stead of one that stands for what is missing."""
    x = node[0]
    floating = is_float(x.dtype)
    values = (
        node.numbers("imputed_value_floats") if floating else [float(v) for v in node.integers("imputed_value_int64s")]
    )
    missing = node.number("replaced_value_float", 0.0) if floating else node.integer("replaced_value_int64", 0)
    if not values or x.dtype.itemsize < 4:
        raise NoNativeLowering("unsupported-dtype", f"{len(values)} values for {x.dtype.name}")
    row = _row(node, values if floating else node.integers("imputed_value_int64s"), x, x.dtype)

    def body(b: Body, e: SSAValue, new: SSAValue) -> SSAValue:
        here = (
            s.compare(b, x.dtype, "ne", e, e)
            if missing != missing
            else s.compare(b, x.dtype, "eq", e, b.constant(missing, mlir_element(x.dtype)))
        )
        return s.select(b, here, new, e)

    return elementwise(node, [x, row], x.dtype, body)


@onnx_op("ArrayFeatureExtractor", domain=ML, least_ranks=(1,))
def array_feature_extractor(node: OnnxNode) -> Tensor:
    """The features with the numbers given, along the last axis."""
    x, picked = node[0], node[1]
    count = product(picked.dims)
    flat = reshape(node, picked, (count,))
    dims = (*x.dims[:-1], count) if x.rank > 1 else (1, count)

    def coordinates(b: Body, at: SSAValue) -> list[SSAValue]:
        lead = [s.loop_index(b, axis) for axis in range(x.rank - 1)]
        return [*lead, position(node, b, at, flat, x.dims[-1])]

    return gather_at(node, x, [(flat, [len(dims) - 1])], dims, coordinates)


@onnx_op("OneHotEncoder", domain=ML)
def one_hot_encoder(node: OnnxNode) -> Tensor:
    """1 for the category that an element is, 0 for all others."""
    x, categories = node[0], node.integers("cats_int64s")
    if not categories or not node.integer("zeros", 1):
        raise NoNativeLowering("unsupported-mode", "categories that are strings, or that must be met")
    whole, table = cast(node, x, INT64), known(np.asarray(categories, np.int64), name=f"{node.label}_categories")
    number = mlir_element(FLOAT32)

    def body(b: Body, e: SSAValue, category: SSAValue) -> SSAValue:
        return s.select(b, s.compare(b, INT64, "eq", e, category), b.constant(1.0, number), b.constant(0.0, number))

    return mapped(node, [(whole, list(range(x.rank))), (table, [x.rank])], (*x.dims, len(categories)), FLOAT32, body)


@onnx_op("FeatureVectorizer", domain=ML)
def feature_vectorizer(node: OnnxNode) -> Tensor:
    """`[rows, features]`: all inputs side by side in f32, each cut or filled with zeros to its declared width; one
    without a batch is one row. Raises FuselineError: E0105 for other than one width per input, and negative ones."""
    inputs, widths = node.present(), node.integers("inputdimensions")
    if len(widths) != len(inputs) or not widths or min(widths) < 0:
        raise FuselineError("E0105", f"inputdimensions {widths} for {len(inputs)} inputs", node=node.label)
    columns = [_of_width(node, x, width) for x, width in zip(inputs, widths, strict=True)]
    for other in columns[1:]:
        node.program.require_equal(columns[0].dims[0], other.dims[0], node.label)
    return concat(node, columns, 1)


def _of_width(node: OnnxNode, x: Tensor, width: int) -> Tensor:
    rows = x.dims[0] if x.rank > 1 else 1
    found = static_size(product(x.dims[1:] if x.rank > 1 else x.dims))
    flat = reshape(node, cast(node, x, FLOAT32), (rows, found))
    if width < found:
        return slice_of(node, flat, [0, 0], [rows, width], [1, 1])
    zeros = (rows, width - found)
    return (
        flat if width == found else concat(node, [flat, result(filled(node, 0.0, zeros, FLOAT32), zeros, FLOAT32)], 1)
    )
