"""Sorting and selection: every element's rank along the axis, the positions in the order of the ranks, and what stands
there.

    rank[i] = number of j that come before i;    position[r] = i where rank[i] == r;    sorted[r] = x[position[r]]

Of elements of which neither comes before the other, the former stays the former. A comparator that compares keys
(`comparators.py`) is read as those keys, of floats NaN being the largest; any other one by what it says of each two
elements, and one that contradicts itself gives some order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, i64
from xdsl.ir import Attribute, Block, SSAValue

from fuseline.frontends.mlir.linalg_ext.comparators import Key, keys_of
from fuseline.frontends.mlir.linalg_ext.nest import Nest, Placed, inlined, loop
from fuseline.frontends.mlir.wrappers import unsupported
from fuseline.ir.build import Body, element_of, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_concat
from fuseline.ir.linalg_ext import SortOp, TopkOp, TopkV2Op
from fuseline.ir.order_bodies import comes_before, ordered_type

MOST_ELEMENTS = 1 << 14
"""Along the axis, where each is compared with each."""


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
    """The order of `values` along the dimension of `op`, by the comparison in `block`."""

    def __init__(self, op: SortOp | TopkOp | TopkV2Op, values: Sequence[SSAValue], block: Block) -> None:
        self.op, self.axis, self.values, self.block = op, op.number("dimension"), list(values), block
        self.rank = len(shape_of(values[0]))
        self.loops = list(range(self.rank))
        self.other = [self.rank if i == self.axis else i for i in self.loops]
        self.keys = keys_of(block)
        size = shape_of(values[0])[self.axis]
        if size > MOST_ELEMENTS and not self.keys:
            raise unsupported(op, f"{size} elements are compared with each other, at most {MOST_ELEMENTS} are")
        self.nest = Nest(op, [(values[0], self.loops), (values[0], self.other)])

    def _numbers(self, key: Key) -> SSAValue:
        """A key of all elements."""
        placed = [(value, self.loops) for value in self.values]
        wide = ordered_type(key.value.type)
        return self.nest.each(placed, self.loops, wide, lambda b: key.emit(b, self.block, b.args[: len(placed)]))

    def _ranks(self, limit: int | None) -> SSAValue:
        return (
            self._counted([self._numbers(key) for key in self.keys], self._by_keys(limit))
            if self.keys
            else (self._counted(self.values, self._as_written))
        )

    def _counted(self, compared: Sequence[SSAValue], body: Callable[[Body], Sequence[SSAValue]]) -> SSAValue:
        inputs = [(one, loops) for one in compared for loops in (self.other, self.loops)]
        return self.nest.fold(
            inputs, [(self.nest.filled(self.loops, i64, 0), self.loops)], self.loops, [self.rank], body
        )[0]

    def _former(self, b: Body) -> SSAValue:
        return b.op(arith.CmpiOp, loop(b, self.rank), loop(b, self.axis), "slt")

    def _by_keys(self, limit: int | None) -> Callable[[Body], Sequence[SSAValue]]:
        def body(b: Body) -> Sequence[SSAValue]:
            *elements, total = b.args
            first = comes_before(b, elements[::2], elements[1::2], self._former(b))
            counted = b.op(arith.AddiOp, total, b.op(arith.ExtUIOp, first, i64))
            return [counted if limit is None else b.op(arith.MinSIOp, counted, b.constant(limit, i64))]

        return body

    def _as_written(self, b: Body) -> Sequence[SSAValue]:
        *elements, total = b.args
        there, here = elements[::2], elements[1::2]
        before = inlined(b, self.block, [value for pair in zip(there, here, strict=True) for value in pair])[0]
        after = inlined(b, self.block, [value for pair in zip(here, there, strict=True) for value in pair])[0]
        same = b.op(arith.CmpiOp, before, after, "eq")
        first = b.op(arith.SelectOp, same, self._former(b), before)
        return [b.op(arith.AddiOp, total, b.op(arith.ExtUIOp, first, i64))]

    def taken(self, shaped: SSAValue, values: Sequence[SSAValue]) -> list[SSAValue]:
        """`values` in that order, as many as `shaped` has."""
        nest, room = Nest(self.op, [(shaped, self.loops)]), shape_of(shaped)[self.axis]
        if room == 1 and len(self.keys) == 1:
            first = self._first(), [i for i in self.loops if i != self.axis]
            return [self._at(nest, value, first) for value in values]
        positions = self._positions(nest, shaped, room), self.loops
        return [self._at(nest, value, positions) for value in values]

    def _first(self) -> SSAValue:
        """Which element is the first of all, by the one key; without the axis."""
        numbers, kept = self._numbers(self.keys[0]), [i for i in self.loops if i != self.axis]
        kind = ordered_type(self.keys[0].value.type)

        def body(b: Body) -> Sequence[SSAValue]:
            number, best, at = b.args
            better = b.op(arith.CmpiOp, number, best, "slt")
            here = b.op(arith.IndexCastOp, loop(b, len(kept)), i64)
            return [b.op(arith.SelectOp, better, number, best), b.op(arith.SelectOp, better, here, at)]

        most = (1 << (kind.width.data - 1)) - 1
        inits = [(self.nest.filled(kept, kind, most), kept), (self.nest.filled(kept, i64, 0), kept)]
        return self.nest.fold([(numbers, self.loops)], inits, kept, [self.axis], body)[1]

    def _positions(self, nest: Nest, shaped: SSAValue, room: int) -> SSAValue:
        """Which elements are the first, as many as `shaped` has."""
        last = self.rank
        whole = shaped is self.values[0] or room == DYNAMIC_INDEX
        ranks = self._ranks(None if whole else max(room, 1))

        def body(b: Body) -> Sequence[SSAValue]:
            hit = b.op(arith.CmpiOp, loop(b, self.axis), b.op(arith.IndexCastOp, b.args[0], attributes.INDEX), "eq")
            position = b.op(arith.IndexCastOp, loop(b, last), i64)
            found = b.op(arith.SelectOp, hit, position, b.constant(0, i64))
            # of a comparator that contradicts itself several elements may have one rank
            return [b.op(arith.AddiOp if self.keys else arith.MaxSIOp, b.args[1], found)]

        zeros = [(nest.filled(self.loops, i64, 0), self.loops)]
        return nest.fold([(ranks, self.other)], zeros, self.loops, [last], body)[0]

    def _at(self, nest: Nest, value: SSAValue, positions: Placed) -> SSAValue:
        def body(b: Body) -> SSAValue:
            position = [
                b.op(arith.IndexCastOp, b.args[0], attributes.INDEX) if i == self.axis else loop(b, i)
                for i in self.loops
            ]
            return b.op(tensor.ExtractOp, value, position, element_of(value))

        return nest.each([positions], self.loops, element_of(value), body)
