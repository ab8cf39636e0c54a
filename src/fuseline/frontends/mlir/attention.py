"""Attention as the ops that it is: two products with a softmax between them, in f32."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import DYNAMIC_INDEX, IntegerType, ModuleOp, f32
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap

from fuseline.frontends.mlir.wrappers import unsupported
from fuseline.ir.build import PARALLEL, REDUCTION, Body, Emitter, element_of, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_empty
from fuseline.ir.fast.direct import ops_of
from fuseline.ir.linalg_ext import AttentionOp, ExtYieldOp, OnlineAttentionOp
from fuseline.ir.provenance import replace

Fold = Callable[[Body], SSAValue]


def expand_attention(module: ModuleOp) -> None:
    """Write out each attention. Raises FuselineError (E0306) for one whose maps are not loops, each of them once."""
    for op in list(module.walk()):
        if isinstance(op, AttentionOp):
            replace(op, [], [_Attention(op).result()])
        elif isinstance(op, OnlineAttentionOp):
            replace(op, [], _Attention(op).continued())


def _wide(b: Body, value: SSAValue) -> SSAValue:
    return value if value.type == f32 else b.op(arith.ExtFOp, value, f32)


def _product(b: Body) -> SSAValue:
    return b.op(arith.AddfOp, b.args[2], b.op(arith.MulfOp, _wide(b, b.args[0]), _wide(b, b.args[1])))


def _power(b: Body) -> SSAValue:
    return b.op(math.ExpOp, b.op(arith.SubfOp, b.args[0], b.args[1]))


def _scale(b: Body) -> SSAValue:
    return b.op(arith.MulfOp, b.args[0], b.args[1])


class _Attention:
    def __init__(self, op: AttentionOp | OnlineAttentionOp) -> None:
        self.op, self.emit = op, Emitter.before(op)
        self.query, self.key, self.value, self.scale = op.inputs[:4]
        self.mask = op.inputs[4] if len(op.inputs) == 5 else None
        self.positions = [self._loops(entry.data) for entry in op.indexing_maps.data]
        query, key, value, _, *mask = self.positions[: len(op.inputs)]
        self.written = self.positions[len(op.inputs)]
        self.softmax = [loop for loop in value if loop not in self.written]
        summed = [loop for loop in query if loop not in value and loop not in self.written]
        self.scores = [
            loop for loop in dict.fromkeys((*query, *key)) if loop not in summed and loop not in self.softmax
        ] + self.softmax
        self.summed = summed
        if any(loop not in self.scores for loop in (mask[0] if mask else ())) or any(
            loop not in (*self.scores, *value) for loop in self.written
        ):
            raise unsupported(op, "the maps of the mask or the result name a loop that the scores lack")

    def _loops(self, map_: AffineMap) -> list[int]:
        found = [result.position for result in map_.results if isinstance(result, AffineDimExpr)]
        if len(found) != len(map_.results) or len(set(found)) != len(found):
            raise unsupported(self.op, f"{map_} is no list of loops")
        return found

    def result(self) -> SSAValue:
        """The whole."""
        shares = self._softmax(self._scored())
        out = self._sum([(shares, self.scores), (self.value, self.positions[2])], self.written, self.softmax, _product)
        element = element_of(self.op.res[0])
        return (
            out
            if element == f32
            else self._each(
                [(out, self.written)], self.written, lambda b: b.op(arith.TruncFOp, b.args[0], element), element
            )
        )

    def continued(self) -> list[SSAValue]:
        """The sum of values, the largest score and the sum of powers, with those of before taken in."""
        (before, largest, total), (written, rows, others) = self.op.outputs, self.positions[-3:]
        kept = {loop for loop in self.scores if loop not in self.softmax}
        if set(rows) != kept or set(others) != kept or any(element_of(value) != f32 for value in self.op.outputs):
            raise unsupported(self.op, "the maximum and the sum are one f32 for each row of the scores")
        scores = (self._scored(), self.scores)
        new = self._sum(
            [scores], rows, self.softmax, lambda b: b.op(arith.MaximumfOp, b.args[1], b.args[0]), init=largest
        )
        powers = (self._each([scores, (new, rows)], self.scores, _power), self.scores)
        shrunk = (self._each([(largest, rows), (new, rows)], rows, _power), rows)
        old_sum, old = (
            self._each([(value, loops), shrunk], loops, _scale) for value, loops in ((total, others), (before, written))
        )
        sums = self._sum(
            [powers], others, self.softmax, lambda b: b.op(arith.AddfOp, b.args[1], b.args[0]), init=old_sum
        )
        return [
            self._sum([powers, (self.value, self.positions[2])], written, self.softmax, _product, init=old),
            new,
            sums,
        ]

    def _scored(self) -> SSAValue:
        """The scores as the softmax sees them."""
        raw = self._sum(
            [(self.query, self.positions[0]), (self.key, self.positions[1])], self.scores, self.summed, _product
        )
        return self._scaled(raw)

    def _scaled(self, raw: SSAValue) -> SSAValue:
        inputs = [(raw, self.scores), (self.scale, list[int]())]
        inputs += [(self.mask, self.positions[4])] if self.mask is not None else []
        return self._each(inputs, self.scores, self._score)

    def _score(self, b: Body) -> SSAValue:
        score = b.op(arith.MulfOp, b.args[0], _wide(b, b.args[1]))
        values: dict[SSAValue, SSAValue] = {self.op.body.block.args[0]: score}
        for inner in ops_of(self.op.body.block):
            if isinstance(inner, ExtYieldOp):
                score = values.get(inner.values[0], inner.values[0])
            else:
                b.add(inner.clone(values))
        if self.mask is None:
            return score
        if isinstance(element_of(self.mask), IntegerType):
            return b.op(arith.SelectOp, b.args[2], score, b.constant(float("-inf"), f32))
        return b.op(arith.AddfOp, score, _wide(b, b.args[2]))

    def _softmax(self, scores: SSAValue) -> SSAValue:
        rows = [loop for loop in self.scores if loop not in self.softmax]
        whole = (scores, self.scores)
        largest = self._sum(
            [whole], rows, self.softmax, lambda b: b.op(arith.MaximumfOp, b.args[1], b.args[0]), float("-inf")
        )
        powers = self._each([whole, (largest, rows)], self.scores, _power)
        total = self._sum(
            [(powers, self.scores)], rows, self.softmax, lambda b: b.op(arith.AddfOp, b.args[1], b.args[0])
        )
        return self._each(
            [(powers, self.scores), (total, rows)], self.scores, lambda b: b.op(arith.DivfOp, b.args[0], b.args[1])
        )

    # structured ops over named loops ----------------------------------------------------------------------------------

    def _map(self, loops: Sequence[int], read: Sequence[int]) -> AffineMap:
        return AffineMap(len(loops), 0, tuple(AffineExpr.dimension(loops.index(loop)) for loop in read))

    def _empty(self, loops: Sequence[int], element: Attribute = f32) -> SSAValue:
        """An empty tensor over `loops`, each as long as the operand that names it says."""
        shape: list[int] = []
        dynamic: list[SSAValue] = []
        for loop in loops:
            value, axis = next(
                (v, p.index(loop)) for v, p in zip(self.op.operands, self.positions, strict=True) if loop in p
            )
            shape.append(shape_of(value)[axis])
            dynamic += [self.emit.dim(value, axis)] if shape[-1] == DYNAMIC_INDEX else []
        return self.emit.add(create_empty(attributes.tensor_type(element, tuple(shape)), dynamic)).tensor

    def _each(
        self,
        inputs: Sequence[tuple[SSAValue, Sequence[int]]],
        loops: Sequence[int],
        body: Fold,
        element: Attribute = f32,
    ) -> SSAValue:
        maps = [*(self._map(loops, read) for _, read in inputs), AffineMap.identity(len(loops))]
        values = [value for value, _ in inputs]
        return self.emit.generic(
            values, [self._empty(loops, element)], maps, [PARALLEL] * len(loops), lambda b: [body(b)]
        ).results[0]

    def _sum(
        self,
        inputs: Sequence[tuple[SSAValue, Sequence[int]]],
        kept: Sequence[int],
        folded: Sequence[int],
        body: Fold,
        start: float = 0.0,
        init: SSAValue | None = None,
    ) -> SSAValue:
        loops = [*kept, *folded]
        maps = [*(self._map(loops, read) for _, read in inputs), self._map(loops, kept)]
        kinds = [PARALLEL] * len(kept) + [REDUCTION] * len(folded)
        values = [value for value, _ in inputs]
        begin = init if init is not None else self.emit.fill(start, self._empty(kept))
        return self.emit.generic(values, [begin], maps, kinds, lambda b: [body(b)]).results[0]
