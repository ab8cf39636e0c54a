"""Views: ops that name part of a buffer, or all of it under another shape, and move nothing.

Reshapes are views, and so is a slice whose elements lie side by side in memory: one time step of a sequence, some rows
of a matrix. A view costs no dispatch and no copy: whoever reads it reads the buffer from an offset on. So dispatches
that differ in *which* part they read are equal code.
"""

from __future__ import annotations

from itertools import dropwhile

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from fuseline.analysis.moves import RESHAPES, Sizes
from fuseline.analysis.structured import Kind, kind
from fuseline.ir.dim import Dim, add, mul
from fuseline.ir.fast import attributes

_INDEX_ARITHMETIC = frozenset(
    {arith.ConstantOp, arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.MinSIOp, arith.MaxSIOp}
)


def is_view(op: Operation) -> bool:
    """Whether the result is the operand's buffer, or a contiguous part of it that something in the program reads.

    A slice of what is computed that is itself returned is no view: the caller's buffer is its own, and whoever computes
    it writes no more than that. One of an argument of the program is, and copied when all is done. A slice of a
    constant is cut at compile time.
    """
    if type(op) in RESHAPES:  # no class derives from them, and xDSL's classes are slow to ask about derivation
        return True
    if type(op) is not tensor.ExtractSliceOp or not _is_contiguous(op):
        return False
    base = base_of(op.source)
    return not _is_known(base) and (not is_returned(op.result) or is_fed(base))


def base_of(value: SSAValue) -> SSAValue:
    """The value whose buffer `value` lies in, as far as reshapes and contiguous slices go."""
    while isinstance(value, OpResult) and (type(value.op) in RESHAPES or _is_contiguous(value.op)):
        value = value.op.operands[0]
    return value


def view_offset(op: Operation, shapes: Sizes) -> Dim:
    """Where in the operand's buffer the result of a view begins, elements."""
    if not isinstance(op, tensor.ExtractSliceOp):
        return 0
    flat: Dim = 0
    offsets = shapes.mixed(attributes.values(op.static_offsets), op.offsets)
    for offset, size in zip(offsets, shapes.dims(op.source), strict=True):
        flat = add(mul(flat, size), offset)
    return flat


def _is_contiguous(op: Operation) -> bool:
    if type(op) is not tensor.ExtractSliceOp:
        return False
    source, sizes = _shape(op.source), attributes.values(op.static_sizes)
    if len(_shape(op.result)) != len(source) or any(stride != 1 for stride in attributes.values(op.static_strides)):
        return False
    moving = list(dropwhile(lambda pair: pair[0] == 1, zip(sizes, source, strict=True)))
    return all(size == extent != DYNAMIC_INDEX for size, extent in moving[1:]) and all(
        map(is_known_before, op.operands[1:])
    )


def is_known_before(value: SSAValue) -> bool:
    """Whether an offset or size follows from what the program is fed, before anything is computed."""
    op = value.owner
    if not isinstance(op, Operation):
        return is_fed(value)
    if type(op) is tensor.DimOp:
        return is_fed(op.source)
    return type(op) in _INDEX_ARITHMETIC and all(map(is_known_before, op.operands))


def is_fed(value: SSAValue) -> bool:
    """Whether `value` is an argument of the program."""
    if not isinstance(value, BlockArgument):
        return False
    function = value.block.parent_op()
    return isinstance(function, FuncOp) and (
        function.sym_visibility is None or function.sym_visibility.data == "public"
    )


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
