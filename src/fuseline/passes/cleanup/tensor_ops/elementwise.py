"""Scalar arithmetic on whole tensors: `arith.addf %a, %b : tensor<4xf32>`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.ir.build import PARALLEL, Body, Emitter, element_of, shape_of
from fuseline.ir.provenance import replace
from fuseline.ir.tensor_casts import BitcastOp, scalar_op


def is_elementwise(op: Operation) -> bool:
    """Whether `op` is scalar arithmetic between tensors of one shape, scalars among them (the condition of a
    choice)."""
    if (
        not (op.name.startswith(("arith.", "math.")) or isinstance(op, BitcastOp))
        or isinstance(op, arith.ConstantOp)
        or len(op.results) != 1
        or op.regions
    ):
        return False
    return isinstance(op.results[0].type, TensorType)


def expand_elementwise(op: Operation) -> None:
    """Make `op` a structured op whose body is the same arithmetic on elements."""
    emit, operands = Emitter.before(op), list(op.operands)
    rank = len(shape_of(op.results[0]))
    like = next(value for value in operands if isinstance(value.type, TensorType))
    whole, scalar = AffineMap.identity(rank), AffineMap(rank, 0, ())
    maps = [whole if isinstance(value.type, TensorType) else scalar for value in operands]
    output = emit.empty_like(like, element_of(op.results[0]))

    def body(b: Body) -> Sequence[SSAValue]:
        copy = scalar_op(type(op)).create(
            operands=b.args[: len(operands)], result_types=[element_of(op.results[0])], properties=op.properties
        )
        return [b.add(copy).results[0]]

    new = emit.generic(operands, [output], [*maps, whole], [PARALLEL] * rank, body)
    replace(op, [], [new.results[0]])
