"""Scalars of a function, one at a time: what they are, and what stands for one as a tensor or as a size."""

from __future__ import annotations

import base64

from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from fuseline import executors
from fuseline.analysis.shapes import DIMS_ATTRIBUTE
from fuseline.analysis.structured import Kind, kind
from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import symbol
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_constant
from fuseline.ir.fast.direct import result_of

_SIZE_ARITHMETIC = (
    arith.AddiOp,
    arith.SubiOp,
    arith.MuliOp,
    arith.FloorDivSIOp,
    arith.DivSIOp,
    arith.DivUIOp,
    arith.CeilDivSIOp,
    arith.CeilDivUIOp,
    arith.MaxSIOp,
    arith.MinSIOp,
    arith.MaxUIOp,
    arith.MinUIOp,
    arith.RemSIOp,
    arith.RemUIOp,
    arith.IndexCastOp,
    arith.ConstantOp,
    tensor.DimOp,
)


def is_scalar_op(op: Operation) -> bool:
    """Whether `op` makes scalars and nothing else, and has no effect."""
    return not op.regions and kind(op) is Kind.SCALAR


def is_size_arithmetic(op: Operation) -> bool:
    """Whether what `op` makes is a `Dim` where its operands are."""
    return isinstance(op, _SIZE_ARITHMETIC)


def rank_zero(e: Emitter, value: SSAValue) -> SSAValue:
    """An index value that is a size as a tensor without dimensions."""
    row = e.add(
        tensor.FromElementsOp.create(operands=[value], result_types=[attributes.tensor_type(value.type, (1,))])
    ).results[0]
    return _without_dimensions(e, row)


def constant_scalar(op: arith.ConstantOp) -> SSAValue:
    """A scalar constant as a tensor constant without dimensions."""
    type_ = attributes.tensor_type(op.result.type, ())
    value = op.value.value.data  # pyright: ignore[reportAttributeAccessIssue]
    attribute = DenseIntOrFPElementsAttr.from_list(type_, [value])  # pyright: ignore[reportUnknownArgumentType, reportArgumentType]
    return result_of(Emitter.after(op).add(create_constant(attribute, type_)))


def extracted(op: tensor.ExtractOp) -> SSAValue | None:
    """The element that `op` reads at a constant place, as a tensor without dimensions; None where the place is
    computed."""
    positions = [_number(value) for value in op.indices]
    if not positions:
        return op.tensor
    shape = shape_of(op.tensor)
    if any(
        position is None or position < 0 or 0 <= size <= position
        for position, size in zip(positions, shape, strict=True)
    ):
        return None
    e = Emitter.before(op)
    ones = [1] * len(positions)
    known = [position for position in positions if position is not None]
    cut = tensor.ExtractSliceOp.from_static_parameters(op.tensor, known, ones, ones)
    return _without_dimensions(e, op.tensor if list(shape) == ones else e.add(cut).result)


def _without_dimensions(e: Emitter, value: SSAValue) -> SSAValue:
    """A tensor of one element without its dimensions."""
    type_: TensorType[Attribute] = attributes.tensor_type(element_of(value), ())
    return e.add(
        tensor.CollapseShapeOp.create(
            operands=[value], result_types=[type_], properties={"reassociation": ArrayAttr[Attribute]([])}
        )
    ).results[0]


def _number(value: SSAValue) -> int | None:
    op = value.op if type(value) is OpResult else None
    return op.value.value.data if type(op) is arith.ConstantOp and isinstance(op.value, IntegerAttr) else None


class IndexReads:
    """Makes the host operators of one module that read numbers on which sizes depend."""

    def __init__(self, module: ModuleOp, ctx: CompilerContext) -> None:
        self.module, self.ctx = module, ctx

    def read(self, e: Emitter, scalar: SSAValue) -> SSAValue:
        """The integer tensor without dimensions `scalar` as an index value: a size of a name of its own, at least 0."""
        number = 0
        while f"index{number}" in self.ctx.symbols:
            number += 1
        name = f"index{number}"
        self.ctx.symbols[name] = symbol(name, 0)
        callee = self._declare(f"host.index.{number}", scalar.type)
        call = e.add(func.CallOp(callee, [scalar], [IndexType()]))
        call.attributes[DIMS_ATTRIBUTE] = ArrayAttr([ArrayAttr([StringAttr(name)])])
        return call.results[0]

    def _declare(self, name: str, operand: Attribute) -> str:
        declared = func.FuncOp.external(name, [operand], [IndexType()])
        declared.attributes["fuseline.host_op"] = StringAttr("Index")
        declared.attributes["fuseline.onnx_node"] = StringAttr(base64.b64encode(name.encode()).decode())
        declared.attributes["fuseline.executor"] = StringAttr(executors.INDEX)
        self.module.body.block.add_op(declared)
        return name
