"""Every dispatch of a program on its own intermediate values, against the interpreter in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuseline.evaluation import evaluate_function
from fuseline.program.steps import CopyStep, DispatchStep, FillStep, InsertStep, SizesStep
from fuseline.report.check_results import ROUNDING, WRONG, DispatchCheck, NotFinite
from fuseline.report.dispatches import member_nodes
from fuseline.report.records import DispatchRecord
from fuseline.runtime.dtypes import dtype_named
from fuseline.verify.check.agreement import FILTERED, Agreement, agreements
from fuseline.verify.check.not_finite import first_op, not_finite
from fuseline.verify.check.programs import CheckedProgram
from fuseline.verify.check.proofs import Proof, Proofs
from fuseline.verify.check.stepping import Judge, Reading, Stepped

Array = NDArray[Any]
Tell = Callable[[int, int], object]
"""Is told how many steps of how many are done."""

_KINDS: dict[type[Any], str] = {CopyStep: "copy", FillStep: "fill", InsertStep: "insert", SizesStep: "sizes"}


class DispatchChecks:
    """The checks of one program: `rows` by step and executable, the first values that are not finite, and the outputs
    of the run that was stepped through."""

    def __init__(self, program: CheckedProgram, tell: Tell = lambda done, total: None) -> None:
        self._program, self._tell = program, tell
        self._proofs = Proofs(program)
        self._records = _by_step(program)
        self._rows: dict[tuple[int, str], DispatchCheck] = {}
        self.first_not_finite: NotFinite | None = None
        self.outputs: dict[str, Any] = {}

    @property
    def rows(self) -> list[DispatchCheck]:
        """One for each step of the schedule that runs native code, in order."""
        return list(self._rows.values())

    def run(self, feeds: Mapping[str, Any]) -> DispatchChecks:
        """Step through one run."""
        self.outputs = Stepped(self._program).run(feeds, self._watch)
        return self

    def _watch(self, reading: Reading) -> Judge:
        self._tell(reading.number, len(self._program.lowering.schedule.steps))
        row = self._row(reading)
        row.launches, row.trips = row.launches + 1, reading.trips
        if isinstance(reading.step, DispatchStep):
            _note_proof(row, self._proofs.proof(reading))
            return self._judge_dispatch(reading.step, reading, row)
        expected = _moved(reading)
        return lambda results: _note(row, [_equal(results[0], expected)])

    def _row(self, reading: Reading) -> DispatchCheck:
        step = reading.step
        if not isinstance(step, DispatchStep):
            key = (reading.number, f"{type(step).__name__} {getattr(step, 'label', '')}")
            label = f"{reading.number:03d}_{_KINDS[type(step)]}"
            made = DispatchCheck(
                program=self._program.role, number=reading.number, dispatch=label, kind=_KINDS[type(step)]
            )
            return self._rows.setdefault(key, made)
        record = self._records.get((reading.number, step.executable))
        made = DispatchCheck(
            program=self._program.role,
            number=reading.number,
            dispatch=record.label if record else step.executable,
            executable=step.executable,
            family=record.family if record else "",
            nodes=list(member_nodes(record)) if record else list(step.nodes),
        )
        return self._rows.setdefault((reading.number, step.executable), made)

    def _scale(self, row: DispatchCheck) -> float:
        return FILTERED[self._program.lowering.options.numerics] if "winograd" in row.family else 1.0

    def _judge_dispatch(self, step: DispatchStep, reading: Reading, row: DispatchCheck) -> Judge:
        entry = self._program.entries[step.executable]
        kept = [np.array(operand) for operand in reading.operands]  # a result may take the place of an operand

        def compute(operands: Sequence[Array], double: bool) -> Sequence[Array]:
            return evaluate_function(entry, operands, double=double)

        exact = compute(kept, True)
        finite_before = not any(map(not_finite, kept))

        def judge(results: Sequence[Array]) -> None:
            _note(row, agreements(compute, kept, results, exact, self._scale(row)))
            count = sum(map(not_finite, results))
            if count and finite_before and self.first_not_finite is None:
                op, nodes = first_op(entry, kept)
                self.first_not_finite = NotFinite(
                    program=row.program, dispatch=row.dispatch, op=op, nodes=nodes, count=count
                )

        return judge


def _by_step(program: CheckedProgram) -> dict[tuple[int, str], DispatchRecord]:
    """The record of each dispatch by the number of its step and its executable: launches of one executable are on
    record in their order."""
    waiting: dict[str, list[DispatchRecord]] = {}
    for record in program.record.dispatches:
        waiting.setdefault(record.executable, []).append(record)
    found: dict[tuple[int, str], DispatchRecord] = {}
    for number, step in enumerate(program.lowering.schedule.steps):
        for inner in getattr(step, "steps", (step,)):
            if isinstance(inner, DispatchStep) and waiting.get(inner.executable):
                found.setdefault((number, inner.executable), waiting[inner.executable].pop(0))
    return found


def _moved(reading: Reading) -> Array:
    """What a copy, a fill, an insert or sizes make, as bytes."""
    step, memory = reading.step, reading.memory
    if isinstance(step, SizesStep):
        return np.array([memory.evaluate(value) for value in step.values], np.int64)
    assert isinstance(step, CopyStep | FillStep | InsertStep)
    source = memory.view(step.source).view(dtype_named(step.target.dtype))
    target = np.array(memory.view(step.target))
    if isinstance(step, CopyStep):
        return np.array(source).reshape(target.shape)
    if isinstance(step, FillStep):
        return np.array(np.broadcast_to(source.reshape(()), target.shape))
    at = [memory.evaluate(offset) for offset in step.offsets]
    target[tuple(slice(first, first + size) for first, size in zip(at, source.shape, strict=True))] = source
    return target


def _equal(found: Array, expected: Array) -> Agreement:
    mine = np.ascontiguousarray(found).reshape(-1).view(np.uint8)
    theirs = np.ascontiguousarray(expected).reshape(-1).view(np.uint8)
    differing = int(np.count_nonzero(mine != theirs)) if mine.size == theirs.size else max(mine.size, 1)
    problem = f"{differing} of {mine.size} bytes differ" if differing else ""
    return Agreement(found.dtype.name, differing / max(mine.size, 1), 0.0, 1.0, 0.0, problem)


def _note(row: DispatchCheck, found: Sequence[Agreement]) -> None:
    """Keep the worst."""
    for one in found:
        status = WRONG if one.problem else ROUNDING if one.rounding else row.status
        worse = status == WRONG and row.status != WRONG
        same = (status == WRONG) == (row.status == WRONG)
        if worse or (same and (not row.dtype or _ratio(one.error, one.allowed) >= _ratio(row.error, row.allowed))):
            row.dtype, row.error, row.ulps = one.dtype, one.error, one.ulps
            row.magnitude, row.allowed, row.detail = one.magnitude, one.allowed, one.problem
        row.status = WRONG if WRONG in (status, row.status) else status


def _note_proof(row: DispatchCheck, proof: Proof) -> None:
    row.proved = proof.asked and not proof.unproved and (row.launches == 1 or row.proved)
    row.unproved += [text for text in proof.unproved if text not in row.unproved]
    row.left = row.left or proof.stayed is False


def _ratio(error: float, allowed: float) -> float:
    return error / allowed if allowed else error
