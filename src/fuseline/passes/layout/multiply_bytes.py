"""multiply-bytes: products of centred bytes read the bytes as they are stored, on targets that multiply them by fours.

    x (i8) ──> x - zero point (i16) ──> product(i16, w: i8)    =>    u (i8) ──> product(u, w) ──> + offset * sum of w

                                                    u = x without a sign,  u + offset = x - zero point

The sum of a column's weights is known; where the offset is 0 (what comes out of a Relu) nothing is added. A zero point
that only the run knows is multiplied by that sum. Zeros in the padding are `-offset` in the bytes, where that is known.
What is stored with a sign is stored without one instead, by the op that makes it, and what else reads it turns the bit
again. What else reads the centred integers computes them from the bytes, so that only these are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import ModuleOp, i8, i32
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.passes import ModulePass

from fuseline.analysis.centred_bytes import Offset
from fuseline.analysis.indexing_maps import is_projected_permutation, loops_of
from fuseline.analysis.narrow_products import multiplies_narrow, unsigned_inputs
from fuseline.analysis.structured import (
    Kind,
    StructuredOp,
    is_constant,
    is_generic,
    kind,
    multiply_add_operands,
)
from fuseline.evaluation.program import Array, Program, Scope
from fuseline.ir.build import Body, Emitter, dims_map, element_of
from fuseline.ir.context import CompilerContext
from fuseline.ir.fast.direct import body_of, ops_of, replace_uses, result_of
from fuseline.ir.functions import functions
from fuseline.ir.provenance import carry
from fuseline.passes.cleanup.quantized_operands import bind
from fuseline.passes.layout.rewriting.bytes_without_sign import BytesWithoutSign, centred_where_read
from fuseline.passes.layout.rewriting.moved_bytes import MovedBytes, moved_bytes
from fuseline.passes.layout.rewriting.scope import Ledger, sweep

_PRODUCTS = (Kind.CONTRACTION, Kind.CONVOLUTION)


@dataclass(frozen=True)
class MultiplyBytesPass(ModulePass):
    """Multiplies bytes without a sign by constants with one, where the target has an instruction for it."""

    name = "multiply-bytes"

    def apply(self, ctx: CompilerContext, op: ModuleOp) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Rewrite the products of every function."""
        if not ctx.target.multiplies_bytes:
            return
        ledger = Ledger(op)
        for function in functions(op):
            block = body_of(function)
            _rewrite(ctx, [found for inner in ops_of(block) if (found := _product(inner)) is not None])
            sweep(block)
        ledger.close(ctx, self.name)


@dataclass(frozen=True)
class _Product:
    """A root, the positions of its image and of its constant, and what the image is."""

    root: linalg.ops.GenericOp
    image: int
    weight: int
    bytes_: MovedBytes


def _product(root: Operation) -> _Product | None:
    if not is_generic(root) or not multiplies_narrow(root) or unsigned_inputs(root) or kind(root) not in _PRODUCTS:
        return None
    view, sides = StructuredOp(root), multiply_add_operands(root)
    constants = [side for side in sides or () if is_constant(view.inputs[side])]
    if len(constants) != 1 or element_of(view.inputs[constants[0]]) != i8:
        return None
    (weight,), image = constants, next(side for side in sides or () if side not in constants)
    plain = all(isinstance(expr, AffineDimExpr) for expr in view.output_maps[0].results)
    if not plain or not is_projected_permutation(view.input_maps[weight]):
        return None
    found = moved_bytes(view.inputs[image])
    return _Product(root, image, weight, found) if found is not None else None


def _rewrite(ctx: CompilerContext, products: Sequence[_Product]) -> None:
    made = BytesWithoutSign()
    for product in products:
        total = _added(ctx, product, _multiplied(product, product.bytes_.stored(product.root, made)))
        replace_uses(result_of(product.root), total)
    for centred in dict.fromkeys(origin for product in products for origin in product.bytes_.origins):
        if centred.in_place:
            centred_where_read(centred, made.of(centred))


def _multiplied(product: _Product, value: SSAValue) -> SSAValue:
    """The sum of products over the bytes."""
    root, view = product.root, StructuredOp(product.root)

    def body(b: Body) -> list[SSAValue]:
        wide = [b.op(arith.ExtUIOp if i == product.image else arith.ExtSIOp, b.args[i], i32) for i in (0, 1)]
        return [b.op(arith.AddiOp, b.args[2], b.op(arith.MuliOp, *wide))]

    inputs = [value if i == product.image else view.inputs[i] for i in (0, 1)]
    made = Emitter.before(root).generic(inputs, view.outputs, view.maps, view.iterators, body)
    carry([root], [made])
    return result_of(made)


def _added(ctx: CompilerContext, product: _Product, total: SSAValue) -> SSAValue:
    """`total` and what the offset adds to each column."""
    offset, view = product.bytes_.offset, StructuredOp(product.root)
    if offset == Offset(0):
        return total
    map_ = view.input_maps[product.weight]
    loops = loops_of(map_.results)
    summed = tuple(axis for axis, loop in enumerate(loops) if loop in view.reduction or loop is None)
    sums = _array(ctx, view.inputs[product.weight]).sum(summed, dtype=np.int64)
    written = [expr.position for expr in view.output_maps[0].results if isinstance(expr, AffineDimExpr)]
    kept = [written.index(loop) for loop in loops if loop is not None and loop not in view.reduction]
    emit, rank = Emitter.before(product.root), len(written)
    known = sums if offset.zero is not None else sums * offset.number
    columns = emit.constant(known.astype(np.int32), ctx, "column_sums")
    inputs, maps = [total, columns], [dims_map(rank, range(rank)), dims_map(rank, kept)]
    if offset.zero is not None:
        inputs, maps = [*inputs, offset.zero], [*maps, dims_map(rank, ())]
    return emit.elementwise(inputs, emit.empty_like(total), partial(_sum_of, offset), maps)


def _sum_of(offset: Offset, b: Body) -> SSAValue:
    """An element of the total and what is added to it: a known number, or a column's sum times what the run knows."""
    total, column = b.args[:2]
    if offset.zero is not None:
        zero = b.op(arith.ExtSIOp if offset.signed else arith.ExtUIOp, b.args[2], i32)
        column = b.op(arith.MuliOp, column, b.op(arith.SubiOp, b.constant(offset.number, i32), zero))
    return b.op(arith.AddiOp, total, column)


def _array(ctx: CompilerContext, value: SSAValue) -> Array:
    scope = Scope(Program(ctx.resources))
    bind(value, scope)
    return np.asarray(scope[value])


EXPORT = MultiplyBytesPass
