"""Constants, and what is known of sizes while reading."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars
from fuseline.frontends.onnx.computed_sizes import count_between, is_computed, sizes_of
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, from_onnx, holds, mlir_element
from fuseline.frontends.onnx.emission import broadcast_to, elementwise, mapped
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.range_counts import count_of_range
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known, known_sizes, static_size
from fuseline.ir.build import Body
from fuseline.ir.constant_budget import folded_name
from fuseline.ir.dim import Dim, ceil_div, maximum, product, sub


@onnx_op("Constant")
def constant(node: OnnxNode) -> Tensor:
    """A tensor, or numbers, given as an attribute."""
    if node.has("value"):
        content = node.attributes["value"].as_tensor()
        if not holds(content.dtype):
            raise NoNativeLowering("element-type", f"{content.dtype.name} elements")
        return known(np.asarray(content.numpy()), name=node.label)
    for name, dtype in (
        ("value_float", np.float32),
        ("value_floats", np.float32),
        ("value_int", np.int64),
        ("value_ints", np.int64),
    ):
        if node.has(name):
            return known(np.asarray(node.attributes[name].value, dtype), name=node.label)
    raise NoNativeLowering("unsupported-constant", ", ".join(node.attributes))


@onnx_op("Shape")
def shape(node: OnnxNode) -> Tensor:
    """The sizes of the input, from `start` to `end`."""
    dims = node[0].dims
    return known_sizes(
        dims[slice(node.integer("start", 0), node.integer("end", len(dims)) if node.has("end") else None)]
    )


@onnx_op("Size")
def size(node: OnnxNode) -> Tensor:
    """How many elements the input has."""
    out = known_sizes([product(node[0].dims)])
    assert out.array is not None
    return Tensor(out.dtype, (), array=out.array.reshape(()))


@onnx_op("ConstantOfShape")
def constant_of_shape(node: OnnxNode) -> Tensor:
    """One value everywhere."""
    value = (
        np.asarray(node.attributes["value"].as_tensor().numpy()).reshape(())
        if node.has("value")
        else np.float32(0).reshape(())
    )
    dims = sizes_of(node, node[0])
    if all(isinstance(dim, int) for dim in dims) and static_size(product(dims)) <= 1024:
        return known(np.full([static_size(dim) for dim in dims], value, value.dtype))
    return broadcast_to(known(np.asarray(value)), dims)


@onnx_op("Range")
def range_of(node: OnnxNode) -> Tensor:
    """`start, start + delta, ..` below `limit`; how many must be known from constants and sizes. Raises FuselineError:
    E0107 for a range without an end."""
    start, limit, delta = node[0], node[1], node[2]
    if delta.is_constant and not delta.numbers().any():
        raise FuselineError(
            "E0107", "a range in steps of 0 has no end", node=node.label, hint="steps are positive or negative"
        )
    if all(t.is_constant for t in (start, limit, delta)):
        first, last, step = (t.numbers().reshape(()).item() for t in (start, limit, delta))
        count = count_of_range(first, last, step)
        if count is None:
            raise FuselineError(
                "E0107",
                f"a range from {first} to {last} in steps of {step} has no end",
                node=node.label,
                hint="give finite numbers",
            )
        return _listed(node, count) if node.program.may_make(count, start.dtype) else _counted(node, count)
    if is_computed([start, limit]) and delta.is_constant and start.dtype.kind == "i":
        return _counted(node, _computed_count(node, start, limit, int(delta.numbers().item())))
    first, last, step = (_whole(t) for t in (start, limit, delta))
    if not isinstance(step, int):
        raise NoNativeLowering("runtime-value", "the step is only known when it runs")
    span = sub(last, first)
    return _counted(node, maximum(ceil_div(span, step), 0) if step > 0 else maximum(ceil_div(sub(0, span), -step), 0))


def _listed(node: OnnxNode, count: int) -> Tensor:
    """`count` known numbers."""
    start, delta = (node[position].numbers().reshape(()) for position in (0, 2))
    return known((start + np.arange(count) * delta).astype(start.dtype, copy=False), name=folded_name(node.label))


def _counted(node: OnnxNode, count: Dim) -> Tensor:
    """`count` numbers from the first input on, as far apart as the third says."""
    start, delta = node[0], node[2]
    dtype, index = start.dtype, np.dtype(np.int64)

    def body(b: Body, first: SSAValue, by: SSAValue) -> SSAValue:
        position = b.op(arith.IndexCastOp, scalars.loop_index(b, 0), mlir_element(index))
        return scalars.add(b, dtype, first, scalars.mul(b, dtype, scalars.convert(b, position, index, dtype), by))

    return mapped(node, [(start, [None] * start.rank), (delta, [None] * delta.rank)], [count], dtype, body)


def _computed_count(node: OnnxNode, start: Tensor, limit: Tensor, step: int) -> Dim:
    """How many numbers the range has, computed when it runs."""

    def body(b: Body, first: SSAValue, last: SSAValue) -> SSAValue:
        begin, end = (scalars.convert(b, x, start.dtype, INDEX_DTYPE) for x in (first, last))
        return count_between(b, begin, end, step)

    return sizes_of(node, elementwise(node, [start, limit], INDEX_DTYPE, body))[0]


def _whole(t: Tensor) -> Dim:
    """The one size in `t`."""
    if t.is_constant and (t.numbers() % 1).any():
        raise NoNativeLowering("runtime-value", "the bounds are sizes and fractions")
    return t.sizes()[0]


@onnx_op("EyeLike")
def eye_like(node: OnnxNode) -> Tensor:
    """Ones on a diagonal."""
    import onnx_ir as ir

    dims = node[0].dims
    dtype = from_onnx(ir.DataType(node.integer("dtype"))) if node.has("dtype") else node[0].dtype
    elements = product(dims)
    if isinstance(elements, int) and node.program.may_make(elements, dtype):
        diagonal = np.eye(static_size(dims[0]), static_size(dims[1]), node.integer("k"), dtype=dtype)
        return known(diagonal, name=folded_name(node.label))
    return _diagonal(node, dims, dtype)


def _diagonal(node: OnnxNode, dims: Sequence[Dim], dtype: np.dtype[Any]) -> Tensor:
    """Ones where the column is `k` more than the row."""
    index = np.dtype(np.int64)

    def body(b: Body) -> SSAValue:
        row, column = (b.op(arith.IndexCastOp, scalars.loop_index(b, loop), mlir_element(index)) for loop in (0, 1))
        there = scalars.compare(
            b, index, "eq", scalars.sub(b, index, column, row), b.constant(node.integer("k"), mlir_element(index))
        )
        return scalars.select(b, there, b.constant(1, mlir_element(dtype)), b.constant(0, mlir_element(dtype)))

    return mapped(node, [], dims, dtype, body)


@onnx_op("Dropout", since=1)
def dropout_without_mask(node: OnnxNode) -> list[Tensor]:
    """Before version 12: the input itself. What the mask holds then is left open; it is 0, as onnxruntime has it, of
    the input's type before version 10."""
    return [node[0], broadcast_to(known(np.zeros((), node[0].dtype)), node[0].dims)]


@onnx_op("Dropout", since=10)
def dropout_with_open_mask(node: OnnxNode) -> list[Tensor]:
    """Likewise, of truth values."""
    return [node[0], broadcast_to(known(np.zeros((), bool)), node[0].dims)]


@onnx_op("Dropout", since=12)
def dropout(node: OnnxNode) -> list[Tensor]:
    """Inference: the input itself, and a mask that keeps everything."""
    training = node.get(2)
    if training is not None and bool(training.numbers().any()):
        raise NoNativeLowering("training", "training_mode is set")
    return [node[0], broadcast_to(known(np.ones((), bool)), node[0].dims)]
