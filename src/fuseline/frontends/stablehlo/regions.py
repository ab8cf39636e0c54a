"""Regions of scalar ops: what a reduction, a window, a scatter or a sort does with two elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import tensor
from xdsl.ir import Block, SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.dtypes import mlir_element
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.frontends.stablehlo.cell import Cell
from fuseline.frontends.stablehlo.hlo import Hlo, scalar_number
from fuseline.frontends.stablehlo.reading import array_of
from fuseline.frontends.stablehlo.scalars import SCALARS
from fuseline.frontends.stablehlo.types import DType, tensor_type_of
from fuseline.ir.build import Body
from fuseline.ir.hlo.ops import HloOp, HloReturnOp
from fuseline.ir.text import text_location

_RENAMES = ("stablehlo.broadcast_in_dim", "stablehlo.reshape", "stablehlo.optimization_barrier")


@dataclass(frozen=True)
class Region:
    """A region of `hlo` with one block."""

    hlo: Hlo
    block: Block

    @property
    def single(self) -> str | None:
        """The op that the region applies to its two arguments, in either order; None for any other region."""
        ops = [op for op in self.block.ops if not isinstance(op, HloReturnOp)]
        if len(ops) != 1 or len(self.block.args) != 2 or set(ops[0].operands) != set(self.block.args):
            return None
        last = self.block.last_op
        return ops[0].name if last is not None and list(last.operands) == list(ops[0].results) else None

    @property
    def returned(self) -> int | None:
        """The number of the argument that the region returns as it is; None for a region that computes."""
        last = self.block.last_op
        if last is None or len(last.operands) != 1:
            return None
        return next((i for i, argument in enumerate(self.block.args) if argument is last.operands[0]), None)

    def emit(self, b: Body, arguments: Sequence[SSAValue], wide: DType | None = None) -> list[SSAValue]:
        """What the region returns for scalars, computed in the body; in `wide` in place of the arguments' type where it
        is given."""
        values: dict[SSAValue, SSAValue] = dict(zip(self.block.args, arguments, strict=True))
        for op in self.block.ops:
            if isinstance(op, HloReturnOp):
                return [self._value(b, operand, values) for operand in op.operands]
            if not isinstance(op, HloOp) or len(op.results) != 1:
                raise self._refused(op.name, op.location)
            values[op.results[0]] = self._scalar(b, op, values, wide)
        raise FuselineError("E0302", "a region returns nothing", node=self.hlo.location)

    def _scalar(self, b: Body, op: HloOp, values: dict[SSAValue, SSAValue], wide: DType | None) -> SSAValue:
        if op.name == "stablehlo.constant":
            value = op.attribute("value")
            assert value is not None
            array = array_of(value)
            dtype = array.dtype if wide is None else wide
            return b.constant(np.asarray(array).reshape(-1)[0].item(), mlir_element(dtype))
        operands = [self._value(b, operand, values) for operand in op.operands]
        if op.name in _RENAMES:
            return operands[0]
        scalar = SCALARS.get(op.name)
        if scalar is None:
            raise self._refused(op.name, op.location)
        dtypes = [self._dtype(operand, wide) for operand in op.operands]
        return scalar(Cell(b, dtypes, self._dtype(op.results[0], wide), op), *operands)

    def _dtype(self, value: SSAValue, wide: DType | None) -> DType:
        dtype = tensor_type_of(value.type)[0]
        return wide if wide is not None and dtype.kind not in "iub" else dtype

    def _value(self, b: Body, value: SSAValue, values: dict[SSAValue, SSAValue]) -> SSAValue:
        found = values.get(value)
        return (
            found if found is not None else self._outer(b, self.hlo.importer.value(value, self.hlo.scope, self.hlo.op))
        )

    def _outer(self, b: Body, t: Tensor) -> SSAValue:
        """A scalar from outside of the region."""
        number = scalar_number(t)
        if number is not None:
            return b.constant(number, mlir_element(t.dtype))
        value = self.hlo.node.ssa(t)
        return b.op(tensor.ExtractOp, value, [], mlir_element(t.dtype))

    def _refused(self, name: str, location: object) -> FuselineError:
        location = text_location(location) or self.hlo.location  # pyright: ignore[reportArgumentType]
        return FuselineError("E0306", f"{name} in the region of {self.hlo.op.name} is not read", node=location)


def region_of(hlo: Hlo, number: int) -> Region:
    """Region `number`. Raises FuselineError (E0302) for one that is not a single block."""
    if len(hlo.op.regions) <= number or len(hlo.op.regions[number].blocks) != 1:
        raise FuselineError("E0302", f"{hlo.op.name} must have a region of one block", node=hlo.location)
    return Region(hlo, hlo.op.regions[number].block)
