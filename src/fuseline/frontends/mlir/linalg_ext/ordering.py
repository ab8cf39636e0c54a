"""Sorting and selection: every element's rank along the axis, the positions in the order of the ranks, and what stands
there.

    rank[i] = number of j that come before i;    position[r] = i where rank[i] == r;    sorted[r] = x[position[r]]

Of elements of which neither comes before the other, the former stays the former. A comparison that contradicts itself
(one of NaN) gives some order.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, i64
from xdsl.ir import Attribute, Block, SSAValue

from fuseline.frontends.mlir.linalg_ext.nest import Nest, inlined, loop
from fuseline.frontends.mlir.wrappers import unsupported
from fuseline.ir.build import Body, element_of, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_concat
from fuseline.ir.linalg_ext import SortOp, TopkOp, TopkV2Op

MOST_ELEMENTS = 1 << 14
"""Along the axis: each is compared with each."""


def sort(op: SortOp) -> list[SSAValue]:
    """All outputs in the order of the comparison."""
    return _Order(op, list(op.outputs), op.block).taken(op.outputs[0], list(op.outputs))


def top_k(op: TopkOp | TopkV2Op) -> list[SSAValue]:
    """As many elements as the output has room for, and where they stand. `topk` lets what is in the output compete,
    before the input."""
    axis = op.number("dimension")
    room = shape_of(op.outputs[0])[axis]
    if isinstance(op, TopkV2Op) and room > shape_of(op.inputs[0])[axis] != DYNAMIC_INDEX:
        raise unsupported(op, f"{room} of {shape_of(op.inputs[0])[axis]} elements are asked for")
    loops = list(range(len(shape_of(op.inputs[0]))))
    values, indices = op.inputs[0], _indices(op, loops) if len(op.outputs) == 2 else None
    if isinstance(op, TopkOp):
        values = _joined(op, [op.outputs[0], values])
        indices = _joined(op, [op.outputs[1], indices]) if indices is not None else None
    carried = [values] if indices is None else [values, indices]
    return _Order(op, [values], op.block).taken(op.outputs[0], carried)


def _indices(op: TopkOp | TopkV2Op, loops: Sequence[int]) -> SSAValue:
    if len(op.inputs) == 2:
        return op.inputs[1]
    element, axis = element_of(op.outputs[1]), op.number("dimension")
    return Nest(op, [(op.inputs[0], loops)]).each([], loops, element, lambda b: _number(b, loop(b, axis), element))


def _number(b: Body, index: SSAValue, element: Attribute) -> SSAValue:
    return index if isinstance(element, IndexType) else b.op(arith.IndexCastOp, index, element)


def _joined(op: TopkOp | TopkV2Op, parts: Sequence[SSAValue]) -> SSAValue:
    axis = op.number("dimension")
    sizes = list(shape_of(parts[-1]))
    along = [shape_of(part)[axis] for part in parts]
    sizes[axis] = DYNAMIC_INDEX if DYNAMIC_INDEX in along else sum(along)
    return (
        Nest(op, [])
        .emit.add(create_concat(list(parts), axis, attributes.tensor_type(element_of(parts[0]), tuple(sizes))))
        .result
    )


class _Order:
    """The order of `keys` along the dimension of `op`, by the comparison in `block`."""

    def __init__(self, op: SortOp | TopkOp | TopkV2Op, keys: Sequence[SSAValue], block: Block) -> None:
        self.op, self.axis, self.keys, self.block = op, op.number("dimension"), list(keys), block
        self.rank = len(shape_of(keys[0]))
        self.loops = list(range(self.rank))
        self.other = [self.rank if i == self.axis else i for i in self.loops]
        size = shape_of(keys[0])[self.axis]
        if size > MOST_ELEMENTS:
            raise unsupported(op, f"{size} elements are compared with each other, at most {MOST_ELEMENTS} are")
        self.nest = Nest(op, [(keys[0], self.loops), (keys[0], self.other)])

    def _ranks(self) -> SSAValue:
        count = len(self.keys)

        def body(b: Body) -> Sequence[SSAValue]:
            here, there = b.args[:count], b.args[count : 2 * count]
            before = inlined(b, self.block, [value for pair in zip(there, here, strict=True) for value in pair])[0]
            after = inlined(b, self.block, [value for pair in zip(here, there, strict=True) for value in pair])[0]
            former = b.op(arith.CmpiOp, loop(b, self.rank), loop(b, self.axis), "slt")
            first = b.op(arith.SelectOp, b.op(arith.CmpiOp, before, after, "eq"), former, before)
            return [b.op(arith.AddiOp, b.args[-1], b.op(arith.ExtUIOp, first, i64))]

        inputs = [(key, loops) for loops in (self.loops, self.other) for key in self.keys]
        return self.nest.fold(
            inputs, [(self.nest.filled(self.loops, i64, 0), self.loops)], self.loops, [self.rank], body
        )[0]

    def taken(self, shaped: SSAValue, values: Sequence[SSAValue]) -> list[SSAValue]:
        """`values` in that order, as many as `shaped` has."""
        ranks, last = self._ranks(), self.rank

        def body(b: Body) -> Sequence[SSAValue]:
            hit = b.op(arith.CmpiOp, loop(b, self.axis), b.op(arith.IndexCastOp, b.args[0], attributes.INDEX), "eq")
            position = b.op(arith.IndexCastOp, loop(b, last), i64)
            return [b.op(arith.MaxSIOp, b.args[1], b.op(arith.SelectOp, hit, position, b.constant(0, i64)))]

        nest = Nest(self.op, [(shaped, self.loops)])
        positions = nest.fold(
            [(ranks, self.other)], [(nest.filled(self.loops, i64, 0), self.loops)], self.loops, [last], body
        )[0]
        return [self._at(nest, value, positions) for value in values]

    def _at(self, nest: Nest, value: SSAValue, positions: SSAValue) -> SSAValue:
        def body(b: Body) -> SSAValue:
            position = [
                b.op(arith.IndexCastOp, b.args[0], attributes.INDEX) if i == self.axis else loop(b, i)
                for i in self.loops
            ]
            return b.op(tensor.ExtractOp, value, position, element_of(value))

        return nest.each([(positions, self.loops)], self.loops, element_of(value), body)
