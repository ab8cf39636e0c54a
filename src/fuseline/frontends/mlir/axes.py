"""What ops say of dimensions fits the ranks of their tensors, which the verifiers of these ops do not ask."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.errors import FuselineError
from fuseline.frontends.mlir.wrappers import unsupported
from fuseline.ir.dim import Dim
from fuseline.ir.fast import attributes
from fuseline.ir.text import text_location

_SLICES = (tensor.ExtractSliceOp, tensor.InsertSliceOp)


def check_axes(main: FuncOp) -> None:
    """Raises FuselineError: E0302 for a slice with more or fewer offsets, sizes or strides than dimensions, an element
    named by more or fewer indices, and the size of a dimension that a tensor does not have; E0306 for the size of a
    dimension that only the run knows."""
    shapes = ShapeAnalysis({})
    for op in main.walk():
        if isinstance(op, _SLICES):
            _check_slice(op)
        elif isinstance(op, tensor.ExtractOp | tensor.InsertOp):
            _check_indices(op)
        elif isinstance(op, tensor.DimOp):
            _check_dimension(op, shapes.index(op.index))


def _check_slice(op: tensor.ExtractSliceOp | tensor.InsertSliceOp) -> None:
    whole = op.source if isinstance(op, tensor.ExtractSliceOp) else op.dest
    rank = _rank(whole.type)
    for what, numbers in (("offsets", op.static_offsets), ("sizes", op.static_sizes), ("strides", op.static_strides)):
        count = len(attributes.values(numbers))
        if count != rank:
            raise _wrong(op, f"{count} {what} for {rank} dimensions")


def _check_indices(op: tensor.ExtractOp | tensor.InsertOp) -> None:
    whole = op.tensor if isinstance(op, tensor.ExtractOp) else op.dest
    if len(op.indices) != _rank(whole.type):
        raise _wrong(op, f"{len(op.indices)} indices for {whole.type}")


def _check_dimension(op: tensor.DimOp, axis: Dim) -> None:
    if not isinstance(axis, int):
        raise unsupported(op, "which dimension it asks for is computed", "write the number as a constant")
    rank = _rank(op.source.type)
    if not 0 <= axis < rank:
        raise _wrong(op, f"dimension {axis} of {rank}")


def _rank(type_: Any) -> int:
    return len(type_.get_shape()) if isinstance(type_, TensorType) else 0


def _wrong(op: Operation, message: str) -> FuselineError:
    return FuselineError("E0302", f"{op.name}: {message}", node=text_location(op.location))
