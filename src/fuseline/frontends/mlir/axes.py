"""What ops say of dimensions fits the ranks of their tensors, which the verifiers of these ops do not ask."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.errors import FuselineError
from fuseline.ir.fast import attributes
from fuseline.ir.text import place_of

_SLICES = (tensor.ExtractSliceOp, tensor.InsertSliceOp)


def check_axes(main: FuncOp) -> None:
    """Raises FuselineError (E0302) for a slice with more or fewer offsets, sizes or strides than dimensions, and for the size of a dimension that a
    tensor does not have."""
    shapes = ShapeAnalysis({})
    for op in main.walk():
        if isinstance(op, _SLICES):
            _check_slice(op)
        elif isinstance(op, tensor.DimOp):
            axis, rank = shapes.index(op.index), _rank(op.source.type)
            if isinstance(axis, int) and not 0 <= axis < rank:
                raise _wrong(op, f"dimension {axis} of {rank}")


def _check_slice(op: tensor.ExtractSliceOp | tensor.InsertSliceOp) -> None:
    whole = op.source if isinstance(op, tensor.ExtractSliceOp) else op.dest
    rank = _rank(whole.type)
    for what, numbers in (("offsets", op.static_offsets), ("sizes", op.static_sizes), ("strides", op.static_strides)):
        count = len(attributes.values(numbers))
        if count != rank:
            raise _wrong(op, f"{count} {what} for {rank} dimensions")


def _rank(type_: Any) -> int:
    return len(type_.get_shape()) if isinstance(type_, TensorType) else 0


def _wrong(op: Operation, message: str) -> FuselineError:
    return FuselineError("E0302", f"{op.name}: {message}", node=place_of(op.location))
