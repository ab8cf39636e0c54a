"""widen-factors: products whose bodies widen what they multiply read it widened.

    %s = %acc + extf(%a) * extf(%b) : f64      =>      %wa = extf %a : tensor<..f64>      %wb = ...
                                                       %s = %acc + %wa * %wb : f64

Register tiles load elements of the type of the sums, so an element is widened once where it is packed (`read-in-place`)
or stored, not for each product that it is in: that takes .81 to .14 of the time from three rows on, and 1.4 to 1.9 of
it for one, which loads each element of the other factor once. Windows over channels widen what they load
(`read-halves-in-windows`).
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from fuseline.analysis.indexing_maps import used_dims
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import DENSE, StructuredOp, is_generic, kind, multiply_add_operands, producer_of
from fuseline.ir.build import Emitter, element_of
from fuseline.ir.context import CompilerContext
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import product
from fuseline.ir.fast.direct import (
    body_of,
    erase,
    is_unused,
    operand_of,
    ops_of,
    replace_uses,
    result_of,
    set_operand,
    set_type,
)
from fuseline.ir.functions import functions
from fuseline.passes.cleanup.halves_in_place import only_converts

LEAST_USES = 3
"""Products that an element is in, from which on it is widened before."""


@dataclass(frozen=True)
class WidenFactorsPass(ModulePass):
    """Has no options."""

    name = "widen-factors"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the products of every function whose bodies widen floats."""
        shapes = ShapeAnalysis(ctx.symbols if isinstance(ctx, CompilerContext) else None)
        for function in functions(op):
            for inner in ops_of(function.body.block):
                if is_generic(inner) and kind(inner) in DENSE and _is_used_again(StructuredOp(inner), shapes):
                    _widen(inner)


def _is_used_again(root: StructuredOp, shapes: ShapeAnalysis) -> bool:
    """Whether each element of either factor is in several products, at the sizes that are assumed."""
    written, extents = used_dims(root.output_maps[0]), root.loops(shapes)
    others = [written - used_dims(map_) for map_ in root.input_maps]
    return all(assumed_size(product(extents[loop] for loop in mine)) >= LEAST_USES for mine in others)


def _widen(root: linalg.ops.GenericOp) -> None:
    for position in multiply_add_operands(root) or ():
        widening = _widening(root, position)
        if widening is None:
            continue
        argument, made = body_of(root).args[position], producer_of(operand_of(root, position))
        wide = _widened(operand_of(root, position), root)
        set_operand(root, position, wide)
        replace_uses(result_of(widening), argument)
        erase(widening)
        set_type(argument, element_of(wide))
        if made is not None and is_unused(made):
            erase(made)


def _widening(root: linalg.ops.GenericOp, position: int) -> Operation | None:
    """What widens an input in the body, to the type of the sums; None where nothing does."""
    users = [use.operation for use in body_of(root).args[position].uses]
    if len(users) != 1 or not isinstance(users[0], arith.ExtFOp):
        return None
    return users[0] if result_of(users[0]).type == element_of(result_of(root)) else None


def _widened(value: SSAValue, root: linalg.ops.GenericOp) -> SSAValue:
    """`value` in the type of the sums of `root`, converted from what it was widened from."""
    made, element, emit = producer_of(value), element_of(result_of(root)), Emitter.before(root)
    if made is not None and is_generic(made) and only_converts(made, arith.ExtFOp) and _is_in_place(made):
        value = made.inputs[0]
    return emit.elementwise([value], emit.empty_like(value, element), lambda b: b.op(arith.ExtFOp, b.args[0], element))


def _is_in_place(made: linalg.ops.GenericOp) -> bool:
    return len(set(made.indexing_maps.data)) == 1


EXPORT = WidenFactorsPass
