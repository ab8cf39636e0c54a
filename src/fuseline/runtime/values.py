"""The values of one run: how they come from the caller, cross to host operators and back, and leave for the caller.
Alike where kernels compute with them and where NumPy does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fuseline.buffers import Operand, TensorSpec, is_boxed
from fuseline.runtime import host
from fuseline.runtime.boxed import is_tensor_type, unbox
from fuseline.runtime.learned_sizes import learn_sizes, told_shape
from fuseline.runtime.ownership import Boxed, hand_out, lend
from fuseline.runtime.program import HostCall, Program
from fuseline.runtime.scalar_arithmetic import operands_of
from fuseline.runtime.sizes import Size, SizeEvaluator

Array = NDArray[Any]
View: TypeAlias = Callable[[Operand], Array]
"""The memory of an operand as an array."""

_IN_NO_MEMORY = np.empty(0, np.uint8)
"""Stands for an input that is boxed, where kernels' inputs are listed."""


class Values(NamedTuple):
    """What one run works on: inputs, outputs (None: not allocated yet) and boxed values by slot (None: not there
    yet)."""

    inputs: Sequence[Array]
    outputs: list[Array | None]
    boxed: list[Boxed | None]


def values_of(program: Program, inputs: Sequence[Array]) -> Values:
    """The values that a run on `inputs` (boxed ones as `box` wraps them) begins with."""
    boxed: list[Boxed | None] = [None] * program.slots
    in_memory: list[Array] = []
    for spec, array in zip(program.inputs, inputs, strict=True):
        in_memory.append(array if spec.slot is None else _IN_NO_MEMORY)
        if spec.slot is not None:
            boxed[spec.slot] = lend(array if is_tensor_type(spec.type) else unbox(array))
    return Values(in_memory, [None] * len(program.outputs), boxed)


def results_of(program: Program, values: Values) -> list[Any]:
    """The outputs in order, boxed ones as the caller's own."""
    boxed = iter(hand_out(_slots(program.outputs, values), _slots(program.inputs, values)))
    return [
        array if spec.slot is None else next(boxed) for spec, array in zip(program.outputs, values.outputs, strict=True)
    ]


def _slots(side: Sequence[TensorSpec], values: Values) -> list[Boxed | None]:
    return [values.boxed[spec.slot] for spec in side if spec.slot is not None]


_NUMBERS = SizeEvaluator({})


def call_host(step: HostCall, values: Values, view: View, evaluate: Callable[[Size], int] = _NUMBERS) -> list[Any]:
    """What the host operator answers for the operands as they are now (see `host.call` for what it raises); `evaluate`
    gives the sizes that it computes with."""
    memory = {tensor: view(tensor) for tensor in step.inputs if tensor is not None and not is_boxed(tensor)}
    operands = [
        tensor and (values.boxed[tensor.buffer.number] if is_boxed(tensor) else memory[tensor])
        for tensor in step.inputs
    ]
    if step.code is not None:
        operands = operands_of(step.code, operands, [evaluate(size) for size in step.code.sizes])
    call = host.Call(step.executor, step.node, step.label, [is_boxed(tensor) for tensor in step.outputs])
    return host.call(call, operands, list(memory.values()))


def learn_answers(program: Program, step: HostCall, answers: Sequence[Any], sizes: dict[str, int]) -> None:
    """Add to `sizes` what the answers make known (see `learn_sizes` for what it raises)."""
    for tensor, answer in zip(step.outputs, answers, strict=False):
        if tensor is not None and (tensor.dims or not is_boxed(tensor)):
            learn_sizes(program, step.label, tensor.dims, told_shape(answer), sizes)


def keep_answers(step: HostCall, answers: Sequence[Any], values: Values, view: View) -> None:
    """Put the answers of a host call where they were planned to be."""
    for target, answer in zip(step.outputs, answers, strict=False):
        if target is None:
            continue
        if is_boxed(target):
            values.boxed[target.buffer.number] = answer
        else:
            host.store(step.label, view(target), answer)
