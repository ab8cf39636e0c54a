"""An operand that is made of integers stored in 8 bits: found behind pads and moves (reshapes, transposes, broadcasts,
gathers), and made anew in another element type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import f32, i16
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.stored_integers import Range, StoredIntegers, stored_integers
from fuseline.analysis.structured import Kind, StructuredOp, is_constant, is_generic, kind, producer_of, splat_value
from fuseline.evaluation.nest import needed_ops
from fuseline.evaluation.program import Array, Program, Scope, run_op
from fuseline.ir.build import Body, Emitter, element_of, shape_of
from fuseline.ir.context import CompilerContext
from fuseline.ir.fast.direct import erase, is_unused, operands_of, replace_uses, result_of
from fuseline.ir.provenance import carry
from fuseline.passes.layout.rewriting import repeats
from fuseline.passes.layout.rewriting.pads import high_of, low_of, pad, uniform_value
from fuseline.passes.layout.rewriting.repeats import moved_by


@dataclass(frozen=True)
class QuantizedOperand:
    """What `stored` makes, moved by `moves` (the last one first)."""

    stored: StoredIntegers
    moves: tuple[Operation, ...]

    @property
    def is_constant(self) -> bool:
        """Whether the integers are known."""
        return all(is_constant(value) for value in _integer_inputs(self.stored))


def quantized_operand(value: SSAValue) -> QuantizedOperand | None:
    """What `value` is made of, None where it is no moved tensor of stored integers."""
    op, moves = moved_source(value)
    found = stored_integers(op) if op is not None and is_generic(op) else None
    return QuantizedOperand(found, moves) if found is not None else None


def moved_source(value: SSAValue) -> tuple[Operation | None, tuple[Operation, ...]]:
    """The op behind pads with zeros and moves that makes `value`, and those moves, the last one first."""
    moves: list[Operation] = []
    while True:
        op = producer_of(value)
        if isinstance(op, tensor.PadOp) and _pads_zeros(op):
            value = op.source
        else:
            moved = moved_by(op) if not (is_generic(op) and stored_integers(op) is not None) else None
            if op is None or moved is None:
                return op, tuple(moves)
            value = moved
        moves.append(op)


def replace_root(root: Operation, value: SSAValue, operands: Sequence[QuantizedOperand]) -> None:
    """Put `value` in place of the result of `root`, and remove what made its operands as far as nothing reads it any
    more."""
    made = producer_of(value)
    assert made is not None
    carry([root], [made])
    replace_uses(result_of(root), value)
    erase(root)
    for op in (op for operand in operands for op in (*operand.moves, operand.stored.op)):
        if op.parent is not None and is_unused(op):
            erase(op)


def _pads_zeros(op: tensor.PadOp) -> bool:
    value = uniform_value(op)
    return value is not None and splat_value(value) == 0


def scale_axes(operand: QuantizedOperand) -> tuple[int | None, ...] | None:
    """For each dimension of the scale the operand's dimension along which it varies (None: none); None where no
    dimension does exactly that."""
    stored = operand.stored
    if not isinstance(stored.scale, BlockArgument):
        return ()
    view = StructuredOp(stored.op)
    sizes = shape_of(view.operands[stored.scale.index])
    written = {
        expr.position: axis for axis, expr in enumerate(view.output_maps[0].results) if isinstance(expr, AffineDimExpr)
    }
    exprs = view.maps[stored.scale.index].results
    axes = [
        written[expr.position] if isinstance(expr, AffineDimExpr) and size != 1 else None
        for expr, size in zip(exprs, sizes, strict=True)
    ]
    for move in reversed(operand.moves):
        moved = [axis if axis is None else _moved_axis(move, axis) for axis in axes]
        if any(new is None and old is not None for new, old in zip(moved, axes, strict=True)):
            return None
        axes = moved
    return tuple(axes)


def _moved_axis(move: Operation, axis: int) -> int | None:
    if isinstance(move, tensor.PadOp):
        return axis if low_of(move)[axis] == 0 == high_of(move)[axis] else None
    if not is_generic(move) or kind(move) is Kind.GATHER:
        return None
    view = StructuredOp(move)
    loop = view.input_maps[0].results[axis]
    return next((i for i, expr in enumerate(view.output_maps[0].results) if expr == loop), None)


def _integer_inputs(stored: StoredIntegers) -> Sequence[SSAValue]:
    return [stored.op.operands[i] for i in _used_inputs(stored)]


def _used_inputs(stored: StoredIntegers) -> list[int]:
    block = stored.op.body.block
    used = {value for op in needed_ops(block, [stored.integer]) for value in operands_of(op)}
    return [argument.index for argument in block.args if argument in used]


@dataclass(frozen=True)
class Integers:
    """A tensor of integers, in `element`, within `range`."""

    value: SSAValue
    range: Range


@dataclass
class IntegerMaker:
    """Makes the integers behind operands, once for each element type; constants are computed."""

    ctx: CompilerContext
    made: dict[tuple[Operation, Attribute], Integers] = field(
        default_factory=dict[tuple[Operation, Attribute], Integers]
    )
    arrays: dict[tuple[Operation, Attribute], Array] = field(default_factory=dict[tuple[Operation, Attribute], Array])

    def range_of(self, operand: QuantizedOperand) -> Range:
        """Between which numbers the integers of an operand lie, those of a constant exactly; makes none."""
        return _ends(self._computed(operand.stored, i16)) if operand.is_constant else operand.stored.range

    def operand(self, operand: QuantizedOperand, at: Operation, element: Attribute) -> Integers:
        """The operand, its moves anew before `at`, in `element`: i16 (constants in i8 where that is enough) or f32."""
        found = self.centred(operand.stored, element)
        value = found.value
        for move in reversed(operand.moves):
            value = moved_again(Emitter(Emitter.before(at).point, location=move.location), move, value)
        return Integers(value, found.range)

    def centred(self, stored: StoredIntegers, element: Attribute) -> Integers:
        """The integers of `stored`, in the places of what it makes."""
        key = (stored.op, element)
        found = self.made.get(key)
        if found is None:
            known = QuantizedOperand(stored, ()).is_constant
            made = self._constant(stored, element) if known else _integers(stored, element)
            found = self.made[key] = made if isinstance(made, Integers) else Integers(result_of(made), stored.range)
        return found

    def _constant(self, stored: StoredIntegers, element: Attribute) -> Integers:
        array = self._computed(stored, element)
        ends = _ends(array)
        stored_as = array.astype(np.int8) if array.dtype == np.int16 and fits_bytes(ends) else array
        return Integers(Emitter.before(stored.op).constant(stored_as, self.ctx, "integers"), ends)

    def _computed(self, stored: StoredIntegers, element: Attribute) -> Array:
        """The integers of constants; the ops that say how to compute them are gone again."""
        key = (stored.op, element)
        if key not in self.arrays:
            op, scope = _integers(stored, element), Scope(Program(self.ctx.resources))
            for value in operands_of(op):
                bind(value, scope)
            run_op(op, scope)
            self.arrays[key] = np.asarray(scope[result_of(op)])
            empty = producer_of(op.outputs[0])
            erase(op)
            if empty is not None and is_unused(empty):
                erase(empty)
        return self.arrays[key]


def fits_bytes(ends: Range) -> bool:
    """Whether all numbers between `ends`, both included, fit 8 bits with a sign."""
    return ends[0] >= -128 and ends[1] <= 127


def _ends(array: Array) -> Range:
    return (int(array.min()), int(array.max())) if array.size else (0, 0)


def bind(value: SSAValue, scope: Scope) -> None:
    """Evaluate `value`, which depends on constants and on what `scope` has already."""
    if value in scope.values or not isinstance(value, OpResult):
        return
    for operand in operands_of(value.op):
        bind(operand, scope)
    run_op(value.op, scope)


def _integers(stored: StoredIntegers, element: Attribute) -> linalg.ops.GenericOp:
    view, used = StructuredOp(stored.op), _used_inputs(stored)

    def body(b: Body) -> list[SSAValue]:
        known: dict[SSAValue, SSAValue] = dict(zip([stored.op.body.block.args[i] for i in used], b.args, strict=False))
        for op in needed_ops(stored.op.body.block, [stored.integer]):
            b.add(op.clone(known))
        wide = known[stored.integer]
        return [b.op(arith.SIToFPOp, wide, f32) if element == f32 else b.op(arith.TruncIOp, wide, i16)]

    emit = Emitter.before(stored.op)
    empty = emit.empty_like(view.outputs[0], element)
    maps = [view.input_maps[i] for i in used] + [view.output_maps[0]]
    return emit.generic([view.inputs[i] for i in used], [empty], maps, view.iterators, body)


def moved_again(emit: Emitter, move: Operation, value: SSAValue, padding: float = 0) -> SSAValue:
    """`move`, a pad or what `repeats.py` knows, applied to `value`, which has another element type than what it was
    applied to; pads are of `padding`."""
    if not isinstance(move, tensor.PadOp):
        return repeats.moved_again(emit, move, value)
    filling = emit.scalar(padding, element_of(value))
    return pad(emit, value, low_of(move), high_of(move), filling, shape_of(move.result)).result
