"""A concat along the channels of products or windows sinks below the elementwise ops before them.

    product(widened(quantized(concat(a, b))))      =>      product(concat(widened(quantized(a)), widened(quantized(b))))

What is computed behind the concat follows each part where that is made, and the products read the parts where they lie,
as they do in a model that is not quantised; depthwise and pooling windows read the concat, which its parts are written
into. A part that is only repeated is computed before it is repeated (`rewriting/repeated_parts.py`). Nothing is
computed twice. Behind the concat the ops may branch, as long as each end is a product, a window, or a further concat
along the same channels (a dense block, which requantises all it has for each layer); then that one's parts are those of
both.

Nothing gets wider, either: the parts have one reader, and what the product reads is no wider than they are; or they
have several, and it is narrower.

What the caller gets is computed part by part, too, where all of them are made by roots and lie in one piece: each root
writes its part there, and no dispatch is left that reads them all once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import func, linalg, tensor
from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.structured import (
    CHANNEL_WINDOWS,
    DENSE,
    StructuredOp,
    is_generic,
    kind,
    multiply_add_operands,
    producer_of,
)
from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.ir.element_types import element_bits
from fuseline.ir.fast.direct import ops_of, replace_uses, result_of, users_of_value
from fuseline.ir.provenance import carry
from fuseline.passes.layout.rewriting.made_by_roots import back_to_root
from fuseline.passes.layout.rewriting.pads import high_of, low_of
from fuseline.passes.layout.rewriting.repeated_parts import computed, is_point_by_point
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass

Chain = list[linalg.ops.GenericOp]


@dataclass(frozen=True)
class SinkConcatsPass(ScopedPass):
    """Moves concats below elementwise ops whose result a product sums up along them, or a window has as channels."""

    name = "sink-concats"

    def rewrite(self, scope: Scope) -> None:
        """Each concat below all that is computed before products."""
        found = [op for op in ops_of(scope.block) if type(op) is tensor.ConcatOp]
        for op in found:
            ends = _ends(op)
            if _pays(op, ends):
                for end in ends:
                    _sink(op, end)
        if found:
            scope.sweep()


@dataclass(frozen=True, slots=True)
class _End:
    """Elementwise ops behind a concat, one behind the other, and what else reads the last one."""

    chain: Chain
    value: SSAValue
    readers: tuple[Operation, ...]


def _ends(op: tensor.ConcatOp) -> list[_End]:
    """Where the elementwise ops behind a concat end."""
    ends, pending = list[_End](), [(Chain(), cast("SSAValue", op.result))]
    while pending:
        chain, value = pending.pop()
        readers = list[Operation]()
        for user in dict.fromkeys(users_of_value(value)):
            if is_point_by_point(user, in_order=True):
                assert is_generic(user)
                pending.append(([*chain, user], result_of(user)))
            else:
                readers.append(user)
        if readers:
            ends.append(_End(chain, value, tuple(readers)))
    return ends


def _parts(op: tensor.ConcatOp) -> list[SSAValue]:
    """The parts of a concat; those of a part that is a concat along the same dimension in its place."""
    parts = list[SSAValue]()
    for value in op.inputs:
        made = producer_of(value)
        parts += _parts(made) if isinstance(made, tensor.ConcatOp) and made.dim == op.dim else [value]
    return parts


def _pays(op: tensor.ConcatOp, ends: Sequence[_End]) -> bool:
    """Whether all that is read behind the concat is read by products that sum along it, their pairs of integers lie in
    one part each, or by windows that have it as channels, and every part is made for this alone, or by an op that can
    make the narrow form as well."""
    axis, parts, sunk = op.dim.value.data, _parts(op), [end for end in ends if end.chain]
    if _is_handed_over(op, ends):
        return all(map(back_to_root, parts))  # others may read them: another result of the dispatch
    roots = [end for end in sunk if any(_is_root_along(end.value, reader, axis) for reader in end.readers)]
    if not roots:
        return False
    if not all(_reads_parts(end.value, reader, op) for end in ends for reader in end.readers):
        return False
    made = all(map(_is_made, parts))
    alone = all(len(users_of_value(value)) == 1 for value in parts)
    widest = max(element_bits(end.value) for end in roots)
    narrow = any(isinstance(element_of(end.value), IntegerType) for end in sunk)
    fits = widest <= element_bits(op.result) if alone else widest < element_bits(op.result)
    return made and fits and not (narrow and any(shape_of(value)[axis] % 2 for value in parts))


def _is_handed_over(op: tensor.ConcatOp, ends: Sequence[_End]) -> bool:
    """Whether the caller alone reads what is computed of a concat whose parts lie in one piece each, no wider than they
    are."""
    alone = len(ends) == 1 and all(isinstance(reader, func.ReturnOp) for reader in ends[0].readers)
    in_pieces = all(size == 1 for size in shape_of(op.result)[: op.dim.value.data])
    return alone and in_pieces and element_bits(ends[0].value) <= element_bits(op.result)


def _reads_parts(value: SSAValue, reader: Operation, op: tensor.ConcatOp) -> bool:
    """Whether `reader` has a concat in place of `value` in its addresses."""
    further = isinstance(reader, tensor.ConcatOp) and reader.dim == op.dim
    return further or _is_root_along(value, reader, op.dim.value.data)


def _is_root_along(value: SSAValue, reader: Operation, axis: int) -> bool:
    """Whether `reader` is a product that sums along dimension `axis` of `value`, a window that has it as channels, or
    pads `value` elsewhere for such."""
    if isinstance(reader, tensor.PadOp):
        along = low_of(reader)[axis] == 0 == high_of(reader)[axis]
        return along and all(_is_root_along(reader.result, user, axis) for user in users_of_value(reader.result))
    if kind(reader) not in DENSE | CHANNEL_WINDOWS:
        return False
    assert is_generic(reader)
    view = StructuredOp(reader)
    read = [map_.results[axis] for source, map_ in zip(view.inputs, view.input_maps, strict=True) if source is value]
    (along,) = read if len(read) == 1 else (None,)
    if kind(reader) in CHANNEL_WINDOWS:
        return isinstance(along, AffineDimExpr) and along.position in view.parallel
    summed = isinstance(along, AffineDimExpr) and along.position in view.reduction
    return summed and multiply_add_operands(reader) is not None


def _is_made(part: SSAValue) -> bool:
    return isinstance(part, OpResult) and is_generic(part.op)


def _sink(op: tensor.ConcatOp, end: _End) -> None:
    if not end.chain:
        return
    last = end.chain[-1]
    parts: Sequence[SSAValue] = [computed(value, end.chain, last) for value in _parts(op)]
    type_ = end.value.type
    assert isinstance(type_, TensorType)
    new = Emitter.before(last).add(tensor.ConcatOp(parts, op.dim, type_))
    carry([op, *end.chain], [new])
    replace_uses(end.value, new.result)


EXPORT = SinkConcatsPass
