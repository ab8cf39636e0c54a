"""read-halves-in-windows: depthwise convolutions and poolings read the 16-bit floats of an argument as they are stored.

    x: f16 ──> widen ──> pad ──> depthwise(f32)             =>      x: f16 ──> pad ──> depthwise(f32(f16), ..)
    x: f16 ──> gather and widen ──> depthwise(f32)          =>      x: f16 ──> gather ──> depthwise(f32(f16), ..)

Each element is widened where a window loads it, so that no image in f32 is stored for them. What else reads the widened
image reads it as before. What the program computes has no 16-bit tensors to be read (`compute-halves-in-f32`).
It runs again behind the layout: a convolution of one channel is a window once its unit dimensions are gone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import ModuleOp, bf16, f32
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from fuseline.analysis.indexing_maps import used_dims
from fuseline.analysis.moves import RESHAPES
from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind, producer_of, splat_value, yielded
from fuseline.analysis.views import base_of
from fuseline.ir.build import Emitter, element_of
from fuseline.ir.fast.direct import (
    body_of,
    erase,
    insert_before,
    is_unused,
    operand_of,
    ops_of,
    replace_uses,
    result_of,
    set_operand,
    set_type,
    users_of_value,
)
from fuseline.ir.functions import functions
from fuseline.ir.halves import is_half
from fuseline.passes.cleanup.halves_in_place import only_converts
from fuseline.passes.cleanup.quantized_operands import moved_again
from fuseline.passes.layout.rewriting.pads import uniform_value

_OF_A_PRODUCT, _OF_A_COMBINATION = 3, 2
"""Ops of the body of a window: what it computes, and the yield."""


@dataclass(frozen=True)
class ReadHalvesInWindowsPass(ModulePass):
    """Has no options."""

    name = "read-halves-in-windows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the windows of every function that has arguments of 16-bit floats."""
        del ctx
        for function in functions(op):
            block = function.body.block
            if any(is_half(argument.type) for argument in block.args):
                for inner in ops_of(block):
                    if is_generic(inner) and _is_plain_window(inner):
                        _read_narrow(inner)


def _is_plain_window(root: linalg.ops.GenericOp) -> bool:
    """Whether `root` slides a window over an image in f32, with nothing in its body beside the product, if there is
    one, and what combines."""
    ops = {Kind.DEPTHWISE: _OF_A_PRODUCT, Kind.POOLING: _OF_A_COMBINATION}.get(kind(root))
    return ops == len(ops_of(body_of(root))) and element_of(result_of(root)) == f32


def _read_narrow(root: linalg.ops.GenericOp) -> None:
    view = StructuredOp(root)
    position = max(range(len(view.inputs)), key=lambda i: len(used_dims(view.input_maps[i])))
    image, argument = view.inputs[position], body_of(root).args[position]
    narrow = _narrow(image, root)
    if narrow is None or len(list(argument.uses)) != 1:
        return
    set_operand(root, position, narrow)
    widened = arith.ExtFOp(argument, f32)
    set_type(argument, element_of(narrow))
    replace_uses(argument, result_of(widened))
    set_operand(widened, 0, argument)
    first = body_of(root).first_op
    assert first is not None
    insert_before(widened, first)
    made = producer_of(image)
    if made is not None and is_unused(made):
        erase(made)


def _narrow(image: SSAValue, root: linalg.ops.GenericOp) -> SSAValue | None:
    """The image as it is stored, moved as `image` is; None where it is not stored in 16 bits."""
    moves = list[tuple[Operation, float]]()
    source = image
    while (element := _element_stored(source)) is None:
        move = producer_of(source)
        padding = _padding(move) if move is not None else None
        if move is None or padding is None:
            return None
        moves.append((move, padding))
        source = move.operands[0]
    if not all(_is_exact(padding, element) for _, padding in moves):
        return None
    value = _stored(source)
    for move, padding in reversed(moves):
        value = moved_again(Emitter(Emitter.before(root).point, location=move.location), move, value, padding)
    return value


def _padding(move: Operation) -> float | None:
    """What a move puts beside what it moves, 0 where it puts nothing; None of other ops, and where it puts several
    numbers."""
    if isinstance(move, tensor.PadOp):
        value = uniform_value(move)
        number = splat_value(value) if value is not None else None
        return None if number is None else float(number)
    return 0.0 if type(move) in RESHAPES or (is_generic(move) and kind(move) is Kind.TRANSPOSE) else None


def _element_stored(value: SSAValue) -> Attribute | None:
    """The 16-bit element that `value` is widened from, where an argument of the program holds it, or a gather picks it
    of one for this reader alone."""
    made = producer_of(value)
    if made is None or not is_generic(made):
        return None
    picked = _picked(made) if len(users_of_value(value)) == 1 else None
    source = made.inputs[0] if only_converts(made, arith.ExtFOp) else picked.tensor if picked is not None else None
    if source is None or not is_half(source.type) or not isinstance(base_of(source), BlockArgument):
        return None
    return element_of(source)


def _picked(made: linalg.ops.GenericOp) -> tensor.ExtractOp | None:
    """What a gather does before it widens, which is the last that it does; None of other ops."""
    widened = yielded(made)[0].owner
    if kind(made) is not Kind.GATHER or len(made.results) != 1 or not isinstance(widened, arith.ExtFOp):
        return None
    picked = operand_of(widened, 0).owner
    return picked if isinstance(picked, tensor.ExtractOp) else None


def _stored(value: SSAValue) -> SSAValue:
    """What `value` is widened from: the argument, or the gather made anew with its elements."""
    made = producer_of(value)
    assert made is not None and is_generic(made)
    return made.inputs[0] if only_converts(made, arith.ExtFOp) else _narrow_gather(made)


def _narrow_gather(made: linalg.ops.GenericOp) -> SSAValue:
    gather, picked = made.clone(), _picked(made)
    assert picked is not None
    element = picked.result.type
    insert_before(gather, made)
    init = Emitter.before(gather).empty_like(made.outputs[0], element)
    set_operand(gather, len(gather.operands) - 1, init)
    set_type(result_of(gather), init.type)
    set_type(body_of(gather).args[-1], element)
    last = yielded(gather)[0].owner
    assert isinstance(last, arith.ExtFOp)
    replace_uses(result_of(last), operand_of(last, 0))
    erase(last)
    return result_of(gather)


def _is_exact(number: float, element: Attribute) -> bool:
    """Whether `number` is one of `element`."""
    if element == bf16:
        return float(np.float32(number)) == number and not int(np.float32(number).view(np.uint32)) & 0xFFFF
    with np.errstate(over="ignore"):
        return float(np.float16(number)) == number


EXPORT = ReadHalvesInWindowsPass
