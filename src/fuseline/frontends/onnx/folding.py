"""Arithmetic on sizes, done while reading: what `Shape` and the integer operators after it compute becomes numbers or
symbolic sizes.

Content is a NumPy array; where it depends on symbols, an object array of `Dim`s. Only small tensors are folded; the
rest is left to the IR. Operators that sizes seldom meet are lowered like any other; `constant_nodes` evaluates what
they emit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fuseline.frontends.onnx import dtypes
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.range_counts import count_of_range
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known, known_sizes
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim, Expr

Array: TypeAlias = NDArray[Any]
FOLD_LIMIT = 4096
"""Elements; larger content is data, not arithmetic on sizes."""


class _Unfoldable(Exception):
    """Raised by a folder that cannot tell the content."""


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
    except (_Unfoldable, NoNativeLowering, ValueError, TypeError, IndexError, ZeroDivisionError):
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
    return known(_objects([d.product(node[0].dims)], ()))


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


def _objects(items: Sequence[Dim], shape: Sequence[int]) -> Array:
    out = np.empty(len(items), dtype=object)
    out[:] = list(items)
    return out.reshape(list(shape))


def _binary(symbolic: Callable[[Any, Any], Any], numeric: Callable[[Any, Any], Any]) -> Callable[..., Array]:
    lifted = np.frompyfunc(symbolic, 2, 1)

    def folder(node: OnnxNode, x: Array, y: Array) -> Array:
        del node
        if object not in (x.dtype, y.dtype):
            return np.asarray(numeric(x, y))
        return np.asarray(lifted(_pythonic(x), _pythonic(y)), dtype=object)

    return folder


def _pythonic(x: Array) -> Array:
    if x.dtype == object:
        return x
    if x.dtype.kind == "f" and (x == np.rint(x)).all():
        x = x.astype(np.int64)
    if x.dtype.kind not in "iub":
        raise _Unfoldable
    return _objects(x.reshape(-1).tolist(), x.shape)


def _truncated_div(x: Array, y: Array) -> Array:
    if x.dtype.kind not in "iuO":  # bfloat16 is of no kind that NumPy knows
        return np.true_divide(x, y)
    if np.any(y == 0):
        raise _Unfoldable
    down = x // y  # rounded down; towards 0 is one more where there is a rest and the signs differ
    return down + ((down * y != x) & ((x < 0) ^ (y < 0)))


def _symbolic_div(x: Dim, y: Dim) -> Dim:
    """Rounded towards 0, by a size (by one that turns out to be 0: 0)."""
    low, least = d.lower_bound(x), d.lower_bound(y)
    if low is None or least is None or least < 0:
        raise _Unfoldable
    return (
        d.floor_div(x, y)
        if low >= 0
        else d.add(d.maximum(d.floor_div(x, y), 0), d.minimum(d.floor_div(d.add(x, d.sub(y, 1)), y), 0))
    )


def _div(node: OnnxNode, x: Array, y: Array) -> Array:
    """Of sizes in floats only what leaves no rest."""
    symbolic = _symbolic_div if dtypes.is_integer(node[0].dtype) else _exact_div
    return _binary(symbolic, _truncated_div)(node, x, y)


def _exact_div(x: Dim, y: Dim) -> Dim:
    if y == 0 or d.mul(quotient := d.floor_div(x, y), y) != x:
        raise _Unfoldable
    return quotient


def _not_of_sizes(x: Dim, y: Dim) -> Dim:
    raise _Unfoldable


def _symbolic_mod(x: Dim, y: Dim) -> Dim:
    if (d.lower_bound(x) or 0) < 0 or d.lower_bound(x) is None:
        raise _Unfoldable
    return d.sub(x, d.mul(_symbolic_div(x, y), y))


def _ordered(holds: Callable[[int | None, int | None], bool | None]) -> Callable[[Any, Any], bool]:
    def compare(x: Any, y: Any) -> bool:
        difference = d.sub(x, y)
        answer = holds(d.lower_bound(difference), d.upper_bound(difference))
        if answer is None:
            raise _Unfoldable
        return answer

    return compare


def _less(low: int | None, high: int | None) -> bool | None:
    if high is not None and high < 0:
        return True
    return False if low is not None and low >= 0 else None


def _less_equal(low: int | None, high: int | None) -> bool | None:
    if high is not None and high <= 0:
        return True
    return False if low is not None and low > 0 else None


def _equal(low: int | None, high: int | None) -> bool | None:
    if low == 0 and high == 0:
        return True
    return False if (low is not None and low > 0) or (high is not None and high < 0) else None


def _negated(holds: Callable[[int | None, int | None], bool | None]) -> Callable[[int | None, int | None], bool | None]:
    def other(low: int | None, high: int | None) -> bool | None:
        answer = holds(low, high)
        return None if answer is None else not answer

    return other


def _unary(numeric: Callable[[Any], Any], symbolic: Callable[[Any], Any] | None = None) -> Callable[..., Array]:
    def folder(node: OnnxNode, x: Array) -> Array:
        del node
        if x.dtype != object:
            return np.asarray(numeric(x))
        if symbolic is None:
            raise _Unfoldable
        return np.asarray(np.frompyfunc(symbolic, 1, 1)(x), dtype=object)

    return folder


def _cast(node: OnnxNode, x: Array) -> Array:
    import onnx_ir as ir

    target = ir.DataType(node.integer("to"))
    if not dtypes.holds(target):
        raise _Unfoldable
    dtype = dtypes.from_onnx(target)
    if x.dtype == object and not dtypes.is_integer(dtype) and not _holds_sizes(dtype):
        raise _Unfoldable
    return x if x.dtype == object else x.astype(dtype)


def _where(node: OnnxNode, condition: Array, x: Array, y: Array) -> Array:
    del node
    if condition.dtype == object:
        raise _Unfoldable
    return np.where(condition, x, y) if x.dtype == y.dtype else np.where(condition, _pythonic(x), _pythonic(y))


def _reduce_product(node: OnnxNode, x: Array, axes: Array | None = None) -> Array:
    if x.ndim != 1 or (axes is not None and axes.size and axes.tolist() not in ([0], [-1])):
        raise _Unfoldable
    if (axes is None or not axes.size) and not node.has("axes") and node.integer("noop_with_empty_axes", 0):
        return x
    items: list[Dim] = (
        [item if isinstance(item, Expr) else int(item) for item in x.tolist()] if x.dtype.kind in "iuO" else []
    )
    if len(items) != x.size:
        raise _Unfoldable
    return _objects([d.product(items)], (1,) if node.integer("keepdims", 1) else ())


# -- movement ----------------------------------------------------------------------------------------------------------


def _gather(node: OnnxNode, x: Array, indices: Array) -> Array:
    if indices.dtype == object:
        raise _Unfoldable
    return np.take(x, indices.astype(np.int64), axis=node.integer("axis", 0))


def _list(x: Array | None) -> list[int]:
    return [] if x is None else [int(item) for item in x.reshape(-1).tolist()]


def _concat(node: OnnxNode, *parts: Array) -> Array:
    if any(part.dtype == object for part in parts):
        parts = tuple(_pythonic(part) for part in parts)
    return np.concatenate(parts, axis=node.integer("axis", 0))


def _axes(node: OnnxNode, axes: Array | None) -> list[int] | None:
    return node.integers("axes") if node.has("axes") else (None if axes is None else _list(axes))


def _unsqueeze(node: OnnxNode, x: Array, axes: Array | None = None) -> Array:
    places = _axes(node, axes) or []
    return np.expand_dims(x, tuple(places))


def _squeeze(node: OnnxNode, x: Array, axes: Array | None = None) -> Array:
    places = _axes(node, axes)
    return np.squeeze(x, axis=None if places is None else tuple(places))


def _reshape(node: OnnxNode, x: Array, shape: Array | None = None) -> Array:
    target = node.integers("shape") if shape is None else _list(shape)
    if shape is not None and shape.dtype == object:
        raise _Unfoldable
    if not node.integer("allowzero", 0):
        target = [x.shape[axis] if size == 0 else size for axis, size in enumerate(target)]
    return x.reshape(target)


def _range(node: OnnxNode, start: Array, limit: Array, delta: Array) -> Array:
    del node
    if object in (start.dtype, limit.dtype, delta.dtype):
        raise _Unfoldable
    first, last, step = (t.reshape(-1)[0].item() for t in (start, limit, delta))
    count = count_of_range(first, last, step)
    if count is None or count > FOLD_LIMIT:
        raise _Unfoldable
    return (start.reshape(-1)[0] + np.arange(count) * delta.reshape(-1)[0]).astype(start.dtype)


def _expand(node: OnnxNode, x: Array, shape: Array) -> Array:
    del node
    if shape.dtype == object:
        raise _Unfoldable
    target = np.broadcast_shapes(x.shape, tuple(_list(shape)))
    if int(np.prod(target, dtype=np.int64)) > FOLD_LIMIT:
        raise _Unfoldable
    return np.broadcast_to(x, target)


def _transpose(node: OnnxNode, x: Array) -> Array:
    return x.transpose(node.integers("perm") if node.has("perm") else None)


def _identity(node: OnnxNode, x: Array) -> Array:
    del node
    return x


def _mod(node: OnnxNode, x: Array, y: Array) -> Array:
    """With the sign of the divisor; with `fmod` that of the dividend. Symbolic sizes are not negative: there both
    agree."""
    return _binary(_symbolic_mod, np.fmod if node.integer("fmod", 0) else np.mod)(node, x, y)


def _comparison(
    holds: Callable[[int | None, int | None], bool | None], numeric: Callable[[Any, Any], Any]
) -> Callable[..., Array]:
    folder = _binary(_ordered(holds), numeric)

    def compared(node: OnnxNode, x: Array, y: Array) -> Array:
        return folder(node, x, y).astype(bool)

    return compared


_FOLDERS: dict[str, Callable[..., Array]] = {
    "Add": _binary(d.add, np.add),
    "Sub": _binary(d.sub, np.subtract),
    "Mul": _binary(d.mul, np.multiply),
    "Div": _div,
    "Mod": _mod,
    "Min": _binary(d.minimum, np.minimum),
    "Max": _binary(d.maximum, np.maximum),
    "And": _binary(_not_of_sizes, np.logical_and),
    "Or": _binary(_not_of_sizes, np.logical_or),
    "Equal": _comparison(_equal, np.equal),
    "Less": _comparison(_less, np.less),
    "LessOrEqual": _comparison(_less_equal, np.less_equal),
    "Greater": _comparison(_negated(_less_equal), np.greater),
    "GreaterOrEqual": _comparison(_negated(_less), np.greater_equal),
    "Neg": _unary(np.negative, lambda x: d.mul(x, -1)),
    "Abs": _unary(np.abs),
    "Sqrt": _unary(np.sqrt),
    "Reciprocal": _unary(np.reciprocal),
    "Floor": _unary(np.floor, lambda x: x),
    "Ceil": _unary(np.ceil, lambda x: x),
    "Not": _unary(np.logical_not),
    "Pow": _binary(_not_of_sizes, np.power),
    "Cast": _cast,
    "Where": _where,
    "ReduceProd": _reduce_product,
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
