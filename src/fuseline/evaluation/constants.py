"""Constants: scalars, dense tensors and weights."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, DenseResourceAttr, FloatAttr, IntegerAttr, TensorType
from xdsl.ir import Attribute, Operation

from fuseline.evaluation.program import Array, Program, Scope, evaluates, failure, resource_as
from fuseline.ir.element_types import numpy_dtype


@evaluates("arith.constant")
def constant(op: Operation, scope: Scope) -> list[Array]:
    """`arith.constant`: a NumPy scalar or a read-only array."""
    if not isinstance(op, ConstantOp):
        raise failure(op, "unexpected op class")
    return [constant_value(op, op.value, scope.program)]


def constant_value(op: Operation, value: Attribute, program: Program) -> Array:
    """The array of a constant's attribute; splats are views of one element. Raises E0305 for a missing resource."""
    if isinstance(value, IntegerAttr | FloatAttr):
        return scalar(value.value.data, program.dtype(value.type))
    if isinstance(value, DenseIntOrFPElementsAttr):
        return dense_array(value).astype(program.dtype(value.type), copy=False)
    if isinstance(value, DenseResourceAttr):
        return _resource(op, value, program)
    raise failure(op, f"constants of this kind cannot be evaluated: {value.name}")


def integers_of(value: Attribute, resources: Mapping[str, Array]) -> Array | None:
    """The elements of a constant tensor of integers, in any shape; None for anything else, and where there is no such
    resource."""
    array = numbers_of(value, resources)
    return array if array is not None and array.dtype.kind in "iu" else None


def numbers_of(value: Attribute, resources: Mapping[str, Array]) -> Array | None:
    """Like `integers_of`, of integers and floats."""
    if not isinstance(value, DenseIntOrFPElementsAttr | DenseResourceAttr):
        return None
    array = (
        dense_array(value) if isinstance(value, DenseIntOrFPElementsAttr) else resources.get(value.resource_handle.data)
    )
    return array if array is not None and array.dtype.kind in "iuf" else None


def scalar(value: Any, dtype: np.dtype[Any]) -> Any:
    """`value` as a NumPy scalar; integers wrap (MLIR writes -1 and 255 for the same i8, and a product of sizes may
    leave 64 bits)."""
    return np.uint64(value % 2**64).view(np.int64).astype(dtype) if dtype.kind == "i" else dtype.type(value)


def dense_array(value: DenseIntOrFPElementsAttr) -> Array:
    """A dense attribute as an array in its storage dtype, without going through Python numbers."""
    type_: Any = value.type
    shape = tuple(type_.get_shape())
    dtype = numpy_dtype(type_.get_element_type())
    flat = np.frombuffer(value.data.data, dtype=dtype)
    return np.broadcast_to(flat[0], shape) if flat.size == 1 else flat.reshape(shape)


def _resource(op: Operation, value: DenseResourceAttr, program: Program) -> Array:
    name = value.resource_handle.data
    array = program.resources.get(name)
    if array is None:
        raise failure(op, f"no data for dense_resource<{name}>", "pass the compiler's resources along with the IR")
    shape = tuple(value.type.get_shape())
    if array.size != prod(shape):
        raise failure(op, f"dense_resource<{name}> has {array.size} elements, its type {value.type}")
    return resource_as(
        array, value.type.get_element_type() if isinstance(value.type, TensorType) else value.type, program
    ).reshape(shape)
