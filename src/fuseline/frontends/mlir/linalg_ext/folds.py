"""Scans and the best element: folds along one dimension with a body of the program's own, taken in order."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IndexType
from xdsl.ir import SSAValue

from fuseline.frontends.mlir.linalg_ext.nest import Nest, inlined, loop
from fuseline.ir.build import Body, element_of, shape_of
from fuseline.ir.linalg_ext import ArgCompareOp, ScanOp


def scan(op: ScanOp) -> list[SSAValue]:
    """Each element from all that precede it, `out[i] = body(out[i - 1], in[i])`, and the last one. What is not
    inclusive begins with the accumulator and takes `in[i - 1]`."""
    axis, inclusive, element = op.number("dimension"), bool(op.number("inclusive")), element_of(op.inputs[0])
    rank = len(shape_of(op.inputs[0]))
    loops = list(range(rank))
    beside, other = [i for i in loops if i != axis], [rank if i == axis else i for i in loops]
    nest = Nest(op, [(op.inputs[0], loops), (op.inputs[0], other)])

    def body(b: Body) -> Sequence[SSAValue]:
        new, total = b.args
        taken = b.op(arith.CmpiOp, loop(b, rank), loop(b, axis), "sle" if inclusive else "slt")
        combined = inlined(b, op.block, [total, new])[0]
        if inclusive:
            first = b.op(arith.CmpiOp, loop(b, rank), b.constant(0, IndexType()), "eq")
            combined = b.op(arith.SelectOp, first, new, combined)
        return [b.op(arith.SelectOp, taken, combined, total)]

    start = (
        nest.filled(loops, element, 0)
        if inclusive
        else nest.each([(op.outputs[1], beside)], loops, element, lambda b: b.args[0])
    )
    out = nest.fold([(op.inputs[0], other)], [(start, loops)], loops, [rank], body)[0]
    return [out, _last(nest, out, axis, beside)]


def _last(nest: Nest, out: SSAValue, axis: int, beside: Sequence[int]) -> SSAValue:
    end = nest.emit.add(arith.SubiOp(nest.size(axis), nest.emit.index(1))).result

    def body(b: Body) -> SSAValue:
        position = [end if i == axis else loop(b, beside.index(i)) for i in range(len(beside) + 1)]
        return b.op(tensor.ExtractOp, out, position, element_of(out))

    return nest.each([], beside, element_of(out), body)


def arg_compare(op: ArgCompareOp) -> list[SSAValue]:
    """The outputs, in whose stead each element that comes before them is put, with its index."""
    axis, kind = op.number("dimension"), element_of(op.outputs[1])
    loops = list(range(len(shape_of(op.inputs[0]))))
    beside = [i for i in loops if i != axis]

    def body(b: Body) -> Sequence[SSAValue]:
        new, best, at = b.args[0], b.args[-2], b.args[-1]
        better = inlined(b, op.block, [new, best])[0]
        position = b.args[1] if len(op.inputs) == 2 else _index(b, len(beside))
        return [b.op(arith.SelectOp, better, new, best), b.op(arith.SelectOp, better, position, at)]

    def _index(b: Body, number: int) -> SSAValue:
        index = loop(b, number)
        index = b.op(arith.AddiOp, op.base[0], index) if op.base else index
        return index if isinstance(kind, IndexType) else b.op(arith.IndexCastOp, index, kind)

    nest = Nest(op, [(op.inputs[0], loops)])
    return nest.fold(
        [(value, loops) for value in op.inputs], [(value, beside) for value in op.outputs], beside, [axis], body
    )
