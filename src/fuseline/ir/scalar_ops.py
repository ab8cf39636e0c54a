"""Scalar ops of `arith` and `math` that xDSL lacks and MLIR programs contain, and those that divide integers."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloatConstr, IndexType, IntegerType, i1
from xdsl.ir import Dialect, Operation, SSAValue
from xdsl.irdl import IRDLOperation, VarConstraint, base, eq, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure

INTEGER_DIVISIONS = (
    arith.DivSIOp,
    arith.DivUIOp,
    arith.RemSIOp,
    arith.RemUIOp,
    arith.FloorDivSIOp,
    arith.CeilDivSIOp,
    arith.CeilDivUIOp,
)
"""Ops on integers that have no result where the divisor is 0."""

COMMUTATIVE_ON_INTEGERS = frozenset(
    {
        arith.AddiOp,
        arith.MuliOp,
        arith.AndIOp,
        arith.OrIOp,
        arith.XOrIOp,
        arith.MaxSIOp,
        arith.MinSIOp,
        arith.MaxUIOp,
        arith.MinUIOp,
    }
)
COMMUTATIVE = COMMUTATIVE_ON_INTEGERS | {arith.AddfOp, arith.MulfOp, arith.MaximumfOp, arith.MinimumfOp}
"""Ops on two scalars whose result does not depend on the order of these."""


@irdl_op_definition
class RemFOp(IRDLOperation):
    """The floating-point remainder, with the sign of the dividend (C's `fmod`)."""

    name = "arith.remf"
    T: ClassVar = VarConstraint("T", AnyFloatConstr)
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($result)"

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation) -> None:
        super().__init__(operands=[lhs, rhs], result_types=[SSAValue.get(lhs).type])


@irdl_op_definition
class IndexCastUIOp(IRDLOperation):
    """Between `index` and an integer, extended with zeros."""

    name = "arith.index_castui"
    input = operand_def(base(IndexType) | base(IntegerType))
    result = result_def(base(IndexType) | base(IntegerType))
    traits = traits_def(Pure())
    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"


@irdl_op_definition
class ClampFOp(IRDLOperation):
    """`min(max(value, low), high)`; NaN where any operand is."""

    name = "math.clampf"
    T: ClassVar = VarConstraint("T", AnyFloatConstr)
    value = operand_def(T)
    min = operand_def(T)
    max = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$value `to` `[` $min `,` $max `]` attr-dict `:` type($result)"


class _Classification(IRDLOperation, ABC):
    """A float to i1."""

    value = operand_def(AnyFloatConstr)
    result = result_def(eq(i1))
    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($value)"


@irdl_op_definition
class IsNanOp(_Classification):
    """Whether a float is NaN."""

    name = "math.isnan"


@irdl_op_definition
class IsInfOp(_Classification):
    """Whether a float is an infinity."""

    name = "math.isinf"


@irdl_op_definition
class IsFiniteOp(_Classification):
    """Whether a float is neither NaN nor an infinity."""

    name = "math.isfinite"


Arith = Dialect(
    "arith",
    [*arith.Arith.operations, RemFOp, IndexCastUIOp],
    list(arith.Arith.attributes),
    [arith.ArithConstantMaterializationInterface()],
)
"""xDSL's dialect and what it lacks."""

Math = Dialect("math", [*math.Math.operations, ClampFOp, IsNanOp, IsInfOp, IsFiniteOp], list(math.Math.attributes))
"""xDSL's dialect and what it lacks."""
