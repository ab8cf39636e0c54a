"""Integers of 2 to 7 bits as bytes, of which their low bits count: the high ones are whatever they are.

    %w : tensor<64xi4>                  %w : tensor<64xi8>               a feed: one number per byte, -8..7 or 0..15
    extui %x : i4 to i32       =>       extui (andi %x, 15) : i8 to i32
    extsi %x : i4 to i32                extsi (shrsi (shli %x, 4), 4) : i8 to i32
    addi %x, %y : i4                    addi %x, %y : i8

What moves such numbers moves bytes. Sums and products have the low bits of their operands' low bits; what depends on
the others (quotients, comparisons, a result of the program) is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import arith, func, linalg, tensor
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    IntegerAttr,
    IntegerType,
    ShapedType,
    Signedness,
    TensorType,
    i8,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from fuseline.frontends.mlir.wrappers import unsupported
from fuseline.ir.build import Emitter
from fuseline.ir.fast.direct import set_operand, set_type
from fuseline.ir.flow import DispatchRegionOp
from fuseline.ir.flow import ReturnOp as FlowReturnOp
from fuseline.ir.tensor_ops import GenerateOp

_BYTE = 8

_WIDENING = (arith.ExtUIOp, arith.ExtSIOp, arith.UIToFPOp, arith.SIToFPOp)
_SIGNED = (arith.ExtSIOp, arith.SIToFPOp)

_LOW_BITS = (
    arith.ConstantOp,
    arith.TruncIOp,
    arith.SelectOp,
    arith.AddiOp,
    arith.SubiOp,
    arith.MuliOp,
    arith.AndIOp,
    arith.OrIOp,
    arith.XOrIOp,
    arith.ShLIOp,
)
"""Whose low bits follow from the low bits of operands."""

_MOVES = (
    linalg.ops.GenericOp,
    linalg.ops.YieldOp,
    linalg.ops.FillOp,
    linalg.ops.TransposeOp,
    linalg.ops.BroadcastOp,
    tensor.YieldOp,
    tensor.EmptyOp,
    tensor.CastOp,
    tensor.DimOp,
    tensor.ExpandShapeOp,
    tensor.CollapseShapeOp,
    tensor.ExtractSliceOp,
    tensor.InsertSliceOp,
    tensor.ConcatOp,
    tensor.PadOp,
    tensor.ExtractOp,
    tensor.InsertOp,
    tensor.FromElementsOp,
    tensor.SplatOp,
    GenerateOp,
    DispatchRegionOp,
    FlowReturnOp,
)


def widen_narrow_integers(main: func.FuncOp) -> None:
    """Have no type of 2 to 7 bits in `main`. Raises FuselineError (E0306) for what depends on more than low bits."""
    if not any(_is_narrow(value.type) for op in main.walk() for value in _values(op)):
        return
    for op in list(main.walk()):
        narrow = [operand for operand in op.operands if _is_narrow(operand.type)]
        if isinstance(op, _WIDENING) and narrow and not isinstance(op.operands[0].type, TensorType):
            set_operand(op, 0, _number(op, narrow[0]))
        elif (narrow or any(_is_narrow(value.type) for value in op.results)) and not isinstance(
            op, (*_LOW_BITS, *_MOVES)
        ):
            raise unsupported(op, "of integers of 2 to 7 bits", "widen them first: arith.extsi or arith.extui")
    for op in main.walk():
        _store_bytes(op)


def _values(op: Operation) -> Iterator[SSAValue]:
    """What an op makes, and has as arguments of its blocks."""
    yield from op.results
    for block in _blocks(op):
        yield from block.args


def _blocks(op: Operation) -> Iterator[Block]:
    return (block for region in op.regions for block in region.blocks)


def _element(type_: Attribute) -> Attribute:
    return type_.element_type if isinstance(type_, TensorType) else type_


def _is_narrow(type_: Attribute) -> bool:
    element = _element(type_)
    if not isinstance(element, IntegerType) or element.signedness.data is not Signedness.SIGNLESS:
        return False
    return 1 < element.width.data < _BYTE


def _number(op: Operation, value: SSAValue) -> SSAValue:
    """As a byte, the number that the low bits of `value` are for `op`, which widens it."""
    element, emit = _element(value.type), Emitter.before(op)
    assert isinstance(element, IntegerType)
    bits = element.width.data
    if not isinstance(op, _SIGNED):
        mask = emit.add(arith.ConstantOp(IntegerAttr((1 << bits) - 1, i8))).result
        return emit.add(arith.AndIOp.create(operands=[value, mask], result_types=[i8])).results[0]
    spare = emit.add(arith.ConstantOp(IntegerAttr(_BYTE - bits, i8))).result
    high = emit.add(arith.ShLIOp.create(operands=[value, spare], result_types=[i8])).results[0]
    return emit.add(arith.ShRSIOp.create(operands=[high, spare], result_types=[i8])).results[0]


def _store_bytes(op: Operation) -> None:
    """The types of an op, with bytes."""
    for value in list(_values(op)):
        if _is_narrow(value.type):
            set_type(value, _with_bytes(value.type))
    if isinstance(op, arith.ConstantOp):
        op.properties["value"] = _constant(op.value)


def _with_bytes(type_: Attribute) -> Attribute:
    return TensorType(i8, type_.get_shape(), type_.encoding) if isinstance(type_, TensorType) else i8


def _bytes(type_: ShapedType) -> TensorType[IntegerType]:
    return TensorType(i8, type_.get_shape())


def _constant(value: Attribute) -> Attribute:
    if isinstance(value, IntegerAttr) and _is_narrow(value.type):
        return IntegerAttr(value.value.data, i8)
    if isinstance(value, DenseIntOrFPElementsAttr) and _is_narrow(value.type):
        return DenseIntOrFPElementsAttr.from_list(_bytes(value.type), [int(number) for number in value.get_values()])
    if isinstance(value, DenseResourceAttr) and _is_narrow(value.type):  # a byte per number, as in the text
        return DenseResourceAttr(value.resource_handle, _bytes(value.type))
    return value
