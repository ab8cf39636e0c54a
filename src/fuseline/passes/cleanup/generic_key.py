"""Keys of generics that do not see how they are written: in which order their loops stand, their operands, and the
operands of what commutes in their bodies.

    add(%a, %b)                                              (i, j) -> %x[i, j]  written to [i, j]
    add(%b, %a)          one value                           (p, q) -> %x[q, p]  written to [q, p]      one value

Loops are numbered as the first result has them, and those that are summed behind, by where they read. What a body
computes is an expression over elements (a value, at a place); expressions are numbered once each. Sums may come in
another order for it, which is nobody's promise.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, linalg, math
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from fuseline.analysis.combining import is_ordered
from fuseline.analysis.structural_key import AttributeNumbers
from fuseline.analysis.structured import StructuredOp
from fuseline.ir.fast.direct import operands_of, ops_of
from fuseline.ir.scalar_ops import COMMUTATIVE

_SCALAR_DIALECTS = frozenset({arith.Arith.name, math.Math.name})


class GenericKeys:
    """Makes keys of generics with the numbers of attributes that others share."""

    def __init__(self, numbers: AttributeNumbers) -> None:
        self._numbers = numbers
        self._expressions: dict[Hashable, int] = {}

    def outside(self, op: linalg.ops.GenericOp) -> Hashable:
        """What generics of one value have in common at a glance."""
        types = tuple([self._numbers.number(result.type) for result in op.results])
        return op.name, frozenset(map(id, op.inputs)), types, self._numbers.of(op.attributes)

    def key(self, op: linalg.ops.GenericOp) -> Hashable | None:
        """A key of all of it; None where the body does more than compute elements."""
        view = StructuredOp(op)
        order = _loop_order(view)
        made = _Body(self._number, self._numbers, order).results(view)
        if made is None:
            return None
        kinds = tuple([view.iterators[loop] for loop in order])
        return self.outside(op), kinds, self._outputs(view, order), self._covered(view, order), made

    def _number(self, expression: Hashable) -> int:
        return self._expressions.setdefault(expression, len(self._expressions))

    def _outputs(self, view: StructuredOp, order: Sequence[int]) -> Hashable:
        """Where results go, and what they start from: nothing but its size, where the body does not read it."""
        first = len(view.operands) - len(view.output_maps)
        outs = zip(view.operands[first:], view.output_maps, view.body.args[first:], strict=True)
        return tuple([(_start(value, argument), _positions(map_.results, order)) for value, map_, argument in outs])

    def _covered(self, view: StructuredOp, order: Sequence[int]) -> Hashable:
        """The operands that say how far the loops run, if results alone do not."""
        told = {e.position for map_ in view.output_maps for e in map_.results if isinstance(e, AffineDimExpr)}
        if len(told) == len(order):
            return ()
        return frozenset(
            (id(value), _positions(map_.results, order)) for value, map_ in zip(view.operands, view.maps, strict=True)
        )


def _start(value: SSAValue, argument: SSAValue) -> int | str:
    static = isinstance(value.type, TensorType) and DYNAMIC_INDEX not in value.type.get_shape()
    return "unread" if argument.first_use is None and static else id(value)


def _positions(results: Sequence[AffineExpr], order: Sequence[int]) -> Hashable:
    """Coordinates in loops that are numbered as in `order`."""
    new = [AffineExpr.dimension(order.index(loop)) for loop in range(len(order))]
    return tuple([expression.replace_dims_and_symbols(new, []) for expression in results])


def _loop_order(view: StructuredOp) -> list[int]:
    """The loops as results have them; then the others, by where they read, or as they come where that matters."""
    written = [e.position for map_ in view.output_maps for e in map_.results if isinstance(e, AffineDimExpr)]
    known = list(dict.fromkeys(written))
    rest = [loop for loop in range(len(view.iterators)) if loop not in known]
    if is_ordered(view):
        return [*known, *rest]
    return [*known, *sorted(rest, key=lambda loop: _reading(view, loop))]


def _reading(view: StructuredOp, loop: int) -> list[tuple[int, int]]:
    """The values and dimensions that a loop reads along."""
    return sorted(
        (id(value), axis)
        for value, map_ in zip(view.operands, view.maps, strict=True)
        for axis, expression in enumerate(map_.results)
        if loop in expression.used_dims()
    )


@dataclass
class _Body:
    """The expressions of one body; `order` is that of the loops."""

    number: Callable[[Hashable], int]
    attributes: AttributeNumbers
    order: Sequence[int]

    def results(self, view: StructuredOp) -> tuple[int, ...] | None:
        """The numbers of what the body yields, None where it does more than compute."""
        known = self._elements(view)
        *ops, end = ops_of(view.body)
        for op in ops:
            if op.regions or not self._computes(op):
                return None
            expression = self._expression(op, known)
            for number, result in enumerate(op.results):
                known[id(result)] = self.number((expression, number))
        return tuple([self._of(value, known) for value in operands_of(end)])

    def _computes(self, op: Operation) -> bool:
        return isinstance(op, linalg.ops.IndexOp) or op.name.partition(".")[0] in _SCALAR_DIALECTS

    def _elements(self, view: StructuredOp) -> dict[int, int]:
        """The arguments: elements of operands at places, and what results start from, by its number."""
        first = len(view.operands) - len(view.output_maps)
        read = zip(view.operands, view.maps, view.body.args, strict=True)
        return {
            id(argument): self.number(
                ("element", id(value), _positions(map_.results, self.order)) if i < first else ("start", i - first)
            )
            for i, (value, map_, argument) in enumerate(read)
        }

    def _expression(self, op: Operation, known: dict[int, int]) -> Hashable:
        if isinstance(op, linalg.ops.IndexOp):
            return op.name, self.order.index(op.dim.value.data)
        operands = [self._of(value, known) for value in operands_of(op)]
        if type(op) in COMMUTATIVE:
            operands.sort()
        types = tuple([self.attributes.number(result.type) for result in op.results])
        said = self.attributes.of(op.properties), self.attributes.of(op.attributes)
        return op.name, tuple(operands), said, types

    def _of(self, value: SSAValue, known: dict[int, int]) -> int:
        found = known.get(id(value))
        return found if found is not None else self.number(("outside", id(value)))
