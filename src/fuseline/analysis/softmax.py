"""Softmax as models write it, recognised by its maps and bodies: what its parts may take for granted.

    m = max(x)      e = exp(x - m)      s = sum(e)      y = e / s        all along the same dimensions

Whatever the data, `x - m` is at most 0 or NaN. Where the maximum starts from minus infinity it is one of the elements,
so `s` holds `exp(0) = 1` and is at least 1, at most the number of elements, or NaN: `1 / s` neither overflows nor loses
digits. And where `e` is read by `s` and the quotients alone, a NaN among the elements makes `s` NaN and with it every
`y`, whether or not the maximum was NaN too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

from xdsl.dialects import arith, linalg, math
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.structured import StructuredOp, is_generic, splat_value, yielded


@dataclass(frozen=True)
class SoftmaxFacts:
    """Ops of bodies.

    Attributes:
        exponents: `math.exp` of an argument that is at most 0, or NaN.
        quotients: `arith.divf` whose divisor is at least 1 and below 2^64, or NaN.
        maxima: maxima that may give any value, instead of NaN, for elements with a NaN among them.
    """

    exponents: set[Operation] = field(default_factory=set[Operation])
    quotients: set[Operation] = field(default_factory=set[Operation])
    maxima: set[Operation] = field(default_factory=set[Operation])


@dataclass(frozen=True)
class Reduction:
    """A reduction of one operand, element by element; `kept[j]` is the operand's dimension behind dimension `j` of the
    result."""

    op: linalg.ops.GenericOp
    combine: Operation
    source: SSAValue
    kept: tuple[int, ...]

    @property
    def result(self) -> OpResult:
        """What it makes."""
        return self.op.results[0]

    def start(self) -> float | int | None:
        """The number it starts from."""
        return splat_value(self.op.outputs[0])


def softmax_facts(ops: Iterable[Operation]) -> SoftmaxFacts:
    """What holds of every softmax among `ops`."""
    facts = SoftmaxFacts()
    for op in ops:
        if is_generic(op):
            for inner in op.body.block.ops:
                if isinstance(inner, math.ExpOp):
                    _add(facts, op, inner)
    return facts


def _add(facts: SoftmaxFacts, op: linalg.ops.GenericOp, exponent: math.ExpOp) -> None:
    maximum = shifted_by_maximum(op, exponent.operands[0])
    if maximum is None:
        return
    facts.exponents.add(exponent)
    if yielded(op) != (exponent.results[0],) or maximum.start() != -inf:
        return
    total = _total(op, maximum)
    quotients = _quotients(op.results[0], total) if total is not None else []
    facts.quotients.update(quotients)
    owners = {quotient.parent_op() for quotient in quotients}
    readers = {use.operation for use in op.results[0].uses}
    alone = {use.operation for use in maximum.result.uses} == {op} and len(
        list(_argument(op, maximum.result).uses)
    ) == 1
    divided = (op.results[0], total.result) if total is not None else ()
    if total is not None and alone and readers == {total.op, *owners} and all(_reads_once(o, divided) for o in owners):
        facts.maxima.add(maximum.combine)


def shifted_by_maximum(op: linalg.ops.GenericOp, argument: SSAValue) -> Reduction | None:
    """The maximum `m` where `argument` is `x - m` at matching points."""
    if not isinstance(argument, OpResult) or not isinstance(argument.op, arith.SubfOp):
        return None
    sides = [_operand(op, side) for side in argument.op.operands]
    if sides[0] is None or sides[1] is None:
        return None
    (x, x_map), (m, m_map) = sides[0], sides[1]
    found = reduction_of(m, (arith.MaximumfOp, arith.MaxnumfOp))
    return found if found is not None and found.source is x and matches(found, x_map, m_map) else None


def _operand(op: linalg.ops.GenericOp, value: SSAValue) -> tuple[SSAValue, AffineMap] | None:
    """The operand, and its map, behind an argument of the body."""
    if not isinstance(value, BlockArgument) or value.owner is not op.body.block or value.index >= len(op.inputs):
        return None
    return op.inputs[value.index], StructuredOp(op).maps[value.index]


def _argument(op: linalg.ops.GenericOp, value: SSAValue) -> BlockArgument:
    return op.body.block.args[list(op.inputs).index(value)]


def reduction_of(value: SSAValue, kinds: tuple[type[Operation], ...]) -> Reduction | None:
    """The reduction that makes `value` by one op of `kinds` from each element of one operand."""
    if not isinstance(value, OpResult) or not is_generic(value.op):
        return None
    op, view = value.op, StructuredOp(value.op)
    made = yielded(op)
    if (
        len(op.inputs) != 1
        or len(op.outputs) != 1
        or not isinstance(made[0], OpResult)
        or not isinstance(made[0].op, kinds)
    ):
        return None
    if set(made[0].op.operands) != set(op.body.block.args) or not all(is_plain(map_) for map_ in view.maps):
        return None
    loop_of = {expr: i for i, expr in enumerate(view.maps[0].results)}
    if not all(expr in loop_of for expr in view.maps[1].results):
        return None
    return Reduction(op, made[0].op, op.inputs[0], tuple(loop_of[expr] for expr in view.maps[1].results))


def is_plain(map_: AffineMap) -> bool:
    """Whether every coordinate is a loop of its own."""
    return all(isinstance(expr, AffineDimExpr) for expr in map_.results) and len(set(map_.results)) == len(map_.results)


def matches(reduction: Reduction, whole: AffineMap, reduced: AffineMap) -> bool:
    """Whether an op that reads the operand by `whole` and the result by `reduced` sees the result of the element's own
    row."""
    if not is_plain(whole) or len(reduced.results) != len(reduction.kept):
        return False
    return all(
        expr == whole.results[dimension] for expr, dimension in zip(reduced.results, reduction.kept, strict=True)
    )


def _total(op: linalg.ops.GenericOp, maximum: Reduction) -> Reduction | None:
    """The sum of what `op` makes, along the very dimensions of `maximum`, from 0."""
    view, made = StructuredOp(op), op.results[0]
    read = view.maps[list(op.inputs).index(maximum.source)]
    kept_loops = {read.results[dimension] for dimension in maximum.kept}
    for use in made.uses:
        found = reduction_of(use.operation.results[0], (arith.AddfOp,)) if use.operation.results else None
        if found is not None and found.source is made and found.start() == 0:
            loops = view.output_maps[0].results
            if (
                is_plain(view.output_maps[0])
                and {loops[i] for i in found.kept} == kept_loops
                and len(loops) == view.rank
            ):
                return found
    return None


def _quotients(made: SSAValue, total: Reduction) -> list[Operation]:
    """The divisions of `made` by its total."""
    found: list[Operation] = []
    for use in total.result.uses:
        op = use.operation
        for inner in op.body.block.ops if is_generic(op) else ():
            if not isinstance(inner, arith.DivfOp):
                continue
            sides = [_operand(op, side) for side in inner.operands]  # pyright: ignore[reportArgumentType]
            if sides[0] is None or sides[1] is None or sides[0][0] is not made or sides[1][0] is not total.result:
                continue
            if matches(total, sides[0][1], sides[1][1]):
                found.append(inner)
    return found


def _reads_once(op: Operation | None, values: Sequence[SSAValue]) -> bool:
    """Whether a body does one thing with each of `values`: an exponential and its sum are divided, and that is all."""
    assert op is not None and is_generic(op)
    read = [argument for argument, value in zip(op.body.block.args, op.operands, strict=True) if value in values]
    return len(read) == len(values) and all(len(list(argument.uses)) == 1 for argument in read)
