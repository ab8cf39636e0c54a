"""One element of an elementwise StableHLO op while its body is written: operands, types, the ops that are emitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import Operation, SSAValue

from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import mlir_element
from fuseline.frontends.stablehlo.types import DType
from fuseline.ir.build import Body
from fuseline.ir.hlo.ops import HloOp


@dataclass(frozen=True)
class Cell:
    """Where one element is computed: the body, the dtypes of the operands and of the result, and the op."""

    b: Body
    dtypes: Sequence[DType]
    out: DType
    op: HloOp

    @property
    def dtype(self) -> DType:
        """That of the first operand."""
        return self.dtypes[0]

    def constant(self, value: Any, dtype: DType | None = None) -> SSAValue:
        """A number of the first operand's dtype, or of another."""
        return self.b.constant(value, mlir_element(self.dtype if dtype is None else dtype))

    def operation(self, kind: Callable[..., Any], *operands: Any) -> SSAValue:
        """The result of a scalar op."""
        return self.b.op(kind, *operands)

    def classified(self, kind: type[Operation], x: SSAValue) -> SSAValue:
        """The truth value of an op on a float."""
        return self.b.add(kind.create(operands=[x], result_types=[mlir_element(np.dtype(bool))])).results[0]

    def compare(self, predicate: str, x: SSAValue, y: SSAValue) -> SSAValue:
        """`x <predicate> y` in the first operand's dtype."""
        return s.compare(self.b, self.dtype, predicate, x, y)


Scalar: TypeAlias = "Callable[..., SSAValue]"
