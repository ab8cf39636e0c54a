"""Borders that repeat a tensor, as gathers of a test program; spelled in other ways than the ONNX frontend does."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from fuseline.analysis.border_modes import BorderMode
from fuseline.ir.build import Body, element_of
from tests.graphs.program import Program


def bordered(p: Program, x: SSAValue, low: Sequence[int], high: Sequence[int], mode: BorderMode) -> SSAValue:
    """`x`, of known sizes, with borders that one turn reaches."""
    sizes = [size for size in p.shape(x) if isinstance(size, int)]
    out = p.empty(*(size + a + b for size, a, b in zip(sizes, low, high, strict=True)))

    def body(b: Body) -> SSAValue:
        loops = [b.op(linalg.ops.IndexOp, axis) for axis in range(len(sizes))]
        places = [_folded(b, *parts, mode) for parts in zip(loops, sizes, low, strict=True)]
        return b.op(tensor.ExtractOp, x, places, element_of(x))

    return p.elementwise([], out, body)


def _folded(b: Body, loop: SSAValue, size: int, low: int, mode: BorderMode) -> SSAValue:
    at = b.op(arith.AddiOp, loop, _number(b, -low))
    if mode == "wrap":
        return b.op(arith.RemUIOp, b.op(arith.AddiOp, at, _number(b, size)), _number(b, size))
    last = _number(b, size - 1)
    if mode == "edge":
        return b.op(arith.MaxSIOp, b.op(arith.MinSIOp, at, last), _number(b, 0))
    return b.op(arith.SubiOp, last, _magnitude(b, b.op(arith.SubiOp, last, _magnitude(b, at))))


def _magnitude(b: Body, at: SSAValue) -> SSAValue:
    return b.op(arith.MaxSIOp, at, b.op(arith.SubiOp, _number(b, 0), at))


def _number(b: Body, value: int) -> SSAValue:
    return b.constant(value, IndexType())
