"""Windows over dequantised images, channel by channel: the image stays in 16 bits, and its scale follows the window.

    depthwise(f32: (x - zx) * sx, w)     =>     depthwise(f32: f32(i16: x - zx), w * sx)
    max_pool(f32: (x - zx) * sx)         =>     max_pool(f32: f32(i16: x - zx)) * sx

These have no columns for the kernels that multiply integers, but what they read is the largest tensor of many a
quantised model, and takes half the memory so. A maximum of integers times a scale above 0 is the maximum of the
products, to the bit; sums round otherwise, no worse: not where numerics are strict.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import IntegerType, f32, i16
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineDimExpr, AffineExpr

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import (
    Kind,
    StructuredOp,
    kind,
    multiply_add_operands,
    producer_of,
    splat_value,
    yielded,
)
from fuseline.ir.build import Body, Emitter, element_of, shape_of
from fuseline.ir.dim import Dim
from fuseline.ir.fast.direct import body_of, ops_of, result_of
from fuseline.passes.cleanup.quantized_operands import IntegerMaker, QuantizedOperand, quantized_operand, replace_root
from fuseline.passes.cleanup.result_scales import Scale, scaled_by
from fuseline.passes.layout.rewriting.pads import high_of, low_of, pad, uniform_value

LEAST = -(1 << 15)
"""Below every centred integer of 8 bits: what pads a maximum."""

_PRODUCT_OPS, _MAXIMUM_OPS = 3, 2

_MAXIMA = (arith.MaximumfOp, arith.MaxSIOp, arith.MaxUIOp)


def keep_image_narrow(maker: IntegerMaker, root: linalg.ops.GenericOp) -> bool:
    """Rewrite `root` where it is a depthwise convolution or a maximum over windows in f32 of an image that is
    quantised; says whether it is."""
    if element_of(result_of(root)) != f32 or len(root.results) != 1:
        return False
    if kind(root) is Kind.DEPTHWISE and maker.ctx.target.numerics != "strict":
        return _depthwise(maker, root)
    return kind(root) is Kind.POOLING and is_maximum(root) and _pooling(maker, root)


# depthwise ------------------------------------------------------------------------------------------------------------


def _depthwise(maker: IntegerMaker, root: linalg.ops.GenericOp) -> bool:
    view, sides = StructuredOp(root), multiply_add_operands(root)
    if sides is None or len(ops_of(body_of(root))) != _PRODUCT_OPS or splat_value(root.outputs[0]) != 0:
        return False
    image = max(sides, key=lambda side: len(view.input_maps[side].results))
    weights = sides[1] if image == sides[0] else sides[0]
    operand = _quantized_image(view.inputs[image])
    if operand is None:
        return False
    emit = Emitter.before(root)
    inputs = list(view.inputs)
    inputs[image] = maker.operand(operand, root, i16).value
    inputs[weights] = scaled_by(emit, inputs[weights], Scale(_scale_of(operand)))

    def body(b: Body) -> list[SSAValue]:
        number = b.op(arith.SIToFPOp, b.args[image], f32)
        return [b.op(arith.AddfOp, b.args[2], b.op(arith.MulfOp, number, b.args[weights]))]

    total = result_of(emit.generic(inputs, view.outputs, view.maps, view.iterators, body))
    replace_root(root, total, [operand])
    return True


# maxima ---------------------------------------------------------------------------------------------------------------


def is_maximum(root: linalg.ops.GenericOp) -> bool:
    """Whether the body is `max(out, in)` and nothing else, from below everything: of floats, or of integers with a sign
    or without."""
    value, *others = yielded(root)
    return (
        not others
        and isinstance(value.owner, _MAXIMA)
        and len(ops_of(body_of(root))) == _MAXIMUM_OPS
        and set(value.owner.operands) == {body_of(root).args[0], body_of(root).args[-1]}
        and splat_value(root.outputs[0]) == least_of(value)
    )


def least_of(maximum: SSAValue) -> float:
    """What lies below everything that a maximum is taken of."""
    element = maximum.type
    if not isinstance(element, IntegerType):
        return -inf
    return -(1 << element.width.data - 1) if isinstance(maximum.owner, arith.MaxSIOp) else 0


def _pooling(maker: IntegerMaker, root: linalg.ops.GenericOp) -> bool:
    view = StructuredOp(root)
    found = image_and_border(ShapeAnalysis(maker.ctx.symbols), view)
    if found is None:
        return False
    source, border = found
    operand = _quantized_image(source)
    if operand is None or _scale_of(operand) <= 0:
        return False
    emit = Emitter.before(root)
    image = maker.operand(operand, border or root, i16).value
    if border is not None:
        image = pad(
            emit, image, low_of(border), high_of(border), emit.scalar(LEAST, i16), shape_of(border.result)
        ).result

    def body(b: Body) -> list[SSAValue]:
        return [b.op(arith.MaximumfOp, b.args[-1], b.op(arith.SIToFPOp, b.args[0], f32))]

    inputs: Sequence[SSAValue] = [image, *view.inputs[1:]]
    most = result_of(emit.generic(inputs, view.outputs, view.maps, view.iterators, body))
    moved = QuantizedOperand(operand.stored, (border, *operand.moves)) if border is not None else operand
    replace_root(root, scaled_by(emit, most, Scale(_scale_of(operand))), [moved])
    return True


def image_and_border(shapes: ShapeAnalysis, view: StructuredOp) -> tuple[SSAValue, tensor.PadOp | None] | None:
    """What a maximum over windows passes over, and the pad around it if any; None where a border can be the largest."""
    padded = producer_of(view.inputs[0])
    if not isinstance(padded, tensor.PadOp):
        return view.inputs[0], None
    return (padded.source, padded) if _pads_nothing(view, padded) and _meets_image(shapes, view, padded) else None


def _pads_nothing(view: StructuredOp, border: tensor.PadOp) -> bool:
    """Whether a border is below everything that a maximum meets: what that starts from."""
    value = uniform_value(border)
    return value is not None and splat_value(value) == splat_value(view.outputs[0])


def _meets_image(shapes: ShapeAnalysis, view: StructuredOp, border: tensor.PadOp) -> bool:
    """Whether no window lies in the border alone, so that it is never the largest: along each dimension the border is
    narrower than a window without gaps."""
    extents = view.loops(shapes)
    reaches = [_reach(view, expr, extents) for expr in view.input_maps[0].results]
    return all(
        isinstance(width, int) and (width == 0 or width < reach)
        for widths in (low_of(border), high_of(border))
        for width, reach in zip(widths, reaches, strict=True)
    )


def _reach(view: StructuredOp, expr: AffineExpr, extents: Sequence[Dim]) -> int:
    """Elements that a window has along a coordinate, each next to the one before; 0 where it has none such."""
    terms = [expr.lhs, expr.rhs] if isinstance(expr, AffineBinaryOpExpr) else [expr]
    window = [term.position for term in terms if isinstance(term, AffineDimExpr) and term.position in view.reduction]
    extent = extents[window[0]] if len(window) == 1 else 0
    return extent if isinstance(extent, int) else 0


# images ---------------------------------------------------------------------------------------------------------------


def _quantized_image(value: SSAValue) -> QuantizedOperand | None:
    """What `value` is made of, one scale for all of it."""
    operand = quantized_operand(value)
    usable = operand is not None and isinstance(operand.stored.scale, float) and not operand.is_constant
    return operand if usable else None


def _scale_of(operand: QuantizedOperand) -> float:
    assert isinstance(operand.stored.scale, float)
    return operand.stored.scale
