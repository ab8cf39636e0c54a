"""materialize-fills: a fill of unknown size or value that is itself a result is computed like any other op.

    %f = linalg.fill ins(%c) outs(tensor.empty(%n))         %g = linalg.generic outs(tensor.empty(%n)) { yield %c }
    return %f                                          =>   return %g

Fills of known size and value become constants; those that an op starts from or reads cost nothing. The result may be seen through reshapes, and go
to a host operator instead of the caller.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp
from xdsl.ir import Operation, SSAValue, Use
from xdsl.passes import ModulePass

from fuseline.ir.build import PARALLEL, Emitter, identity_map, shape_of

_RESHAPES = (tensor.ExpandShapeOp, tensor.CollapseShapeOp, tensor.CastOp)


@dataclass(frozen=True)
class MaterializeFillsPass(ModulePass):
    """Has no options."""

    name = "materialize-fills"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        del ctx
        for function in op.ops:
            if isinstance(function, func.FuncOp) and function.body.blocks:
                for inner in list(function.body.block.ops):
                    if isinstance(inner, linalg.ops.FillOp):
                        _materialize(inner)


def _materialize(fill: linalg.ops.FillOp) -> None:
    value = fill.results[0]
    known = DYNAMIC_INDEX not in shape_of(value) and isinstance(fill.inputs[0].owner, arith.ConstantOp)
    leaving = [use for use in value.uses if _leaves(use)] if not known else []
    if not leaving:
        return
    emit, rank = Emitter.after(fill), len(shape_of(value))
    number = fill.inputs[0]
    filled = emit.generic([], [fill.outputs[0]], [identity_map(rank)], [PARALLEL] * rank, lambda body: [number]).results[0]
    for use in leaving:
        use.operation.operands[use.index] = filled


def _leaves(use: Use) -> bool:
    """Whether the value goes to the caller or a host operator, as it is or under another shape."""
    op: Operation = use.operation
    if isinstance(op, _RESHAPES):
        result: SSAValue = op.results[0]
        return use.index == 0 and any(_leaves(inner) for inner in result.uses)
    return isinstance(op, func.ReturnOp | func.CallOp)


EXPORT = MaterializeFillsPass
