"""What the ways to pull a value ask of the body emitter that runs them (`body_emitter.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.dispatch.view import DispatchView
from fuseline.targets.cpu.emit.coordinates import AnyIndex
from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand, Value


class Puller(Protocol):
    """Gives the elements of any value of the dispatch `view`, in code of `kernel`; its buffers are those of
    `buffers`."""

    kernel: KernelBuilder
    view: DispatchView
    buffers: DispatchBuffers

    def value_at(
        self, value: SSAValue, index: Sequence[AnyIndex | Operand], lanes: int = 1, active: Operand | None = None
    ) -> Value:
        """The elements of `value` at `index`, `lanes` wide."""
        ...

    def pull(self, value: SSAValue, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
        """`value_at`, but a scalar where all lanes are known to agree."""
        ...

    def scalar(self, value: SSAValue) -> Value:
        """A scalar computed outside every body."""
        ...

    def scalar_op(self, op: Operation, operands: Sequence[Value]) -> Value:
        """The result of one op of a body."""
        ...

    def through(self, map_: AffineMap, loops: Sequence[AnyIndex], lanes: int) -> list[AnyIndex]:
        """The coordinates that `map_` gives at the point `loops`."""
        ...


def point_key(value: SSAValue, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Any:
    """Equal for the same elements of the same value."""
    return (value, tuple(i.key for i in index), lanes, active)
