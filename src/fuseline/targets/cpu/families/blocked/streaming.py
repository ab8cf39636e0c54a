"""A dispatch with a softmax and the product behind it, rewritten to meet the streamed loop block by block
(`analysis/online_softmax.py`).

    m = max(x)   e = exp(x - m)   l = sum(e)   o = sum(e / l * v)
            becomes, for states M, L, O that go from block to block,

    m = max(M, max(x))    r = exp(M - m)    e = exp(x - m)    l = L r + sum(e)    o = O r + sum(e * v)
            and at the end  O / L

The states are uninitialised tensors of the rewritten entry function: what they hold, a block finds in scratch. M starts
from the lowest finite number rather than minus infinity, so that no state is ever the difference of two infinities. A
row of which all elements are minus infinity ends with L = 0 and O = 0, any other one with L of at least 1 or NaN; 0 / 0
then gives the NaN that the weights of such a row are. Where the loop never runs L is `NO_ELEMENTS`, and 0 over it is
the empty sum. What reads the total or the product otherwise gets what they stand for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import nan

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float64Type
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.analysis.online_softmax import OnlineSoftmax, online_softmax_of
from fuseline.analysis.softmax_roles import SoftmaxRoles
from fuseline.analysis.structured import StructuredOp, is_generic
from fuseline.analysis.weighted_sums import Generic, TensorDim, Weighing, through
from fuseline.dispatch.body_classes import BodyClasses
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, members_of, mismatch
from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import Body, Emitter, dims_map, element_of, shape_of
from fuseline.ir.fast.create import create_generic
from fuseline.targets.cpu.families.blocked.rewritten_classes import rewritten_classes

NO_ELEMENTS = -1.0
"""The total of a softmax over nothing, until the end."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A value that goes from one block of the streamed loop to the next: `state` before a block is `following` after
    it.

    `start` is every element before the first block, `unmoved` what it is where there is none. `in_place`: made point by
    point in the state's place.
    """

    state: SSAValue
    following: SSAValue
    start: float
    unmoved: float
    in_place: bool = False


@dataclass(frozen=True)
class Streamed:
    """The rewritten dispatch, its states, for each op of the chain the streamed one among its loops, and the classes of
    all its loops."""

    view: DispatchView
    carried: tuple[Carried, ...]
    loops: tuple[tuple[Generic, int], ...]
    classes: BodyClasses
    reductions: frozenset[Operation]


def streamed(view: DispatchView) -> Iterator[Streamed]:
    """A dispatch with one of its softmaxes evaluated as it streams, for each that fusion says can. The dispatch itself
    stays as it is.

    Raises FuselineError (E0302) where what it says of a softmax is not so.
    """
    for one in view.loops.online:
        entry = view.entry.clone()
        entry.attributes.pop(LOOPS_ATTRIBUTE, None)
        for old, new in zip(view.entry.walk(), entry.walk(), strict=True):
            new.location = old.location
        members = members_of(entry.body.block)
        chain = _chain_of(members, one.roles, view.entry.sym_name.data)
        carried = _Rewriting(chain).run()
        loops = [
            (op, loop) for member, loop in one.loops if is_generic(op := members[member]) and op.parent is not None
        ]
        new = DispatchView(entry)
        classes = rewritten_classes(view.loops, one, members, new, [value.state for value in carried])
        yield Streamed(new, carried, tuple(loops), classes, frozenset(chain.reductions))


def _chain_of(members: Sequence[Operation], roles: SoftmaxRoles[int], node: str) -> OnlineSoftmax:
    """The softmax whose members have these roles, as their bodies have it."""
    chain = online_softmax_of(members[roles.maximum])
    if chain is None:
        raise mismatch(f"member {roles.maximum} is the maximum of no softmax", node)
    if chain.roles != roles.mapped(members.__getitem__):
        raise mismatch(f"the softmax of member {roles.maximum} is not that of members {list(roles.all)}", node)
    return chain


class _Rewriting:
    """Rewrites one chain in place."""

    def __init__(self, chain: OnlineSoftmax) -> None:
        self.chain = chain
        self.rows_of_total = chain.total.kept
        self.rows_of_maximum = tuple(self._in_exponential(axis) for axis in chain.maximum.kept)

    def _in_exponential(self, axis: int) -> int:
        """The dimension of `e` behind one of `x`."""
        place: TensorDim | None = TensorDim(self.chain.source.value, axis)
        for op in self.chain.exponentials:
            assert place is not None
            place = through(op, place)
        assert place is not None
        return place.axis

    def run(self) -> tuple[Carried, ...]:
        """The states, from the ops that are put in place of the chain's."""
        chain = self.chain
        maximum, rescale = self._maximum()
        total = self._total(rescale)
        for weighing in chain.deferred:
            weighing.op.results[0].replace_all_uses_with(weighing.op.inputs[weighing.operand])
        product = self._product(rescale)
        self._finish(product, total)
        for weighing in reversed(chain.deferred):
            for op in (weighing.op, weighing.guard) if weighing.guard is not None else (weighing.op,):
                op.detach()
                op.erase()
        return maximum, total, product

    def _maximum(self) -> tuple[Carried, SSAValue]:
        """M and m, and r."""
        reduction = self.chain.maximum
        state = _state_of(reduction.op)
        emit = Emitter.after(reduction.op)
        rescale = emit.elementwise(
            [state, reduction.result],
            emit.empty_like(state),
            lambda b: b.op(math.ExpOp, b.op(arith.SubfOp, *b.args[:2])),
        )
        lowest = _lowest(element_of(state))
        return Carried(state, reduction.result, lowest, lowest), rescale

    def _total(self, rescale: SSAValue) -> Carried:
        """L and l."""
        reduction = self.chain.total
        state = _state_of(reduction.op)
        emit = Emitter.before(reduction.op)
        rank = len(shape_of(state))
        rows = [self.rows_of_total.index(axis) for axis in self.rows_of_maximum]
        maps = [AffineMap.identity(rank), dims_map(rank, rows)]
        scaled = emit.elementwise(
            [state, rescale], emit.empty_like(state), lambda b: b.op(arith.MulfOp, *b.args[:2]), maps
        )
        reduction.op.operands[len(reduction.op.inputs)] = scaled
        return Carried(state, reduction.result, 0.0, NO_ELEMENTS)

    def _product(self, rescale: SSAValue) -> Carried:
        """O and o."""
        op = self.chain.product
        state = Emitter.before(op).empty_like(op.outputs[0])
        emit = Emitter.after(op)
        whole = AffineMap.identity(len(shape_of(state)))

        def update(b: Body) -> SSAValue:
            return b.op(arith.AddfOp, b.args[0], b.op(arith.MulfOp, b.args[1], b.args[2]))

        following = emit.elementwise(
            [op.results[0], state, rescale],
            emit.empty_like(state),
            update,
            [whole, whole, self._rows_of_product(self.rows_of_maximum)],
        )
        return Carried(state, following, 0.0, 0.0, in_place=True)

    def _rows_of_product(self, rows: Sequence[int]) -> AffineMap:
        """How the product's space reads a value with these dimensions of `e`."""
        view = StructuredOp(self.chain.product)
        read, made = view.maps[self.chain.operand], view.output_maps[0]
        return dims_map(len(made.results), [made.results.index(read.results[axis]) for axis in rows])

    def _finish(self, product: Carried, total: Carried) -> None:
        """O / L in place of what read the product: the deferred ops, over its space."""
        following = product.following.owner
        assert isinstance(following, Operation)
        emit = Emitter.after(following)
        replaced = self.chain.total.result
        inside = {weighing.op for weighing in self.chain.deferred}
        if any(use.operation not in inside for use in replaced.uses):
            replaced.replace_uses_with_if(self._known_total(total.state), lambda use: use.operation not in inside)
        value = product.state if self.chain.deferred else self._or_nan(emit, product.state, total.state)
        for weighing in self.chain.deferred:
            value = self._deferred(emit, weighing, value, total.state)
        result = self.chain.product.results[0]
        result.replace_uses_with_if(value, lambda use: use.operation is not following)

    def _known_total(self, state: SSAValue) -> SSAValue:
        """The total for other readers, right behind where it was made."""
        return _true_total(Emitter.after(self.chain.total.op), state)

    def _or_nan(self, emit: Emitter, value: SSAValue, total: SSAValue) -> SSAValue:
        """The product where its weights are not divided by their total: NaN where they are."""

        def body(b: Body) -> SSAValue:
            return b.op(arith.SelectOp, _is(b, "oeq", b.args[1], 0.0), b.constant(nan, b.args[1].type), b.args[0])

        return emit.elementwise(
            [value, total],
            emit.empty_like(value),
            body,
            [AffineMap.identity(len(shape_of(value))), self._rows_of_product(self.rows_of_total)],
        )

    def _deferred(self, emit: Emitter, weighing: Weighing, value: SSAValue, total: SSAValue) -> SSAValue:
        """What was done to the weights, done to the product, with values per row beside it: the total, what is made of
        it, or whether it is NaN."""
        rank, view = len(shape_of(value)), StructuredOp(weighing.op)
        inputs, maps = (
            list(view.inputs),
            [self._map_of_product(map_, view.maps[weighing.operand]) for map_ in view.input_maps],
        )
        inputs[weighing.operand], maps[weighing.operand] = value, AffineMap.identity(rank)
        inputs = [total if one is self.chain.total.result else one for one in inputs]
        if weighing.guard is not None:
            flag = 1 - weighing.operand
            inputs[flag] = _of_rows(emit, weighing.guard, _true_total(emit, total))
            maps[flag] = self._rows_of_product(self.rows_of_total)
        whole = AffineMap.identity(rank)
        new = create_generic(
            inputs, [emit.empty_like(value)], weighing.op.body.clone(), [*maps, whole], ["parallel"] * rank
        )
        made = emit.add(new).results[0]
        return self._or_zero(emit, made, total) if weighing.rows else made

    def _map_of_product(self, map_: AffineMap, weights: AffineMap) -> AffineMap:
        """How the product's space reads what an op over the weights reads by `map_`; the weights themselves in any
        way."""
        axes = [weights.results.index(expr) for expr in map_.results]
        return AffineMap.identity(1) if len(axes) == len(weights.results) else self._rows_of_product(axes)

    def _or_zero(self, emit: Emitter, value: SSAValue, total: SSAValue) -> SSAValue:
        """0 for the sum over no weights at all, whatever their factor."""

        def body(b: Body) -> SSAValue:
            return b.op(arith.SelectOp, _is(b, "olt", b.args[1], 0.0), b.constant(0.0, b.args[0].type), b.args[0])

        maps = [AffineMap.identity(len(shape_of(value))), self._rows_of_product(self.rows_of_total)]
        return emit.elementwise([value, total], emit.empty_like(value), body, maps)


def _of_rows(emit: Emitter, guard: Generic, total: SSAValue) -> SSAValue:
    """What tells NaN among the weights, asked of the totals."""
    rank = len(shape_of(total))
    out = emit.empty_like(total, element_of(guard.results[0]))
    maps = [AffineMap.identity(rank)] * 2
    return emit.add(create_generic([total], [out], guard.body.clone(), maps, ["parallel"] * rank)).results[0]


def _true_total(emit: Emitter, total: SSAValue) -> SSAValue:
    """L as the model has it: NaN for a row of nothing but minus infinities, 0 for one without elements."""

    def body(b: Body) -> SSAValue:
        type_ = b.args[0].type
        some = b.op(arith.SelectOp, _is(b, "oeq", b.args[0], 0.0), b.constant(nan, type_), b.args[0])
        return b.op(arith.SelectOp, _is(b, "olt", b.args[0], 0.0), b.constant(0.0, type_), some)

    return emit.elementwise([total], emit.empty_like(total), body)


def _is(b: Body, relation: str, value: SSAValue, number: float) -> SSAValue:
    return b.op(arith.CmpfOp, value, b.constant(number, value.type), relation)


def _state_of(op: Generic) -> SSAValue:
    """An uninitialised tensor that the reduction starts from in place of its number."""
    state = Emitter.before(op).empty_like(op.outputs[0])
    op.operands[len(op.inputs)] = state
    return state


def _lowest(element: Attribute) -> float:
    return float(np.finfo(np.float64 if isinstance(element, Float64Type) else np.float32).min)
