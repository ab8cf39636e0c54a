"""round-behind-maxima: a maximum over windows of what is rounded is rounded behind the maximum, where an argument is.

    max_pool(dequantized(quantized(x)))         =>         dequantized(quantized(max_pool(x)))
    max_pool(quantized(x))                      =>         quantized(max_pool(x))

All of it rises with `x`, so that the largest is the same one (`analysis/rising_bodies.py`). An argument is stored in
any case: it is read in f32, nothing that is rounded has to be stored for the window, and fewer elements are rounded.
What else reads the rounded argument rounds for itself. Maxima pass over NaN then, as rounding does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import IntegerType, f32
from xdsl.ir import BlockArgument, SSAValue

from fuseline.analysis.quantized_arguments import LONGEST, quantizes_argument
from fuseline.analysis.rising_bodies import Bounds, rising
from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind, producer_of, yielded
from fuseline.analysis.views import base_of
from fuseline.ir.build import Body, Emitter, element_of
from fuseline.ir.fast.direct import ops_of, replace_uses, result_of
from fuseline.ir.provenance import carry
from fuseline.passes.cleanup.narrow_images import image_and_border, is_maximum, least_of
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
            if is_generic(op) and kind(op) is Kind.POOLING and is_maximum(op):
                found |= _rounded_behind(op, scope)
        if found:
            scope.sweep()


def _rounded_behind(root: linalg.ops.GenericOp, scope: Scope) -> bool:
    found = image_and_border(scope.shapes, StructuredOp(root))
    if found is None:
        return False
    image, border = found
    source, chain = _rounding(image)
    bounds = rising(chain) if chain else None
    if bounds is None or not _is_compared_so(root, bounds):
        return False
    if border is not None:
        source = moved_again(Emitter.before(root), border, source, float("-inf"))
    value: SSAValue = _largest(root, source)
    for op in chain:
        value = applied(op, value, root)
    replace_uses(result_of(root), value)
    return True


def _is_compared_so(root: linalg.ops.GenericOp, bounds: Bounds) -> bool:
    """Whether a maximum takes what lies between `bounds` for the numbers that they are: integers with a sign or
    without."""
    element = element_of(result_of(root))
    if not isinstance(element, IntegerType):
        return True
    least = int(least_of(yielded(root)[0]))
    return bounds.inside(least, least + (1 << element.width.data) - 1)


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
    view, emit = StructuredOp(root), Emitter.before(root)

    def body(b: Body) -> list[SSAValue]:
        return [b.op(arith.MaxnumfOp, b.args[-1], b.args[0])]

    windows = [emit.empty_like(value, f32) for value in view.inputs[1:]]
    start = emit.fill(float("-inf"), emit.empty_like(view.outputs[0], f32))
    new = emit.generic([image, *windows], [start], view.maps, view.iterators, body)
    carry([root], [new])
    return result_of(new)


EXPORT = RoundBehindMaximaPass
