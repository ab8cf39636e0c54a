"""Programs whose sizes are not all known before they run: a host operator tells some of them (how many elements are not zero, say).

Such a program runs in stages. Each ends with a call that makes sizes known; then the arena grows, outputs of known size are allocated, and
the next stage is bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fuseline.errors import FuselineError
from fuseline.runtime import host
from fuseline.runtime.execution import Array, Execution, Launch, LoadedCode, Workspace, output_room
from fuseline.runtime.memory import aligned_empty
from fuseline.runtime.program import HostCall, Program, Step
from fuseline.runtime.sizes import Size, SizeEvaluator, symbol_of, symbols_of

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


class StagedExecution:
    """`program` for one combination of input shapes, whose `values` are known; the rest turns up as it runs."""

    def __init__(
        self, program: Program, stages: Sequence[Stage], code: LoadedCode, workspace: Workspace, values: Mapping[str, int], threads: int
    ) -> None:
        self.threads = threads
        self._program, self._stages, self._code, self._workspace, self._values = program, stages, code, workspace, dict(values)

    def run(self, launch: Launch, inputs: Sequence[Array]) -> list[Array]:
        """Run on arrays of the right shapes and dtypes; answers fresh outputs."""
        values = dict(self._values)
        arena: Size = self._program.arena_bytes
        outputs: list[Array | None] = [None] * len(self._program.outputs)
        execution = self._bind((), arena, values)
        addresses = execution.input_addresses(inputs)
        for steps, call in self._stages:
            self._allocate(outputs, values)
            execution_of_steps = self._bind(steps, arena, values)
            execution_of_steps.perform(launch, inputs, addresses, outputs)
            if call is not None:
                arena = call.arena_bytes or arena
                self._call(call, execution_of_steps, arena, values, inputs, outputs)
        return [array for array in outputs if array is not None]

    def _bind(self, steps: Sequence[Step], arena: Size, values: Mapping[str, int]) -> Execution:
        part = self._program._replace(steps=tuple(steps), arena_bytes=arena, serial_below_ns=0)
        return Execution(part, self._code, self._workspace, values, self.threads, stage=True)

    def _allocate(self, outputs: list[Array | None], values: Mapping[str, int]) -> None:
        evaluate = SizeEvaluator(values)
        for number, spec in enumerate(self._program.outputs):
            if outputs[number] is None and all(symbols_of(size) <= values.keys() for size in spec.dims):
                shape, dtype, _ = output_room(spec, evaluate)
                outputs[number] = aligned_empty(shape, dtype)

    def _call(
        self, call: HostCall, before: Execution, arena: Size, values: dict[str, int], inputs: Sequence[Array], outputs: list[Array | None]
    ) -> None:
        """Run the call, learn the sizes of what it answers, make room for it, store it."""
        answers = before.call(call, inputs, outputs)
        for tensor, answer in zip(call.outputs, answers, strict=False):
            if tensor is not None:
                self._learn(call.label, tensor.dims, answer.shape, values)
        self._allocate(outputs, values)
        after = self._bind((), arena, values)
        for tensor, answer in zip(call.outputs, answers, strict=False):
            if tensor is not None:
                host.store(call.label, after.view(tensor, inputs, outputs), answer)

    def _learn(self, label: str, dims: Sequence[Size], shape: Sequence[int], values: dict[str, int]) -> None:
        if len(dims) != len(shape):
            raise FuselineError("E0107", f"host operator answered rank {len(shape)}, planned was {len(dims)}", node=label)
        for size, actual in zip(dims, shape, strict=True):
            name = symbol_of(size)
            if name is None or name in values:
                continue
            low, high = self._program.symbols.get(name, (0, None))
            if actual < low or (high is not None and actual > high):
                raise FuselineError("E0107", f"host operator answered size {actual} for {name}, which must be in {low}..{high}", node=label)
            values[name] = actual
