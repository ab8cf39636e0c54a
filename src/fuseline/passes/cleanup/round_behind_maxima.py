"""round-behind-maxima: a maximum over windows of what is rounded is rounded behind the maximum, where an argument is.

    max_pool(dequantized(quantized(x)))         =>         dequantized(quantized(max_pool(x)))

Both rise with `x`, so that the largest is the same one (`analysis/rising_bodies.py`). An argument is stored in any
case: it is read in f32, nothing that is rounded has to be stored for the window, and fewer elements are rounded. What
else reads the rounded argument rounds for itself. Maxima pass over NaN then, as rounding does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import f32
from xdsl.ir import BlockArgument, SSAValue

from fuseline.analysis.quantized_arguments import LONGEST, quantizes_argument
from fuseline.analysis.rising_bodies import rises
from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind, producer_of
from fuseline.analysis.views import base_of
from fuseline.ir.build import Body, Emitter, element_of
from fuseline.ir.fast.direct import ops_of, replace_uses, result_of
from fuseline.ir.provenance import carry
from fuseline.passes.cleanup.narrow_images import image_and_border, is_maximum
from fuseline.passes.cleanup.quantized_operands import moved_again
from fuseline.passes.layout.rewriting.repeated_parts import Chain, applied, is_point_by_point
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass


@dataclass(frozen=True)
class RoundBehindMaximaPass(ScopedPass):
    """Has no options."""

    name = "round-behind-maxima"

    def rewrite(self, scope: Scope) -> None:
        """Each maximum over windows of a rounded argument."""
        found = False
        for op in ops_of(scope.block):
            if is_generic(op) and kind(op) is Kind.POOLING and is_maximum(op) and element_of(result_of(op)) == f32:
                found |= _rounded_behind(op, scope)
        if found:
            scope.sweep()


def _rounded_behind(root: linalg.ops.GenericOp, scope: Scope) -> bool:
    found = image_and_border(scope.shapes, StructuredOp(root))
    if found is None:
        return False
    image, border = found
    source, chain = _rounding(image)
    if not chain or not rises(chain):
        return False
    if border is not None:
        source = moved_again(Emitter.before(root), border, source, float("-inf"))
    value: SSAValue = _largest(root, source)
    for op in chain:
        value = applied(op, value, root)
    replace_uses(result_of(root), value)
    return True


def _rounding(value: SSAValue) -> tuple[SSAValue, Chain]:
    """An argument and the ops that round what it holds until `value`; none where they do anything else."""
    chain, last = Chain(), producer_of(value)
    if last is None or not quantizes_argument(last):
        return value, []
    while len(chain) < LONGEST and (op := producer_of(value)) is not None and is_point_by_point(op, in_order=True):
        chain.insert(0, cast("linalg.ops.GenericOp", op))
        value = chain[0].inputs[0]
    stored = isinstance(base_of(value), BlockArgument) and element_of(value) == f32
    return value, chain if stored else []


def _largest(root: linalg.ops.GenericOp, image: SSAValue) -> SSAValue:
    """The maxima of `root` over `image`, NaN aside."""
    view = StructuredOp(root)

    def body(b: Body) -> list[SSAValue]:
        return [b.op(arith.MaxnumfOp, b.args[-1], b.args[0])]

    new = Emitter.before(root).generic([image, *view.inputs[1:]], view.outputs, view.maps, view.iterators, body)
    carry([root], [new])
    return result_of(new)


EXPORT = RoundBehindMaximaPass
