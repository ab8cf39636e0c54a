"""Scales behind a convolution or contraction with a constant weight go into the weight, shifts merge into one addition.

    conv(x, w) + b  ->  * a + c         =>      conv(x, w * a)  ->  + (b * a + c)

One factor per output channel (or one for all), in f32 or f64; batch normalisation after a convolution is the common
case. Products are computed in f64 and rounded once, so the result differs from the model's by rounding only. A scale of
all ones (a bias alone) stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import ModuleOp, f32, f64
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from fuseline.analysis.indexing_maps import is_identity
from fuseline.analysis.structured import (
    PRODUCTS,
    StructuredOp,
    is_constant,
    is_generic,
    kind,
    multiply_add_operands,
    producer_of,
    splat_value,
)
from fuseline.evaluation.program import Program, Scope, run_op
from fuseline.ir.build import Emitter, dims_map, element_of, shape_of
from fuseline.ir.context import CompilerContext
from fuseline.ir.fast.direct import body_of, operand_of, operands_of, ops_of, replace_uses, result_of
from fuseline.ir.functions import functions
from fuseline.ir.provenance import carry
from fuseline.passes.layout.affine_bodies import Affine, Array, affine_body, can_be_affine, only_shifts
from fuseline.passes.layout.rewriting.generics import plain_loops, set_input
from fuseline.passes.layout.rewriting.permutation import users_of
from fuseline.passes.layout.rewriting.scope import Ledger, sweep


@dataclass(frozen=True)
class FoldScaleIntoWeightsPass(ModulePass):
    """Folds per-channel scales into the constant weights before them."""

    name = "fold-scale-into-weights"

    def apply(self, ctx: CompilerContext, op: ModuleOp) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Fold in every function, in order, so that scales in a row fold one after the other."""
        ledger = Ledger(op)
        for function in functions(op):
            block = body_of(function)
            sweep(block)
            for inner in ops_of(block):
                if is_generic(inner) and inner.parent is not None and _may_scale(inner) and kind(inner) in PRODUCTS:
                    _fold(ctx, inner)
            sweep(block)
        ledger.close(ctx, self.name)


def _may_scale(root: linalg.ops.GenericOp) -> bool:
    """Whether `root` sums floats and something behind it may scale its result: most of what follows a root is a shift,
    and no chain."""
    value: SSAValue = result_of(root)
    if "reduction" not in StructuredOp(root).iterators or element_of(value) not in (f32, f64):
        return False
    while True:
        readers = list(dict.fromkeys(users_of(value)))
        reader = readers[0] if len(readers) == 1 else None
        if reader is None or not is_generic(reader) or len(reader.results) != 1 or not can_be_affine(reader):
            return False
        if operands_of(reader).count(value) > 1 or not only_shifts(reader):
            return True
        value = result_of(reader)


def _fold(ctx: CompilerContext, root: linalg.ops.GenericOp) -> None:
    weight = _weight_position(root)
    if weight is None or splat_value(operands_of(root)[-1]) != 0:
        return
    chain, scale, shift = _affine_chain(ctx, root, weight)
    if not chain or bool(np.all(scale == 1)):
        return
    _scale_weight(ctx, root, weight, scale)
    carry(chain, [root])
    value: SSAValue = result_of(root)
    if shift.any():
        value = _shifted(ctx, Emitter(InsertPoint.before(chain[-1]), location=root.location), value, shift)
    replace_uses(result_of(chain[-1]), value)


def _weight_position(root: linalg.ops.GenericOp) -> int | None:
    """Which input is a constant weight that nothing else reads; None where none is or the body is more than multiply
    and add."""
    sides = multiply_add_operands(root)
    if sides is None or len(operands_of(root)) != 3 or len(ops_of(body_of(root))) != 3:
        return None
    found = [i for i in sides if is_constant(operand_of(root, i)) and len(users_of(operand_of(root, i))) == 1]
    return found[0] if len(found) == 1 else None


def _affine_chain(
    ctx: CompilerContext, root: linalg.ops.GenericOp, weight: int
) -> tuple[list[linalg.ops.GenericOp], Array, Array]:
    """The elementwise ops behind `root` that only scale and shift, up to the last that scales, and what they make of
    its result."""
    chain: list[linalg.ops.GenericOp] = []
    kept, scale, shift = 0, np.ones(()), np.zeros(())
    best: tuple[Array, Array] = (scale, shift)
    value: SSAValue = result_of(root)
    while True:
        readers = list(dict.fromkeys(users_of(value)))
        step = (
            _affine_reader(ctx, root, weight, value, readers[0])
            if len(readers) == 1 and is_generic(readers[0])
            else None
        )
        if step is None:
            return chain[:kept], *best
        reader = readers[0]
        assert is_generic(reader)
        scale, shift = scale * step[0], shift * step[0] + step[1]
        chain.append(reader)
        # Shifts on their own stay where they are, unless a scale follows.
        if not bool(np.all(step[0] == 1)) or kept == len(chain) - 1 > 0:
            kept, best = len(chain), (scale, shift)
        value = result_of(reader)


def _affine_reader(
    ctx: CompilerContext, root: linalg.ops.GenericOp, weight: int, value: SSAValue, op: linalg.ops.GenericOp
) -> Affine | None:
    view = StructuredOp(op)
    if (
        len(op.results) != 1
        or view.reduction
        or result_of(op).type != value.type
        or not is_identity(view.output_maps[0])
    ):
        return None
    positions = [i for i, operand in enumerate(view.inputs) if operand is value]
    if not all(is_identity(view.input_maps[i]) for i in positions) or body_of(op).args[-1].first_use is not None:
        return None
    constants: dict[int, Array] = {}
    for i, operand in enumerate(view.inputs):
        if i not in positions:
            array = _broadcast_constant(ctx, operand, plain_loops(view.input_maps[i]), view.rank)
            if array is None:
                return None
            constants[i] = array
    made = affine_body(op, positions, constants)
    if (
        made is None
        or not made[0].any()
        or not _per_channel(root, weight, made[0])
        or not _per_channel(root, weight, made[1])
    ):
        return None
    return made if np.isfinite(made[0]).all() and np.isfinite(made[1]).all() else None


def _broadcast_constant(ctx: CompilerContext, value: SSAValue, loops: Sequence[int] | None, rank: int) -> Array | None:
    """A constant operand in f64, one dimension per loop (1 where it does not depend on the loop)."""
    if loops is None or not is_constant(value):
        return None
    array = _array_of(ctx, value).astype(np.float64)
    shape = [1] * rank
    order = sorted(range(len(loops)), key=lambda i: loops[i])
    for i in order:
        shape[loops[i]] = array.shape[i]
    return array.transpose(order).reshape(shape)


def _array_of(ctx: CompilerContext, value: SSAValue) -> Array:
    op = producer_of(value)
    assert type(op) is arith.ConstantOp
    scope = Scope(Program(ctx.resources))
    run_op(op, scope)
    return np.asarray(scope[value])


def _channel_axes(root: linalg.ops.GenericOp, weight: int) -> list[int]:
    """The dimensions of the result that traverse the weight's channels: in the weight's map as plain loops."""
    view = StructuredOp(root)
    plain = plain_loops(view.input_maps[weight]) or []
    written = plain_loops(view.output_maps[0]) or []
    return [axis for axis, loop in enumerate(written) if loop in plain]


def _per_channel(root: linalg.ops.GenericOp, weight: int, array: Array) -> bool:
    axes = _channel_axes(root, weight)
    return array.ndim == 0 or all(size == 1 or axis in axes for axis, size in enumerate(array.shape))


def _scale_weight(ctx: CompilerContext, root: linalg.ops.GenericOp, weight: int, scale: Array) -> None:
    view = StructuredOp(root)
    value, map_ = root.inputs[weight], view.input_maps[weight]
    written = plain_loops(view.output_maps[0]) or []
    axis_of = {loop: axis for axis, loop in enumerate(written)}
    if scale.ndim:
        weight_axes = [axis_of.get(loop) for loop in plain_loops(map_) or []]
        moved = scale.transpose(
            [axis for axis in weight_axes if axis is not None]
            + [axis for axis in range(scale.ndim) if axis not in weight_axes]
        )
        shape = [1 if axis is None else scale.shape[axis] for axis in weight_axes]
        scale = moved.reshape(shape)
    array = _array_of(ctx, value)
    at = Emitter.before(root)
    new = at.constant((array.astype(np.float64) * scale).astype(array.dtype), ctx, "scaled")
    old = producer_of(value)
    assert old is not None
    made = producer_of(new)
    assert made is not None
    carry([old], [made])
    set_input(root, weight, new, map_)


def _shifted(ctx: CompilerContext, at: Emitter, value: SSAValue, shift: Array) -> SSAValue:
    """`value + shift` as an elementwise op; the shift keeps only the dimensions along which it differs."""
    rank = len(shape_of(value))
    axes = [axis for axis, size in enumerate(shift.shape) if size != 1]
    narrow = shift.reshape([shift.shape[axis] for axis in axes]).astype(
        np.float32 if element_of(value) == f32 else np.float64
    )
    constant = at.constant(narrow, ctx, "shift")
    maps = [dims_map(rank, list(range(rank))), dims_map(rank, axes)]
    return at.elementwise(
        [value, constant], at.empty_like(value), lambda b: b.op(arith.AddfOp, b.args[0], b.args[1]), maps
    )


EXPORT = FoldScaleIntoWeightsPass
