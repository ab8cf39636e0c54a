"""Programs whose sizes are not all known before they run: a host operator tells some of them (how many elements are not
zero, say).

Such a program runs in stages. Each ends with a call that makes sizes known; then the arena grows, outputs of known size
are allocated, and the next stage is bound. Programs that box values (see `boxed`) run the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from fuseline.runtime.bounds import numbers_that_fit
from fuseline.runtime.execution import Array, Execution, Launch, LoadedCode, Workspace, output_room
from fuseline.runtime.memory import aligned_empty
from fuseline.runtime.program import HostCall, Program, Step
from fuseline.runtime.sizes import Size, SizeEvaluator, symbols_of
from fuseline.runtime.values import Values, keep_answers, learn_answers, results_of, values_of

Stage = tuple[tuple[Step, ...], HostCall | None]
"""Steps, and the call behind them that makes sizes known."""


def split_stages(program: Program) -> list[Stage]:
    """The program's stages: one where the inputs determine all sizes."""
    known = {symbol for spec in program.inputs for size in spec.dims for symbol in symbols_of(size)}
    stages: list[Stage] = []
    steps: list[Step] = []
    for step in program.steps:
        if isinstance(step, HostCall) and not _symbols(step) <= known:
            stages.append((tuple(steps), step))
            steps, known = [], known | _symbols(step)
        else:
            steps.append(step)
    return [*stages, (tuple(steps), None)]


def _symbols(call: HostCall) -> set[str]:
    return {symbol for tensor in call.outputs if tensor for size in tensor.dims for symbol in symbols_of(size)}


BOUND_PER_STAGE = 8
"""How many combinations of sizes that a run learned are remembered, per stage."""

_NO_STAGE = -1


class StagedExecution:
    """`program` for one combination of input shapes, whose `values` are known; the rest turns up as it runs.

    What is bound is remembered by the sizes that the run had learned by then; a workspace whose memory moves forgets
    this object.
    """

    def __init__(
        self,
        program: Program,
        stages: Sequence[Stage],
        code: LoadedCode,
        workspace: Workspace,
        values: Mapping[str, int],
        threads: int,
        execution: Callable[..., Execution] = Execution,
    ) -> None:
        self.threads, self._execution = threads, execution
        self._program, self._stages, self._code, self._workspace, self._values = (
            program,
            stages,
            code,
            workspace,
            dict(values),
        )
        self._bound: dict[tuple[int, Size, tuple[int, ...]], Execution] = {}

    def run(self, launch: Launch, inputs: Sequence[Array]) -> list[Any]:
        """Run on arrays of the right shapes and dtypes (boxed values as `box` wraps them); answers fresh outputs, boxed
        ones as they are."""
        sizes = dict(self._values)
        arena: Size = self._program.arena_bytes
        values = values_of(self._program, inputs)
        reader = self._bind(_NO_STAGE, arena, sizes)  # keeps the copies of inputs that kernels cannot read in place
        addresses = reader.input_addresses(values.inputs)
        for stage, (_, call) in enumerate(self._stages):
            self._allocate(values.outputs, sizes)
            execution = self._bind(stage, arena, sizes)
            execution.perform(launch, addresses, values)
            if call is not None:
                arena = call.arena_bytes or arena
                self._call(call, execution, arena, sizes, values)
        return results_of(self._program, values)

    def _bind(self, stage: int, arena: Size, values: Mapping[str, int]) -> Execution:
        """The steps of a stage (or none), bound to memory: as they were the last time that a run learned these sizes,
        while memory stays."""
        key = stage, arena, tuple(values[name] for name in values if name not in self._values)
        found = self._bound.pop(key, None)
        if found is None or not found.lies_in(self._workspace):
            steps = () if stage == _NO_STAGE else self._stages[stage][0]
            stage_program = self._program._replace(steps=steps, arena_bytes=arena, serial_below_ns=0)
            with numbers_that_fit():
                found = self._execution(stage_program, self._code, self._workspace, values, self.threads, stage=True)
        self._bound[key] = found
        while len(self._bound) > BOUND_PER_STAGE * (len(self._stages) + 1):
            self._bound.pop(next(iter(self._bound)))
        return found

    def _allocate(self, outputs: list[Array | None], values: Mapping[str, int]) -> None:
        evaluate = SizeEvaluator(values)
        for number, spec in enumerate(self._program.outputs):
            if (
                outputs[number] is None
                and spec.slot is None
                and all(symbols_of(size) <= values.keys() for size in spec.dims)
            ):
                with numbers_that_fit():
                    shape, dtype, _ = output_room(spec, evaluate)
                outputs[number] = aligned_empty(shape, dtype)

    def _call(self, call: HostCall, before: Execution, arena: Size, sizes: dict[str, int], values: Values) -> None:
        """Run the call, learn the sizes of what it answers, make room for it, keep it."""
        answers = before.call(call, values)
        learn_answers(self._program, call, answers, sizes)
        self._allocate(values.outputs, sizes)
        room = self._bind(_NO_STAGE, arena, sizes)
        keep_answers(call, answers, values, partial(room.view, values))
