"""compute-before-slices: what is made of stored integers behind slices of them is made before they are cut.

    slice(q) ──> centred      each slice of q      =>      q ──> centred ──> slice

So what makes `q` makes the other integers as well, and products, pads and concats read slices of those where they lie:
halves of a convolution's channels, of which one goes on and both are joined later (.83 to .89 of the time of a block of
16 channels of 16x16, .99 to 1.01 of 64 of 28x28). It is done where nothing else reads `q`, and no more is computed than
is read: two forms of all of it, one of which is read by half, take 1.02 to 1.06. Whether two slices are computed to the
same is found by computing every number (`number_tables.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerType
from xdsl.ir import Operation, SSAValue

from fuseline.analysis.stored_integers import STORED_BITS
from fuseline.analysis.structured import is_generic
from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.ir.fast.direct import ops_of, replace_uses, result_of, users_of_value
from fuseline.ir.provenance import carry
from fuseline.passes.cleanup.number_tables import numbers_behind
from fuseline.passes.layout.rewriting.repeated_parts import Chain, applied, is_point_by_point
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass

WIDEST = 16
"""Bits of what is made: no more than centred integers are stored in."""


@dataclass(frozen=True)
class ComputeBeforeSlicesPass(ScopedPass):
    """Has no options."""

    name = "compute-before-slices"

    def rewrite(self, scope: Scope) -> None:
        """Each tensor of stored integers that is made, and cut."""
        found = False
        for op in ops_of(scope.block):
            forms = _forms(result_of(op)) if is_generic(op) and len(op.results) == 1 else {}
            if forms and _pays(result_of(op), forms):
                for ends in forms.values():
                    _compute_before(result_of(op), ends)
                found = True
        if found:
            scope.sweep()


@dataclass(frozen=True, slots=True)
class _End:
    """A slice, the ops behind it that compute element by element, and the last one's value."""

    slice: tensor.ExtractSliceOp
    chain: Chain
    value: SSAValue


_Forms = Mapping[object, list[_End]]
"""By what is computed, where."""


def _forms(value: SSAValue) -> _Forms:
    """What is computed of slices of `value`; none where anything else is done with it or them."""
    if element_of(value) != IntegerType(STORED_BITS):
        return {}
    forms = defaultdict[object, list[_End]](list)
    for user in dict.fromkeys(users_of_value(value)):
        ends = _ends(user) if isinstance(user, tensor.ExtractSliceOp) and _is_known(user) else []
        if not ends or not all(map(_is_narrow, ends)):
            return {}
        for end in ends:
            forms[element_of(end.value), numbers_behind(end.chain).tobytes()].append(end)
    return forms


def _is_known(op: tensor.ExtractSliceOp) -> bool:
    """Whether the sizes of a slice are known, and it has as many dimensions as what it is cut from."""
    sizes = (*shape_of(op.result), *shape_of(op.source))
    return DYNAMIC_INDEX not in sizes and len(shape_of(op.result)) == len(shape_of(op.source))


def _ends(cut: tensor.ExtractSliceOp) -> list[_End]:
    """Where the ops behind a slice that compute element by element end, or are read by others as well."""
    ends, pending = list[_End](), [_End(cut, Chain(), cut.result)]
    while pending:
        end = pending.pop()
        steps = [user for user in dict.fromkeys(users_of_value(end.value)) if _is_step(user)]
        if len(steps) < len(set(users_of_value(end.value))):
            ends.append(end)
        pending += [_End(cut, [*end.chain, step], result_of(step)) for step in steps if is_generic(step)]
    return ends


def _is_step(op: Operation) -> bool:
    return is_point_by_point(op, in_order=True)


def _is_narrow(end: _End) -> bool:
    """Whether integers are computed that take little room."""
    element = element_of(end.value)
    return bool(end.chain) and isinstance(element, IntegerType) and element.width.data <= WIDEST


def _pays(value: SSAValue, forms: _Forms) -> bool:
    """Whether no more is computed than is read."""
    read = sum(_elements(end.value) for ends in forms.values() for end in ends)
    return len(forms) * _elements(value) <= read


def _elements(value: SSAValue) -> int:
    return prod(shape_of(value))


def _compute_before(value: SSAValue, ends: Iterable[_End]) -> None:
    """Put slices of what is computed of `value` in place of what is computed of slices."""
    made, chain = value.owner, min((end.chain for end in ends), key=len)
    assert isinstance(made, Operation) and made.next_op is not None
    before, whole = made.next_op, value
    for op in chain:
        whole = applied(op, whole, before)
    for end in ends:
        part = Emitter.before(end.slice).reshaped_again(end.slice, whole)
        carry([end.slice, *end.chain], [part.owner] if isinstance(part.owner, Operation) else [])
        replace_uses(end.value, part)


EXPORT = ComputeBeforeSlicesPass
