"""A concat along the channels of a product sinks below the elementwise ops before it.

    product(widened(quantized(concat(a, b))))      =>      product(concat(widened(quantized(a)), widened(quantized(b))))

What is computed behind the concat follows each part where that is made, and the product reads the parts where they lie,
as it does in a model that is not quantised. A part that is only repeated is computed before it is repeated
(`rewriting/repeated_parts.py`). Nothing is computed twice, and nothing gets wider: the parts have one reader, and what
the product reads is no wider than they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind, multiply_add_operands
from fuseline.ir.build import Emitter, element_of, shape_of
from fuseline.ir.fast.direct import ops_of, replace_uses, result_of, users_of_value
from fuseline.ir.provenance import carry
from fuseline.passes.layout.rewriting.repeated_parts import computed, is_point_by_point
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass

Chain = list[linalg.ops.GenericOp]


@dataclass(frozen=True)
class SinkConcatsPass(ScopedPass):
    """Moves concats below elementwise ops whose result a product sums up along them."""

    name = "sink-concats"

    def rewrite(self, scope: Scope) -> None:
        """Each concat below all that is computed before a product."""
        found = [op for op in ops_of(scope.block) if type(op) is tensor.ConcatOp]
        for op in found:
            chain, reader = _read_through(op)
            if chain and reader is not None and _pays(op, chain, reader):
                _sink(op, chain)
        if found:
            scope.sweep()


def _read_through(op: tensor.ConcatOp) -> tuple[Chain, linalg.ops.GenericOp | None]:
    """The elementwise ops behind a concat, and what alone reads the last one."""
    chain: Chain = []
    value: SSAValue = op.result
    while True:
        users = users_of_value(value)
        if len(users) != 1 or not is_generic(users[0]):
            return chain, None
        if not is_point_by_point(users[0], in_order=True):
            return chain, users[0]
        chain.append(users[0])
        value = result_of(users[0])


def _pays(op: tensor.ConcatOp, chain: Chain, reader: linalg.ops.GenericOp) -> bool:
    """Whether the reader is a product that sums along the concat, its pairs of integers lie in one part each, and every
    part is made for this alone."""
    last, axis = result_of(chain[-1]), op.dim.value.data
    if kind(reader) not in (Kind.CONTRACTION, Kind.CONVOLUTION) or multiply_add_operands(reader) is None:
        return False
    view = StructuredOp(reader)
    read = [map_.results[axis] for value, map_ in zip(view.inputs, view.input_maps, strict=True) if value is last]
    if len(read) != 1 or not (isinstance(read[0], AffineDimExpr) and read[0].position in view.reduction):
        return False
    narrow = isinstance(element_of(last), IntegerType)
    return (
        _bits(last) <= _bits(op.result)
        and all(_is_made_for(value) for value in op.inputs)
        and not (narrow and any(shape_of(value)[axis] % 2 for value in op.inputs))
    )


def _is_made_for(part: SSAValue) -> bool:
    return isinstance(part, OpResult) and is_generic(part.op) and len(users_of_value(part)) == 1


def _bits(value: SSAValue) -> int:
    return int(getattr(element_of(value), "bitwidth", 64))


def _sink(op: tensor.ConcatOp, chain: Chain) -> None:
    last = chain[-1]
    parts: Sequence[SSAValue] = [computed(value, chain, last) for value in op.inputs]
    type_ = last.results[0].type
    assert isinstance(type_, TensorType)
    new = Emitter.before(last).add(tensor.ConcatOp(parts, op.dim, type_))
    carry([op, *chain], [new])
    replace_uses(result_of(last), new.result)


EXPORT = SinkConcatsPass
