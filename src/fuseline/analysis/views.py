"""Views: ops that name part of a buffer, or all of it under another shape, and move nothing.

Reshapes are views, and so is a slice whose elements lie side by side in memory: one time step of a sequence, some rows
of a matrix. A view costs no dispatch and no copy: whoever reads it reads the buffer from an offset on. So dispatches
that differ in *which* part they read are equal code.
"""

from __future__ import annotations

from itertools import dropwhile

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.moves import RESHAPES
from fuseline.analysis.structured import Kind, kind
from fuseline.ir.fast import attributes


def is_view(op: Operation) -> bool:
    """Whether the result is the operand's buffer, or a contiguous part of it that something in the program reads.

    A slice that is itself returned is no view: the caller's buffer is its own. Nor is a slice of a constant, which is
    cut at compile time.
    """
    if type(op) in RESHAPES:  # no class derives from them, and xDSL's classes are slow to ask about derivation
        return True
    return (
        type(op) is tensor.ExtractSliceOp
        and _is_contiguous(op)
        and not _is_known(base_of(op.source))
        and not is_returned(op.result)
    )


def base_of(value: SSAValue) -> SSAValue:
    """The value whose buffer `value` lies in, as far as reshapes and contiguous slices go."""
    while isinstance(value, OpResult) and (type(value.op) in RESHAPES or _is_contiguous(value.op)):
        value = value.op.operands[0]
    return value


def view_offset(op: Operation) -> int:
    """Where in the operand's buffer the result of a view begins, elements."""
    if not isinstance(op, tensor.ExtractSliceOp):
        return 0
    flat = 0
    for offset, size in zip(attributes.values(op.static_offsets), _shape(op.source), strict=True):
        flat = flat * size + offset
    return flat


def _is_contiguous(op: Operation) -> bool:
    if type(op) is not tensor.ExtractSliceOp or len(op.operands) > 1:
        return False
    source, sizes = _shape(op.source), attributes.values(op.static_sizes)
    if (
        DYNAMIC_INDEX in source
        or len(_shape(op.result)) != len(source)
        or any(stride != 1 for stride in attributes.values(op.static_strides))
    ):
        return False
    moving = list(dropwhile(lambda pair: pair[0] == 1, zip(sizes, source, strict=True)))
    return all(size == extent for size, extent in moving[1:])


def _is_known(value: SSAValue) -> bool:
    return isinstance(value, OpResult) and kind(value.op) in (Kind.CONSTANT, Kind.FILL, Kind.EMPTY)


def is_returned(value: SSAValue) -> bool:
    """Whether the caller gets a value, as it is or in another shape."""
    for use in value.uses:
        user = use.operation
        if not user.results or (type(user) in RESHAPES and is_returned(user.results[0])):
            return True
    return False


def _shape(value: SSAValue) -> tuple[int, ...]:
    assert isinstance(value.type, TensorType)
    return tuple(value.type.get_shape())
