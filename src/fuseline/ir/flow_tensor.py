"""`flow.tensor.*` of IREE: what it does with whole tensors outside of dispatches. A frontend writes each out in ops of
`tensor`."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from xdsl.ir import Attribute, Operation
from xdsl.irdl import irdl_op_definition
from xdsl.utils.exceptions import VerifyException

from fuseline.ir.flow_tensor_base import FlowTensorOp, count, element, rank


class _ConvertOp(FlowTensorOp, ABC):
    ARROW: ClassVar[bool] = True


@irdl_op_definition
class ReshapeOp(_ConvertOp):
    """The same elements in the same order under another shape."""

    name = "flow.tensor.reshape"

    def verify_form(self) -> None:
        """Raises VerifyException for another element type, or another number of elements where both are known."""
        if element(self.values[0].type) != element(self.res[0].type):
            raise VerifyException("source and result have other element types")
        counts = [count(value.type) for value in (self.values[0], self.res[0])]
        if None not in counts and counts[0] != counts[1]:
            raise VerifyException(f"source and result have {counts[0]} and {counts[1]} elements")


@irdl_op_definition
class BitCastOp(_ConvertOp):
    """The same bits under another shape or element type."""

    name = "flow.tensor.bitcast"


@irdl_op_definition
class TensorExtBitCastOp(_ConvertOp):
    """The same bits under another shape or element type."""

    name = "iree_tensor_ext.bitcast"


@irdl_op_definition
class EncodeOp(_ConvertOp):
    """The same elements in another layout."""

    name = "flow.tensor.encode"


@irdl_op_definition
class LoadOp(FlowTensorOp):
    """One element."""

    name = "flow.tensor.load"
    INDEXED: ClassVar[bool] = True

    @classmethod
    def result_type(cls, shaped: Attribute) -> Attribute:
        """The element type: the text has the type of the tensor only."""
        return element(shaped)

    def _result_shape(self) -> Attribute:
        return self.values[0].type


@irdl_op_definition
class StoreOp(FlowTensorOp):
    """The second operand with the first one in a place."""

    name = "flow.tensor.store"
    COUNT: ClassVar[int] = 2
    INDEXED: ClassVar[bool] = True

    @classmethod
    def types_of_operands(cls, source: Attribute, result: Attribute) -> list[Attribute]:
        """The number, then the tensor."""
        return [element(source), source]


@irdl_op_definition
class EmptyOp(FlowTensorOp):
    """A tensor of which nothing is known."""

    name = "flow.tensor.empty"
    COUNT: ClassVar[int] = 0


@irdl_op_definition
class AllocaOp(FlowTensorOp):
    """A tensor of which nothing is known."""

    name = "flow.tensor.alloca"
    COUNT: ClassVar[int] = 0


@irdl_op_definition
class SplatOp(FlowTensorOp):
    """One number everywhere."""

    name = "flow.tensor.splat"

    @classmethod
    def types_of_operands(cls, source: Attribute, result: Attribute) -> list[Attribute]:
        """The number."""
        return [element(source)]


@irdl_op_definition
class CloneOp(FlowTensorOp):
    """The tensor."""

    name = "flow.tensor.clone"


@irdl_op_definition
class TieShapeOp(FlowTensorOp):
    """The tensor."""

    name = "flow.tensor.tie_shape"


@irdl_op_definition
class BarrierOp(FlowTensorOp):
    """The tensor."""

    name = "flow.tensor.barrier"
    WORD: ClassVar[str | None] = "on"


@irdl_op_definition
class TransferOp(FlowTensorOp):
    """The tensor."""

    name = "flow.tensor.transfer"
    WORD: ClassVar[str | None] = "to"


@irdl_op_definition
class SliceOp(_ConvertOp):
    """Neighbouring elements."""

    name = "flow.tensor.slice"
    INDEXED: ClassVar[bool] = True

    def verify_form(self) -> None:
        """Raises VerifyException for a result of another rank, or without a length per index."""
        if rank(self.res[0].type) != rank(self.values[0].type) or len(self.lengths) != len(self.indices):
            raise VerifyException("source and result have as many dimensions as there are lengths")


@irdl_op_definition
class UpdateOp(_ConvertOp):
    """The second operand with neighbouring elements replaced by the first."""

    name = "flow.tensor.update"
    COUNT: ClassVar[int] = 2
    INDEXED: ClassVar[bool] = True

    @classmethod
    def types_of_operands(cls, source: Attribute, result: Attribute) -> list[Attribute]:
        """The update, then the tensor that it goes into."""
        return [source, result]

    def verify_form(self) -> None:
        """Raises VerifyException for an update of another rank than the result."""
        if rank(self.values[0].type) != rank(self.res[0].type):
            raise VerifyException("the update has as many dimensions as what it goes into")


HANDED_ON = (CloneOp, TieShapeOp, BarrierOp, TransferOp)
"""What computes nothing."""

FLOW_TENSOR_OPS: list[type[Operation]] = [
    *(ReshapeOp, BitCastOp, EncodeOp, LoadOp, StoreOp, EmptyOp, AllocaOp, SplatOp, SliceOp, UpdateOp),
    *HANDED_ON,
]
"""Everything here that is called so."""
