"""In which forms the steps of a schedule read each constant, and which forms are of the same memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fuseline.buffers import STANDING, Operand
from fuseline.passes.schedule.pack_constants import constant_uses, layout_key
from fuseline.program.schedule import Schedule
from fuseline.program.steps import DispatchStep, Step
from fuseline.targets.compiled_kernel import CompiledKernel
from fuseline.weight_layouts import LayoutKey, is_plain


class ConstantUse(NamedTuple):
    """Operand `position` of step `number`, which is no loop and launches one kernel."""

    number: int
    position: int
    executable: str


@dataclass(eq=False)
class ConstantForm:
    """One constant as some steps read it: `array` in the layout `key`, None for row-major elements. `uses` are those
    that may read it in another form, `stays` says why not all may."""

    constant: int
    array: NDArray[Any]
    key: LayoutKey | None
    uses: list[ConstantUse] = field(default_factory=list[ConstantUse])
    readers: list[str] = field(default_factory=list[str])
    stays: str = ""


def constant_forms(schedule: Schedule, kernels: Mapping[str, CompiledKernel]) -> list[ConstantForm]:
    """All forms, in the order in which they are first read."""
    found: dict[tuple[int, LayoutKey | None], ConstantForm] = {}
    for number, step in enumerate(schedule.steps):
        for constant, key in constant_uses([step], kernels):
            array = schedule.constants[constant]
            key = None if key is None or is_plain(array, key) else key
            form = found.setdefault((constant, key), ConstantForm(constant, array, key))
            if step.label not in form.readers:
                form.readers.append(step.label)
            _add_uses(form, number, step, kernels)
    _keep_shared_code(list(found.values()))
    return list(found.values())


def _add_uses(form: ConstantForm, number: int, step: Step, kernels: Mapping[str, CompiledKernel]) -> None:
    """The operands of a step that read the form, or why they must stay."""
    kernel = kernels.get(step.executable) if isinstance(step, DispatchStep) else None
    if kernel is None or kernel.arms or not isinstance(step, DispatchStep):
        form.stays = form.stays or "no-plain-dispatch"
        return
    for position, operand in enumerate(step.operands):
        if operand.buffer.segment == "constant" and operand.buffer.number == form.constant:
            use = ConstantUse(number, position, step.executable)
            form.stays = form.stays or _stays(operand, form, kernel, position)
            form.uses += [use] if use not in form.uses else []


def _stays(operand: Operand, form: ConstantForm, kernel: CompiledKernel, position: int) -> str:
    if layout_key(kernel, position, operand) is not None:
        return "own-layout"
    whole = operand.buffer.offset == 0 and operand.loop_offset == STANDING and operand.dims == form.array.shape
    return "" if whole else "part-or-reshaped"


def _keep_shared_code(forms: Sequence[ConstantForm]) -> None:
    """Code that reads different constants at one place reads them as they are."""
    read: dict[tuple[str, int], set[int]] = {}
    for form in forms:
        for use in form.uses:
            read.setdefault((use.executable, use.position), set()).add(id(form))
    for form in forms:
        if any(len(read[use.executable, use.position]) > 1 for use in form.uses):
            form.stays = form.stays or "shared-code"


def memory_of(array: NDArray[Any]) -> tuple[int, int, str] | None:
    """Where the elements of an array lie and what they are; None for a part of a block of memory, or one that
    repeats."""
    low, high = np.lib.array_utils.byte_bounds(array)
    return (low, high, array.dtype.str) if high - low == array.nbytes else None


def axes_between(owner: NDArray[Any], reader: NDArray[Any]) -> tuple[int, ...]:
    """For each dimension of `owner` the one of `reader` that runs through the same memory; both are all of one block
    of memory, in as many dimensions."""
    left = list(range(reader.ndim))
    found: list[int] = []
    for size, stride in zip(owner.shape, owner.strides, strict=True):
        same = [i for i in left if reader.shape[i] == size and (size == 1 or reader.strides[i] == stride)]
        if not same:
            return ()
        left.remove(same[0])
        found.append(same[0])
    return tuple(found)
