"""Centred bytes behind pads, moves and concats, and the bytes themselves moved in the same way."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import tensor
from xdsl.ir import Operation, SSAValue

from fuseline.analysis.centred_bytes import BYTE, SIGN, CentredBytes, Offset, centred_bytes
from fuseline.ir.build import Emitter, element_of, shape_of, tensor_type
from fuseline.passes.cleanup.quantized_operands import moved_again, moved_source
from fuseline.passes.layout.rewriting.bytes_without_sign import BytesWithoutSign


@dataclass(frozen=True)
class MovedBytes:
    """What `centred` makes, or `parts` that a concat joins, moved by `moves` (the last one first)."""

    moves: tuple[Operation, ...]
    offset: Offset
    centred: CentredBytes | None = None
    concat: tensor.ConcatOp | None = None
    parts: tuple[MovedBytes, ...] = ()

    @property
    def origins(self) -> tuple[CentredBytes, ...]:
        """All that is joined."""
        return (self.centred,) if self.centred is not None else tuple(o for part in self.parts for o in part.origins)

    def stored(self, before: Operation, bytes_: BytesWithoutSign) -> SSAValue:
        """The bytes in the places of what is centred, the moves and concats anew before an op."""
        value = bytes_.of(self.centred) if self.centred is not None else self._joined(before, bytes_)
        for move in reversed(self.moves):
            emit = Emitter(Emitter.before(before).point, location=move.location)
            value = moved_again(emit, move, value, _as_stored(-self.offset.number))
        return value

    def _joined(self, before: Operation, bytes_: BytesWithoutSign) -> SSAValue:
        assert self.concat is not None
        parts = [part.stored(before, bytes_) for part in self.parts]
        type_ = tensor_type(element_of(parts[0]), shape_of(self.concat.result))
        emit = Emitter(Emitter.before(before).point, location=self.concat.location)
        return emit.add(tensor.ConcatOp.create(
            operands=parts, result_types=[type_], properties=dict(self.concat.properties)
        )).results[0]  # fmt: skip


def moved_bytes(value: SSAValue) -> MovedBytes | None:
    """What `value` is made of; None where it is anything else, bytes with several offsets are joined, or no byte that
    is known stands for the zeros of a pad."""
    op, moves = moved_source(value)
    if isinstance(op, tensor.ConcatOp):
        parts = [moved_bytes(part) for part in op.inputs]
        known = tuple(part for part in parts if part is not None)
        if len(known) < len(parts) or len({part.offset for part in known}) != 1:
            return None
        found = MovedBytes(moves, known[0].offset, concat=op, parts=known)
    else:
        centred = centred_bytes(op)
        if centred is None:
            return None
        found = MovedBytes(moves, centred.offset, centred)
    padded = any(isinstance(move, tensor.PadOp) for move in moves)
    known = found.offset.zero is None and 0 <= -found.offset.number < BYTE
    return found if known or not padded else None


def _as_stored(number: int) -> int:
    """A number without a sign as the 8 bits with one that it is stored in."""
    return number - BYTE if number >= SIGN else number
