"""Truths that are put into a tensor as numbers of the type that is made of them in the end.

    where(scatter(mask, places, u), x, y)      =>      where(scatter(float(mask), places, float(u)) != 0, x, y)

What a scatter puts together lies in the place of a result of its dispatch, which has one where what follows point by
point has its type. 0 and 1 are numbers of any type.
"""

from __future__ import annotations

from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import AnyFloat, IntegerType, i1
from xdsl.ir import Attribute, Operation, SSAValue

from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind
from fuseline.ir.build import Body, Emitter, element_of
from fuseline.ir.fast.direct import replace_uses_if, result_of, users_of_value
from fuseline.passes.layout.rewriting.generics import plain_loops
from fuseline.passes.layout.rewriting.reshapes import is_reshape

MOST_READERS = 8
"""Ops behind each other that are looked through."""


def type_in_the_end(truths: SSAValue) -> Attribute | None:
    """The type of the last numbers that are made of `truths`, point by point and by nothing else; None where there are
    none."""
    value = truths
    for _ in range(MOST_READERS):
        users = users_of_value(value)
        if len(users) != 1 or not (is_reshape(users[0]) or _is_followed(users[0], value)):
            break
        value = users[0].results[0]
    element = element_of(value)
    return element if element != i1 and isinstance(element, AnyFloat | IntegerType) else None


def _is_followed(user: Operation, value: SSAValue) -> bool:
    """Whether an op has one result, of as many elements as `value`, each made of one of these."""
    if not is_generic(user) or kind(user) is not Kind.ELEMENTWISE or len(user.results) != 1:
        return False
    view = StructuredOp(user)
    reads = [map_ for operand, map_ in zip(view.inputs, view.input_maps, strict=True) if operand is value]
    return len(reads) == 1 and len(set(plain_loops(reads[0]) or ())) == view.rank


def as_numbers(scatter: linalg.ops.GenericOp, number: Attribute) -> None:
    """Make numbers of the truths that `scatter` makes, and truths of these for whoever reads them."""
    at, truths = Emitter.after(scatter), result_of(scatter)
    readers = users_of_value(truths)
    numbers = at.elementwise([truths], at.empty_like(truths, number), lambda b: _number(b, number))
    again = at.elementwise([numbers], at.empty_like(truths), lambda b: _truth(b, number))
    replace_uses_if(truths, again, lambda reader: reader in readers)


def _number(b: Body, type_: Attribute) -> SSAValue:
    return b.op(arith.SelectOp, b.args[0], b.constant(1, type_), b.constant(0, type_))


def _truth(b: Body, type_: Attribute) -> SSAValue:
    zero = b.constant(0, type_)
    if isinstance(type_, AnyFloat):
        return b.op(arith.CmpfOp, b.args[0], zero, "une")
    return b.op(arith.CmpiOp, b.args[0], zero, "ne")
