"""`while`: a loop whose trips are counted is a loop of the program (`frontends/onnx/loops.py`); a short one, and one
whose condition can be computed while reading, is written out. Any other one the host repeats (`repeats.py`).

What is read row by row and what is written row by row, as `jax.lax.scan` does, is handed to the loop as rows and
stacks, so that no trip copies a whole tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, mlir_element
from fuseline.frontends.onnx.emission import mapped, reshape
from fuseline.frontends.onnx.loops import CountedLoop, Rows, Stack, StackRow, StepInputs, StepResult
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known, view
from fuseline.frontends.stablehlo.hlo import Hlo, scalar_number
from fuseline.frontends.stablehlo.registry import hlo_op
from fuseline.frontends.stablehlo.repeats import repeat_on_host
from fuseline.frontends.stablehlo.trips import Trips, row_written, rows_read
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim
from fuseline.ir.hlo.ops import HloOp

WRITTEN_OUT_OPS = 256
"""Ops that a loop is rather written out to than run as a loop."""

MOST_OPS = 10_000
"""Ops that a loop may be written out to where it cannot run as one."""


MOST_OPS_IN_DOUBT = 2_000
"""Ops that are written out of a loop whose end nobody knows before it is reached."""


@hlo_op("while")
def while_op(hlo: Hlo) -> list[Tensor]:
    """The arguments behind the last trip; the host's where how often it goes round depends on what is computed, or
    what it does has no form as a loop and it is too long to write out.

    Raises FuselineError: E0302 for other regions, E0306 for a loop without end.
    """
    if len(hlo.op.regions) != 2 or any(len(region.blocks) != 1 for region in hlo.op.regions):
        raise FuselineError("E0302", f"{hlo.op.name} must have two regions of one block", node=hlo.location)
    trips = Trips(hlo)
    ops = sum(1 for _ in hlo.op.walk()) - 1
    if trips.count == 0:
        return hlo.inputs
    if trips.count is None or (isinstance(trips.count, int) and trips.count * ops <= WRITTEN_OUT_OPS):
        return _written_out(hlo, ops, known_count=trips.count is not None)
    mark, nodes = hlo.program.mark(), len(hlo.importer.ctx.records.source_nodes)
    try:
        return _counted(hlo, trips, trips.count)
    except NoNativeLowering as error:
        hlo.program.rollback(mark)
        del hlo.importer.ctx.records.source_nodes[nodes:]
        if not isinstance(trips.count, int) or trips.count * ops > MOST_OPS:
            return repeat_on_host(hlo, f"{trips.count} trips, which have no form as a loop: {error}")
    return _written_out(hlo, ops, known_count=True)


# -- written out -------------------------------------------------------------------------------------------------------


def _written_out(hlo: Hlo, ops: int, *, known_count: bool) -> list[Tensor]:
    start = hlo.program.mark()
    states, written = hlo.inputs, 0
    cond, body = (region.block for region in hlo.op.regions)
    while True:
        (flag,) = hlo.importer.block(cond, hlo.scope.inside(cond, states))
        truth = scalar_number(flag)
        if truth is None:
            hlo.program.rollback(start)
            return repeat_on_host(hlo, "how often it goes round depends on what is computed")
        if not truth:
            return list(states)
        written += max(ops, 1)
        if written > (MOST_OPS if known_count else MOST_OPS_IN_DOUBT):
            if not any(argument.uses for argument in cond.args):
                raise hlo.refusal("its condition stays true")
            hlo.program.rollback(start)
            return repeat_on_host(hlo, "it goes round too often to be written out")
        states = hlo.importer.block(body, hlo.scope.inside(body, states))


# -- as a loop ---------------------------------------------------------------------------------------------------------


@dataclass
class _Plan:
    """What each value of the loop is: operands of the counted loop, and where its body finds them."""

    rows: list[Rows] = field(default_factory=list[Rows])
    row_of: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    slices: dict[Operation, int] = field(default_factory=dict[Operation, int])
    wholes: list[Tensor] = field(default_factory=list[Tensor])
    whole_of: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    fixed: dict[SSAValue, Tensor] = field(default_factory=dict[SSAValue, Tensor])
    states: list[int] = field(default_factory=list[int])
    stacks: list[int] = field(default_factory=list[int])
    writes: dict[int, tuple[HloOp, bool]] = field(default_factory=dict[int, "tuple[HloOp, bool]"])


def _counted(hlo: Hlo, trips: Trips, count: Dim) -> list[Tensor]:
    if hlo.scope.depth:
        raise NoNativeLowering("nested-loop", "a loop in a loop")
    plan = _planned(hlo, trips, count)
    stacks = [Stack(tuple(hlo.inputs[i].dims[1:]), hlo.inputs[i].dtype) for i in plan.stacks]
    loop = CountedLoop(count, plan.rows, plan.wholes, [hlo.inputs[i] for i in plan.states], stacks)
    stacked, states = loop.emit(hlo.node, lambda node, given: _step(hlo, trips, plan, node, given))
    out: list[Tensor] = []
    for index, start in enumerate(hlo.inputs):
        if index in plan.stacks:
            out.append(stacked[plan.stacks.index(index)])
        elif index in plan.states:
            out.append(states[plan.states.index(index)])
        elif index in trips.counters:
            out.append(_size(trips.counters[index].last(count), start))
        else:
            out.append(start)
    return out


def _size(value: Dim, like: Tensor) -> Tensor:
    array = np.empty(like.array.shape if like.array is not None else (), object)
    array[...] = value
    return known(array, like.dtype)


def _planned(hlo: Hlo, trips: Trips, count: Dim) -> _Plan:
    plan = _Plan()
    for index, t in enumerate(hlo.inputs):
        argument = trips.body.args[index]
        written = row_written(trips, index, t)
        if index in trips.counters:
            plan.row_of[argument] = len(plan.rows)
            plan.rows.append(Rows(_counter_rows(hlo, trips, index, count)))
        elif trips.is_kept(index):
            _assign(plan, trips, argument, t)
        elif written is not None:
            plan.stacks.append(index)
            plan.writes[index] = written
        else:
            plan.states.append(index)
    for value, t in _captured(hlo, trips.body):
        _assign(plan, trips, value, t)
    return plan


def _assign(plan: _Plan, trips: Trips, value: SSAValue, t: Tensor) -> None:
    """A value that no trip changes: read row by row, known, or handed in as a whole."""
    fresh = _fresh(t)
    if fresh is not None:
        plan.fixed[value] = fresh
        return
    found = rows_read(trips, value, t)
    if found is None:
        plan.whole_of[value] = len(plan.wholes)
        plan.wholes.append(t)
        return
    for op in found[0]:
        plan.slices[op] = len(plan.rows)
    plan.rows.append(Rows(t, found[1]))


def _fresh(t: Tensor) -> Tensor | None:
    """A known tensor, to be emitted anew in the function of the step; None for one that the run computes."""
    if t.is_constant:
        return Tensor(t.dtype, t.dims, array=t.array, name=t.name)
    if t.base is None:
        return None
    base = _fresh(t.base)
    return None if base is None else view(base, t.dims, t.axes)


def _captured(hlo: Hlo, block: Block) -> list[tuple[SSAValue, Tensor]]:
    """The values from outside that a region reads, each once, in order."""
    found: dict[SSAValue, Tensor] = {}
    for op in block.walk():
        for operand in op.operands:
            t = hlo.scope.values.get(operand)
            if t is not None and operand not in found:
                found[operand] = t
    return list(found.items())


def _counter_rows(hlo: Hlo, trips: Trips, index: int, count: Dim) -> Tensor:
    """What a counter is on each trip: `[trips, *its sizes]`."""
    line, t = trips.counters[index], hlo.inputs[index]
    if isinstance(count, int) and isinstance(line.first, int):
        numbers = (line.first + line.step * np.arange(count)).astype(t.dtype)
        return known(numbers.reshape(count, *[1] * t.rank))
    first = hlo.node.index(line.first)

    def body(b: Body) -> SSAValue:
        moved = b.op(arith.MuliOp, s.loop_index(b, 0), s.index_constant(b, line.step))
        number = b.op(arith.IndexCastOp, b.op(arith.AddiOp, moved, first), mlir_element(INDEX_DTYPE))
        return s.convert(b, number, INDEX_DTYPE, t.dtype)

    return reshape(hlo.node, mapped(hlo.node, [], [count], t.dtype, body), [count, *t.dims])


def _step(hlo: Hlo, trips: Trips, plan: _Plan, node: OnnxNode, given: StepInputs) -> Sequence[StepResult]:
    """One trip, in the function of the step."""
    scope = hlo.scope.apart(node.program)
    scope.values.update(plan.fixed)
    scope.values.update({value: given.rows[row] for value, row in plan.row_of.items()})
    scope.values.update({value: given.wholes[number] for value, number in plan.whole_of.items()})
    scope.values.update({trips.body.args[i]: t for i, t in zip(plan.states, given.states, strict=True)})
    for op, row in plan.slices.items():
        t = given.rows[row]
        scope.given[op] = [reshape(node, t, (1, *t.dims))]
    for op, _ in plan.writes.values():
        scope.given[op] = []
    results: list[StepResult] = []
    last = trips.body.last_op
    assert last is not None
    hlo.importer.ops(trips.body, scope)
    for number, index in enumerate(plan.stacks):
        op, backwards = plan.writes[index]
        row = hlo.importer.value(op.operands[1], scope, op)
        flat = reshape(node, row, row.dims[1:])
        results.append(StepResult(flat, row=StackRow(number, backwards=backwards)))
    for number, index in enumerate(plan.states):
        t = hlo.importer.value(last.operands[index], scope, last)
        results.append(StepResult(t, state=number))
    return results
