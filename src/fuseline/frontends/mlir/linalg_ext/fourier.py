"""A stage of a Fourier transform: pairs of elements half a group apart, one of them turned, added and subtracted."""

from __future__ import annotations

from math import pi

from xdsl.dialects import arith, math, tensor
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from fuseline.frontends.mlir.linalg_ext.nest import Nest, loop
from fuseline.frontends.mlir.wrappers import unsupported
from fuseline.ir.build import Body, element_of, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.linalg_ext import FftOp

INDEX = attributes.INDEX


def fft(op: FftOp) -> list[SSAValue]:
    """Both parts after the stage. Raises FuselineError: E0306 for a stage or a size that the text does not say."""
    stage = op.inputs[0].owner
    length = shape_of(op.outputs[0])[-1]
    if (
        not isinstance(stage, arith.ConstantOp)
        or not isinstance(stage.value, IntegerAttr)
        or not 0 < stage.value.value.data < 32
    ):
        raise unsupported(op, "the stage is no number from 1 on")
    group = 1 << stage.value.value.data
    if length < 0 or length % group:
        raise unsupported(
            op, f"the last dimension has {length if length >= 0 else 'unknown'} elements, no groups of {group}"
        )
    loops = list(range(len(shape_of(op.outputs[0]))))
    nest = Nest(op, [(op.outputs[0], loops)])
    return [
        nest.each([], loops, element_of(value), lambda b, component=component: _component(b, op, group, component))
        for component, value in enumerate(op.outputs)
    ]


def _component(b: Body, op: FftOp, group: int, component: int) -> SSAValue:
    """The real part (0) or the imaginary part (1) of an element."""
    *lead, at = [loop(b, i) for i in range(len(shape_of(op.outputs[0])))]
    half = b.constant(group // 2, INDEX)
    inside = b.op(arith.RemUIOp, at, b.constant(group, INDEX))
    number = b.op(arith.RemUIOp, inside, half)
    lower = b.op(arith.AddiOp, b.op(arith.SubiOp, at, inside), number)
    upper = b.op(arith.AddiOp, lower, half)
    (left, real, imaginary) = (
        b.op(tensor.ExtractOp, value, [*lead, position], element_of(value))
        for value, position in ((op.outputs[component], lower), (op.outputs[0], upper), (op.outputs[1], upper))
    )
    cosine, sine = _turn(b, op, number, group)
    if component == 0:
        turned = b.op(arith.SubfOp, b.op(arith.MulfOp, real, cosine), b.op(arith.MulfOp, imaginary, sine))
    else:
        turned = b.op(arith.AddfOp, b.op(arith.MulfOp, real, sine), b.op(arith.MulfOp, imaginary, cosine))
    first = b.op(arith.CmpiOp, inside, half, "ult")
    return b.op(arith.SelectOp, first, b.op(arith.AddfOp, left, turned), b.op(arith.SubfOp, left, turned))


def _turn(b: Body, op: FftOp, number: SSAValue, group: int) -> tuple[SSAValue, SSAValue]:
    """Cosine and sine of the angle that pair `number` of a group of is turned by."""
    if len(op.inputs) == 3:
        real, imaginary = (b.op(tensor.ExtractOp, value, [number], element_of(value)) for value in op.inputs[1:])
        return real, imaginary
    element = element_of(op.outputs[0])
    counted = b.op(arith.SIToFPOp, b.op(arith.IndexCastOp, number, i64), element)
    angle = b.op(arith.MulfOp, counted, b.constant(-2 * pi / group, element))
    return b.op(math.CosOp, angle), b.op(math.SinOp, angle)
