"""Contractions of dequantised tensors are computed in integers; the scales follow the sum.

    contraction(f32: (x - zx) * sx, (w - zw) * sw)     =>     contraction(i32: x - zx, w - zw) * (sx * sw)
    contraction(i32: x - zx, w - zw)                   =>     the same over i16 and i8

What is centred fits 16 bits, and constants mostly 8: they are stored so. Sums are exact (where they could overflow 32
bits the op stays as it is, unless it wraps already). A zero in the padding stays a zero. What else reads the
dequantised tensor reads the centred one, so that only one of them is stored.

Where only a constant operand is quantised, the product is in f32, but the constant stays in 8 bits
(`narrow_weights.py`).

Depthwise and narrow grouped convolutions have no columns for the kernels that multiply integers: they stay in f32, and
those in i32 become f32 where every sum is exact there. Windows over dequantised images read integers all the same
(`narrow_images.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import IntegerType, ModuleOp, TensorType, f32, i16, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.passes import ModulePass

from fuseline.analysis.indexing_maps import is_projected_permutation, used_dims
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.stored_integers import STORED_BITS
from fuseline.analysis.structured import (
    PRODUCTS,
    Kind,
    StructuredOp,
    is_constant,
    is_generic,
    kind,
    multiply_add_operands,
    splat_value,
)
from fuseline.ir import dim as d
from fuseline.ir.build import Body, Emitter, element_of
from fuseline.ir.context import CompilerContext
from fuseline.ir.fast.direct import body_of, erase, is_unused, ops_of, replace_uses, result_of
from fuseline.ir.functions import functions
from fuseline.ir.provenance import node_names
from fuseline.passes.cleanup.float_products import float_product, record_float_product, record_refused
from fuseline.passes.cleanup.narrow_images import keep_image_narrow
from fuseline.passes.cleanup.narrow_weights import keep_weights_narrow
from fuseline.passes.cleanup.quantized_operands import IntegerMaker, QuantizedOperand, quantized_operand, replace_root
from fuseline.passes.cleanup.result_scales import dequantized, result_scales, scaled
from fuseline.targets.target import Refusal

LEAST_GROUP_COLUMNS = 16
"""Output channels of a group from which on a grouped convolution is rows times columns."""

EXACT_IN_F32 = 1 << 24
"""Integers up to this size are f32 numbers, and so are their sums."""

_BODY_OPS = 3


@dataclass(frozen=True)
class MultiplyInIntegersPass(ModulePass):
    """Computes contractions and convolutions of dequantised operands in integers."""

    name = "multiply-in-integers"

    def apply(self, ctx: CompilerContext, op: ModuleOp) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Rewrite the functions that have tensors of 8 bits; in a program that quantises, say of the others, too, what
        runs in float."""
        for function in (one for one in functions(op) if ctx.records.quantize_nodes or _has_bytes(one)):
            maker = IntegerMaker(ctx)
            shapes = ShapeAnalysis(ctx.symbols)
            for inner in ops_of(body_of(function)):
                if is_generic(inner) and element_of(inner.outputs[0]) in (f32, i32):
                    _visit(ctx, maker, shapes, inner)
            _read_integers(maker)


def _has_bytes(function: FuncOp) -> bool:
    """Whether any tensor of `function` is stored in 8 bits or fewer: most programs have none, and are not looked at any
    closer."""
    block = body_of(function)
    values = (*block.args, *(result for inner in ops_of(block) for result in inner.results))
    elements = {value.type.get_element_type() for value in values if isinstance(value.type, TensorType)}
    return any(isinstance(element, IntegerType) and 1 < element.width.data <= STORED_BITS for element in elements)


@dataclass(frozen=True)
class _Product:
    """A root with two quantised operands."""

    root: linalg.ops.GenericOp
    sides: tuple[int, int]
    operands: tuple[QuantizedOperand, QuantizedOperand]
    extents: tuple[d.Dim, ...]


def _visit(ctx: CompilerContext, maker: IntegerMaker, shapes: ShapeAnalysis, root: linalg.ops.GenericOp) -> None:
    product = _product(shapes, root)
    if product is None:
        found = float_product(ctx.records, root)
        narrow = keep_image_narrow(maker, root) or keep_weights_narrow(maker, root)
        record_float_product(ctx.records, found, narrow=narrow)
        return
    refused = _in_integers(maker, product)
    if refused is None or (element_of(result_of(root)) == i32 and _in_f32(maker, product)):
        return
    names = node_names(root) or "an op"
    ctx.records.notes.append(f"{names}: not computed in integers of 16 bits ({refused.code}): {refused.detail}")
    if not keep_image_narrow(maker, root):
        record_refused(ctx.records, root, refused)


def _product(shapes: ShapeAnalysis, root: linalg.ops.GenericOp) -> _Product | None:
    view = StructuredOp(root)
    sides = multiply_add_operands(root) if view.reduction else None
    if sides is None or sides[0] == sides[1] or view.input_count != 2 or len(ops_of(body_of(root))) != _BODY_OPS:
        return None
    if kind(root) not in PRODUCTS:
        return None
    first, second = (quantized_operand(view.inputs[side]) for side in sides)
    if first is None or second is None:
        return None
    return _Product(root, sides, (first, second), view.loops(shapes))


def _in_integers(maker: IntegerMaker, product: _Product) -> Refusal | None:
    """Rewrite the root over narrow integers; or why not."""
    root = product.root
    if not _has_columns(product):
        return Refusal(
            "narrow-groups", f"fewer than {LEAST_GROUP_COLUMNS} output channels read the same input channels"
        )
    if element_of(result_of(root)) == i32:
        replace_root(root, _narrow_root(maker, product), product.operands)
        return None
    if splat_value(root.outputs[0]) != 0:
        return Refusal("not-from-zero", "the sum starts from something else than 0")
    scales = result_scales(maker, root, product.sides, product.operands)
    if isinstance(scales, Refusal):
        return scales
    largest = _largest(maker, product)
    if largest is None or largest >= 1 << 31:
        return Refusal("sum-overflow", "the sum may not fit 32 bits")
    total = _narrow_root(maker, product)
    replace_root(root, scaled(Emitter.before(root), total, scales), product.operands)
    return None


def _has_columns(product: _Product) -> bool:
    """Whether the root is rows times columns: a contraction always is, a convolution where a group has enough output
    channels."""
    view = StructuredOp(product.root)
    if kind(product.root) is not Kind.CONVOLUTION:
        return kind(product.root) is Kind.CONTRACTION
    image = next(side for side in product.sides if not is_projected_permutation(view.input_maps[side]))
    (filter_,) = (side for side in product.sides if side != image)
    read, taken, written = (
        used_dims(map_) for map_ in (view.input_maps[image], view.input_maps[filter_], view.output_maps[0])
    )
    grouped = any(product.extents[loop] != 1 for loop in read & taken & written)
    columns = d.lower_bound(d.product(product.extents[loop] for loop in (taken & written) - read))
    return not grouped or (columns or 0) >= LEAST_GROUP_COLUMNS


def _largest(maker: IntegerMaker, product: _Product) -> int | None:
    """A bound of every partial sum; None where the number of products is unknown."""
    steps = d.upper_bound(d.product(product.extents[loop] for loop in StructuredOp(product.root).reduction))
    ranges = [maker.range_of(operand) for operand in product.operands]
    return prod((max(abs(low), abs(high)) for low, high in ranges), start=steps) if steps is not None else None


def _narrow_root(maker: IntegerMaker, product: _Product) -> SSAValue:
    """The root over narrow integers, added up in i32."""
    root, emit = product.root, Emitter.before(product.root)
    exact = element_of(result_of(root)) == i32
    start = root.outputs[0] if exact else emit.fill(0, emit.empty_like(root.outputs[0], i32))

    def body(b: Body) -> list[SSAValue]:
        wide = [b.op(arith.ExtSIOp, argument, i32) for argument in b.args[:2]]
        return [b.op(arith.AddiOp, b.args[2], b.op(arith.MuliOp, *wide))]

    return _rooted(maker, product, start, i16, body)


def _in_f32(maker: IntegerMaker, product: _Product) -> bool:
    """Rewrite a root over integers to one over f32, if each sum is a number there; says whether it is."""
    root, emit = product.root, Emitter.before(product.root)
    largest = _largest(maker, product)
    if largest is None or largest > EXACT_IN_F32 or splat_value(root.outputs[0]) != 0:
        return False
    start = emit.fill(0.0, emit.empty_like(root.outputs[0], f32))
    total = _rooted(
        maker, product, start, f32, lambda b: [b.op(arith.AddfOp, b.args[2], b.op(arith.MulfOp, *b.args[:2]))]
    )
    back = emit.elementwise(
        [total], emit.empty_like(root.outputs[0], i32), lambda b: b.op(arith.FPToSIOp, b.args[0], i32)
    )
    replace_root(root, back, product.operands)
    return True


def _rooted(
    maker: IntegerMaker,
    product: _Product,
    start: SSAValue,
    element: Attribute,
    body: Callable[[Body], Sequence[SSAValue]],
) -> SSAValue:
    """The root's loops over other operands."""
    root, view = product.root, StructuredOp(product.root)
    inputs = [view.inputs[0], view.inputs[1]]
    for side, operand in zip(product.sides, product.operands, strict=True):
        inputs[side] = maker.operand(operand, root, element).value
    return result_of(Emitter.before(root).generic(inputs, [start], view.maps, view.iterators, body))


def _read_integers(maker: IntegerMaker) -> None:
    """What else reads a dequantised tensor, reads the integers that are made of it now."""
    for (op, element), integers in maker.made.items():
        assert is_generic(op)
        if op.parent is not None and not is_unused(op) and element == i16 and not is_constant(integers.value):
            value = dequantized(op, integers.value)
            replace_uses(result_of(op), value)
            erase(op)


EXPORT = MultiplyInIntegersPass
