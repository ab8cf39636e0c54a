"""Bytes stored without a sign in place of those with one: the op that makes them turns the highest bit, and what reads
them turns it again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import i8, i16, i32
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint

from fuseline.analysis.centred_bytes import SIGN, CentredBytes
from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind
from fuseline.ir.build import Body, Emitter, element_of
from fuseline.ir.fast.direct import body_of, last_of, operand_of, result_of, set_operand, set_type, users_of_value

Compute = Callable[[Emitter, SSAValue], SSAValue]
"""`(where, element of what is read) -> the element that it stands for`"""


@dataclass
class BytesWithoutSign:
    """The tensors of bytes without a sign, each made once."""

    made: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    moved: dict[Operation, SSAValue] = field(default_factory=dict[Operation, SSAValue])

    def of(self, centred: CentredBytes) -> SSAValue:
        """The bytes that `centred` adds its offset to, in the places of its results."""
        if not centred.in_place:
            if centred.op not in self.moved:
                self.moved[centred.op] = _moved(centred)
            return self.moved[centred.op]
        if not centred.signed:
            return centred.source
        if centred.source not in self.made:
            self.made[centred.source] = _without_sign(centred.source)
        return self.made[centred.source]


def centred_where_read(found: CentredBytes, bytes_: SSAValue) -> None:
    """Elementwise readers of what is centred add the offset themselves, to the bytes that they read in its place; not
    one that only the run knows, which they would have to read, too."""
    offset = found.offset.number
    if found.offset.zero is not None:
        return

    def centred(emit: Emitter, element: SSAValue) -> SSAValue:
        if offset == 0:
            return emit.add(arith.ExtUIOp(element, i16)).result
        wide = emit.add(arith.ExtUIOp(element, i32)).result
        total = emit.add(arith.AddiOp(wide, emit.scalar(offset, i32))).result
        return emit.add(arith.TruncIOp(total, i16)).result

    value = result_of(found.op)
    for reader in _elementwise_readers(value):
        _read_through(reader, value, bytes_, centred)


def _without_sign(value: SSAValue) -> SSAValue:
    """The bytes of `value` with the highest bit turned, stored in its place where every reader can turn it again."""
    readers = _elementwise_readers(value)
    producer = value.op if isinstance(value, OpResult) else None
    alone = len(readers) == len(users_of_value(value))
    if not alone or not is_generic(producer) or len(producer.results) != 1 or StructuredOp(producer).reduction:
        return _turned_anew(value)
    for reader in readers:
        _read_through(reader, value, value, _turned)
    end = last_of(body_of(producer))
    assert end is not None
    set_operand(end, 0, _turned(Emitter.before(end), operand_of(end, 0)))
    return value


def _turned(emit: Emitter, element: SSAValue) -> SSAValue:
    return emit.add(arith.XOrIOp(element, emit.scalar(-SIGN, i8))).result


def _moved(centred: CentredBytes) -> SSAValue:
    """The bytes in other places, in an op of their own."""
    view = StructuredOp(centred.op)
    maps = [view.input_maps[centred.position], view.output_maps[0]]

    def body(b: Body) -> list[SSAValue]:
        return [b.op(arith.XOrIOp, b.args[0], b.constant(-SIGN, i8)) if centred.signed else b.args[0]]

    emit = Emitter.before(centred.op)
    return result_of(emit.generic([centred.source], [emit.empty_like(view.outputs[0], i8)], maps, view.iterators, body))


def _turned_anew(value: SSAValue) -> SSAValue:
    """An op of its own, behind what makes `value`."""
    if isinstance(value, OpResult):
        emit = Emitter.after(value.op)
    else:
        emit = Emitter(InsertPoint.at_start(value.owner))  # pyright: ignore[reportArgumentType]
    return emit.elementwise(
        [value], emit.empty_like(value), lambda b: b.op(arith.XOrIOp, b.args[0], b.constant(-SIGN, i8))
    )


def _elementwise_readers(value: SSAValue) -> list[linalg.ops.GenericOp]:
    """The elementwise ops that read `value` as an input, each once."""
    found: list[linalg.ops.GenericOp] = []
    for user in dict.fromkeys(users_of_value(value)):
        if is_generic(user) and kind(user) is Kind.ELEMENTWISE and value not in user.outputs:
            found.append(user)
    return found


def _read_through(reader: linalg.ops.GenericOp, old: SSAValue, new: SSAValue, compute: Compute) -> None:
    """`reader` reads `new` in place of `old`, and computes from its element what that of `old` was."""
    block = body_of(reader)
    first = block.first_op
    assert first is not None
    for position, operand in enumerate(reader.inputs):
        if operand is old:
            argument = block.args[position]
            uses = [(use.operation, use.index) for use in argument.uses]
            set_operand(reader, position, new)
            set_type(argument, element_of(new))
            stood_for = compute(Emitter.before(first), argument)
            for operation, index in uses:
                set_operand(operation, index, stood_for)
