"""Arithmetic on sizes, done while reading: what `Shape` and the integer operators after it compute becomes numbers or
symbolic sizes.

Content is a NumPy array; where it depends on symbols, an object array of `Dim`s. Only small tensors are folded; the
rest is left to the IR. Operators that sizes seldom meet are lowered like any other; `constant_nodes` evaluates what
they emit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import prod
from typing import Any

import numpy as np

from fuseline.frontends.onnx import dtypes
from fuseline.frontends.onnx.folding_arithmetic import (
    Array,
    Unfoldable,
    array_of_sizes,
    binary,
    comparison,
    divide,
    equal,
    less,
    less_equal,
    modulo,
    negated,
    not_of_sizes,
    unary,
    with_python_numbers,
)
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.range_counts import count_of_range
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known, known_sizes
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim, Expr

FOLD_LIMIT = 4096
"""Elements; larger content is data, not arithmetic on sizes."""


def fold(node: OnnxNode) -> Tensor | None:
    """The node's only output where its content is known, else None."""
    if node.source.domain != "":
        return None
    special = _OF_SHAPES.get(node.op_type)
    if special is not None:
        return special(node)
    if not node.inputs or not _is_small(node):
        return None
    folder = _FOLDERS.get(node.op_type)
    if folder is None:
        return None
    try:
        return _folded(node, folder)
    except (Unfoldable, NoNativeLowering, ValueError, TypeError, IndexError, ZeroDivisionError):
        return None


def _is_small(node: OnnxNode) -> bool:
    return all(t is None or (t.array is not None and t.array.size <= FOLD_LIMIT) for t in node.inputs)


def _folded(node: OnnxNode, folder: Callable[..., Array]) -> Tensor | None:
    arrays = [None if t is None else t.array for t in node.inputs]
    dtype = _result_dtype(node)
    with np.errstate(all="ignore"):
        out = np.asarray(folder(node, *arrays))
    if out.size > FOLD_LIMIT:
        return None
    if out.dtype != object:
        return known(out.astype(dtype, copy=False))
    exact = dtypes.is_integer(dtype) or dtype.kind == "b" or (_holds_sizes(dtype) and node.op_type in _EXACT_IN_FLOATS)
    return known(out, dtype) if exact else None


def _holds_sizes(dtype: np.dtype[Any]) -> bool:
    """Whether a float type counts elements without rounding (f32: up to 16 Mi)."""
    return dtype.kind == "f" and dtype.itemsize >= 4


def _result_dtype(node: OnnxNode) -> np.dtype[Any]:
    if node.op_type in ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Not", "And", "Or"):
        return np.dtype(bool)
    if node.op_type == "Cast":
        import onnx_ir as ir

        return dtypes.from_onnx(ir.DataType(node.integer("to")))
    return node[1 if node.op_type == "Where" else 0].dtype


# -- what only needs sizes ---------------------------------------------------------------------------------------------


def _shape(node: OnnxNode) -> Tensor | None:
    dims = node[0].dims
    start, end = node.integer("start", 0), node.integer("end", len(dims))
    return known_sizes(dims[slice(start, end)])


def _size(node: OnnxNode) -> Tensor | None:
    return known(array_of_sizes([d.product(node[0].dims)], ()))


def _constant_of_shape(node: OnnxNode) -> Tensor | None:
    t = node[0]
    if (
        not t.is_constant
        or t.array is None
        or not 0 <= prod(map(int, t.array.reshape(-1))) <= FOLD_LIMIT
        or (t.array < 0).any()
    ):
        return None
    value = np.asarray(fill_value(node))
    return known(np.full(t.array.reshape(-1).tolist(), value, value.dtype)) if dtypes.holds_dtype(value.dtype) else None


def fill_value(node: OnnxNode) -> Any:
    """The scalar that ConstantOfShape repeats."""
    attribute = node.attributes.get("value")
    return np.float32(0) if attribute is None else attribute.as_tensor().numpy().reshape(-1)[0]


_OF_SHAPES: dict[str, Callable[[OnnxNode], Tensor | None]] = {
    "Shape": _shape,
    "Size": _size,
    "ConstantOfShape": _constant_of_shape,
}


# -- arithmetic --------------------------------------------------------------------------------------------------------


def _cast(node: OnnxNode, x: Array) -> Array:
    import onnx_ir as ir

    target = ir.DataType(node.integer("to"))
    if not dtypes.holds(target):
        raise Unfoldable
    dtype = dtypes.from_onnx(target)
    if x.dtype == object and not dtypes.is_integer(dtype) and not _holds_sizes(dtype):
        raise Unfoldable
    return x if x.dtype == object else x.astype(dtype)


def _where(node: OnnxNode, condition: Array, x: Array, y: Array) -> Array:
    del node
    if condition.dtype == object:
        raise Unfoldable
    return (
        np.where(condition, x, y)
        if x.dtype == y.dtype
        else np.where(condition, with_python_numbers(x), with_python_numbers(y))
    )


def _reduced(combine: Callable[[list[Dim]], Dim]) -> Callable[..., Array]:
    """A folder that makes one size of a list of them."""

    def folder(node: OnnxNode, x: Array, axes: Array | None = None) -> Array:
        if x.ndim != 1 or (axes is not None and axes.size and axes.tolist() not in ([0], [-1])):
            raise Unfoldable
        if (axes is None or not axes.size) and not node.has("axes") and node.integer("noop_with_empty_axes", 0):
            return x
        items: list[Dim] = (
            [item if isinstance(item, Expr) else int(item) for item in x.tolist()] if x.dtype.kind in "iuO" else []
        )
        if len(items) != x.size:
            raise Unfoldable
        return array_of_sizes([combine(items)], (1,) if node.integer("keepdims", 1) else ())

    return folder


def _least(items: list[Dim]) -> Dim:
    if not items:
        raise Unfoldable
    return reduce(d.minimum, items)


def _most(items: list[Dim]) -> Dim:
    if not items:
        raise Unfoldable
    return reduce(d.maximum, items)


# -- movement ----------------------------------------------------------------------------------------------------------


def _gather(node: OnnxNode, x: Array, indices: Array) -> Array:
    if indices.dtype == object:
        raise Unfoldable
    return np.take(x, indices.astype(np.int64), axis=node.integer("axis", 0))


def _list(x: Array | None) -> list[int]:
    return [] if x is None else [int(item) for item in x.reshape(-1).tolist()]


def _concat(node: OnnxNode, *parts: Array) -> Array:
    if any(part.dtype == object for part in parts):
        parts = tuple(with_python_numbers(part) for part in parts)
    return np.concatenate(parts, axis=node.integer("axis", 0))


def _axes(node: OnnxNode, axes: Array | None) -> list[int] | None:
    return node.integers("axes") if node.has("axes") else (None if axes is None else _list(axes))


def _unsqueeze(node: OnnxNode, x: Array, axes: Array | None = None) -> Array:
    positions = _axes(node, axes) or []
    return np.expand_dims(x, tuple(positions))


def _squeeze(node: OnnxNode, x: Array, axes: Array | None = None) -> Array:
    positions = _axes(node, axes)
    return np.squeeze(x, axis=None if positions is None else tuple(positions))


def _reshape(node: OnnxNode, x: Array, shape: Array | None = None) -> Array:
    target = node.integers("shape") if shape is None else _list(shape)
    if shape is not None and shape.dtype == object:
        raise Unfoldable
    if not node.integer("allowzero", 0):
        target = [x.shape[axis] if size == 0 else size for axis, size in enumerate(target)]
    return x.reshape(target)


def _range(node: OnnxNode, start: Array, limit: Array, delta: Array) -> Array:
    del node
    if object in (start.dtype, limit.dtype, delta.dtype):
        raise Unfoldable
    first, last, step = (t.reshape(-1)[0].item() for t in (start, limit, delta))
    count = count_of_range(first, last, step)
    if count is None or count > FOLD_LIMIT:
        raise Unfoldable
    return (start.reshape(-1)[0] + np.arange(count) * delta.reshape(-1)[0]).astype(start.dtype)


def _expand(node: OnnxNode, x: Array, shape: Array) -> Array:
    del node
    if shape.dtype == object:
        raise Unfoldable
    target = np.broadcast_shapes(x.shape, tuple(_list(shape)))
    if int(np.prod(target, dtype=np.int64)) > FOLD_LIMIT:
        raise Unfoldable
    return np.broadcast_to(x, target)


def _transpose(node: OnnxNode, x: Array) -> Array:
    return x.transpose(node.integers("perm") if node.has("perm") else None)


def _identity(node: OnnxNode, x: Array) -> Array:
    del node
    return x


_FOLDERS: dict[str, Callable[..., Array]] = {
    "Add": binary(d.add, np.add),
    "Sub": binary(d.sub, np.subtract),
    "Mul": binary(d.mul, np.multiply),
    "Div": divide,
    "Mod": modulo,
    "Min": binary(d.minimum, np.minimum),
    "Max": binary(d.maximum, np.maximum),
    "And": binary(not_of_sizes, np.logical_and),
    "Or": binary(not_of_sizes, np.logical_or),
    "Equal": comparison(equal, np.equal),
    "Less": comparison(less, np.less),
    "LessOrEqual": comparison(less_equal, np.less_equal),
    "Greater": comparison(negated(less_equal), np.greater),
    "GreaterOrEqual": comparison(negated(less), np.greater_equal),
    "Neg": unary(np.negative, lambda x: d.mul(x, -1)),
    "Abs": unary(np.abs),
    "Sqrt": unary(np.sqrt),
    "Reciprocal": unary(np.reciprocal),
    "Floor": unary(np.floor, lambda x: x),
    "Ceil": unary(np.ceil, lambda x: x),
    "Not": unary(np.logical_not),
    "Pow": binary(not_of_sizes, np.power),
    "Cast": _cast,
    "Where": _where,
    "ReduceProd": _reduced(d.product),
    "ReduceSum": _reduced(d.sum_of),
    "ReduceMin": _reduced(_least),
    "ReduceMax": _reduced(_most),
    "Gather": _gather,
    "Concat": _concat,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Reshape": _reshape,
    "Range": _range,
    "Expand": _expand,
    "Transpose": _transpose,
    "Identity": _identity,
}

_EXACT_IN_FLOATS = frozenset(
    "Add Sub Mul Div Neg Min Max Floor Ceil Cast Where Gather Slice Concat Unsqueeze Squeeze Reshape Transpose "
    "Identity".split()
)
"""Operators that give whole numbers for whole numbers, where they are folded at all: sizes that a model counts in
floats stay sizes."""
