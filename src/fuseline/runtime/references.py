"""References inside an artifact: entries, kernels, buffers, sizes and dtypes must be of something that is there.

What depends on sizes that only a run knows is checked then, by `fuseline.runtime.bounds`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import prod

import numpy as np

from fuseline.buffers import BufferRef, LoopOffset, Operand, TensorSpec, is_boxed
from fuseline.errors import FuselineError
from fuseline.runtime.dtypes import dtype_named
from fuseline.runtime.program import Arm, Command, HostCall, Loop, Poison, Program, Step
from fuseline.runtime.sizes import Size, symbol_of, symbols_of
from fuseline.scalar_code import TYPES, check_code

ENTRIES = ("run", "worker")
"""Offsets that every image must give: the scheduler's run entry and the workers' main function."""


def check_references(
    program: Program,
    code_bytes: int,
    entries: Mapping[str, int],
    constant_bytes: Sequence[int],
    kernels: Collection[int] | None = None,
) -> None:
    """Raise ValueError for an entry or kernel that the code does not have, a buffer that does not exist, a size that
    nothing determines, or an element type that cannot lie in memory. `kernels`: the offsets at which one begins, where
    they are known."""
    _check_code(program, code_bytes, entries, kernels)
    for spec in (*program.inputs, *program.outputs):
        _check_spec(program, spec)
    for side in (program.inputs, program.outputs):
        if len({spec.name for spec in side}) < len(side):
            raise ValueError("two inputs or outputs of one name")
    counts = {
        "arena": 1,
        "constant": len(constant_bytes),
        "input": len(program.inputs),
        "output": len(program.outputs),
        "boxed": program.slots,
    }
    arena = _arena_limit(program)
    for ref in (ref for step in program.steps for ref in _refs(step)):
        if not 0 <= ref.number < counts[ref.segment]:
            raise ValueError(f"{ref.segment} {ref.number} does not exist")
        limit = constant_bytes[ref.number] if ref.segment == "constant" else arena if ref.segment == "arena" else None
        if isinstance(ref.offset, int) and (ref.offset < 0 or (limit is not None and ref.offset > limit)):
            raise ValueError(f"offset {ref.offset} lies outside {ref.segment} {ref.number}")
    for step in program.steps:
        if isinstance(step, HostCall):
            _check_call(step)
        elif any(ref.segment == "boxed" for ref in _refs(step)):
            raise ValueError("a kernel bound to a boxed value")
    _check_sizes(program)


def check_same_border(program: Program, other: Program) -> None:
    """Raise ValueError unless two programs take the same inputs and answer outputs of the same names and types."""
    inputs, outputs = (
        [[spec._replace(slot=None if spec.slot is None else 0) for spec in one.inputs] for one in (program, other)],
        [[(spec.name, spec.dtype, spec.type, spec.slot is None) for spec in one.outputs] for one in (program, other)],
    )
    if inputs[0] != inputs[1] or outputs[0] != outputs[1]:
        raise ValueError("the fallback has other inputs or outputs")


def _arena_limit(program: Program) -> int | None:
    """Bytes of the arena where they are known before a run."""
    grows = any(isinstance(step, HostCall) and step.arena_bytes != 0 for step in program.steps)
    return program.arena_bytes if isinstance(program.arena_bytes, int) and not grows else None


def _check_code(program: Program, code_bytes: int, entries: Mapping[str, int], kernels: Collection[int] | None) -> None:
    for name in ENTRIES:
        if name not in entries:
            raise ValueError(f"no entry {name!r}")
    launched = [arm.kernel for step in program.steps for arm in arms_of(step)]
    for offset in (*entries.values(), *launched):
        if not 0 <= offset < code_bytes:
            raise ValueError(f"entry at {offset} lies outside the code")
    for offset in launched:
        if kernels is not None and offset not in kernels:
            raise ValueError(f"no kernel begins at {offset}")


def _check_spec(program: Program, spec: TensorSpec) -> None:
    if spec.slot is None:
        _check_dtype(spec.dtype)
    elif not 0 <= spec.slot < program.slots:
        raise ValueError(f"slot {spec.slot} of {spec.name} does not exist")
    if spec.is_index and len(spec.dims) != 1:
        raise ValueError(f"the index {spec.name} does not stand for one size")
    if any(isinstance(size, int) and size < 0 for size in spec.dims):
        raise ValueError(f"a negative size of {spec.name}")


def _check_call(call: HostCall) -> None:
    for tensor in (*call.inputs, *call.outputs):
        if tensor is not None and not is_boxed(tensor):
            _check_dtype(tensor.dtype)
    for tensor in call.outputs:
        if tensor is not None and tensor.buffer.segment in ("constant", "input"):
            raise ValueError(f"a result in {tensor.buffer.segment} {tensor.buffer.number}")
    if call.code is not None:
        check_code(call.code, [*map(_elements, call.inputs)], len(call.code.sizes))


def _elements(tensor: Operand | None) -> tuple[str, int] | None:
    """The type and number of elements that a tensor of numbers has; None for what is none, or of sizes that only the
    run knows."""
    if tensor is None or is_boxed(tensor) or tensor.dtype not in TYPES:
        return None
    known = all(isinstance(size, int) and size >= 0 for size in tensor.dims)
    return (TYPES[tensor.dtype], prod(tensor.dims)) if known else None


def _check_dtype(name: str) -> None:
    """Only numbers of a fixed size lie in a program's memory."""
    try:
        dtype = dtype_named(name)
    except FuselineError as error:
        if error.code == "E0503":
            return  # known, but not on this machine: said when it runs
        raise
    if (
        dtype.name != name
        or dtype.hasobject
        or not (dtype.kind in "biuf" or dtype.isbuiltin == _OF_A_PACKAGE)
        or np.dtype(dtype).itemsize == 0
    ):
        raise ValueError(f"{name!r} is no type of numbers in memory")


_OF_A_PACKAGE = 2


def _check_sizes(program: Program) -> None:
    for symbol, _ in undetermined_sizes(program):
        raise ValueError(f"nothing determines the size {symbol}")


def undetermined_sizes(program: Program) -> Iterator[tuple[str, str]]:
    """Symbols of sizes that are used before an input, or what a host call answers, makes them known, each with the
    label of the step (or the name of the output) that uses it."""
    known = {symbol_of(size) for spec in program.inputs for size in spec.dims}
    yield from _unknown([program.arena_bytes], known, "")
    for step in program.steps:
        if isinstance(step, HostCall):
            yield from _unknown(_tensor_sizes(step.inputs), known, step.label)
            yield from _unknown(step.code.sizes if step.code is not None else (), known, step.label)
            known |= {symbol_of(size) for tensor in step.outputs if tensor is not None for size in tensor.dims}
            yield from _unknown([*_tensor_sizes(step.outputs), step.arena_bytes], known, step.label)
        elif isinstance(step, Poison):
            yield from _unknown((size for extent in step.live for size in extent), known, "")
        else:
            yield from _unknown(_sizes(step), known, step.label)
    for spec in program.outputs:
        yield from _unknown(spec.dims if spec.slot is None else (), known, spec.name)


def _unknown(sizes: Iterable[Size], known: Collection[str | None], where: str) -> Iterator[tuple[str, str]]:
    for size in sizes:
        for symbol in sorted(symbols_of(size).difference(known)):
            yield symbol, where


def _tensor_sizes(tensors: Sequence[Operand | None]) -> Iterator[Size]:
    """Every size of the tensors that lie in memory."""
    for tensor in tensors:
        if tensor is not None and not is_boxed(tensor):
            yield from (tensor.buffer.offset, *tensor.dims)


def _sizes(step: Command | Loop) -> Iterator[Size]:
    """Every size that binding a step to memory evaluates."""
    yield from (ref.offset for ref in _refs(step))
    if isinstance(step, Loop):
        yield step.trips
    for arm in arms_of(step):
        yield from (*arm.sizes, arm.workgroups, arm.cost_ns)
        yield from (size for move in arm.loop_offsets for size in (move.stride, move.at))


def arms_of(step: Step) -> Sequence[Arm]:
    """The grids that a step launches."""
    if isinstance(step, HostCall | Poison):
        return ()
    return [arm for command in step.commands for arm in command.arms] if isinstance(step, Loop) else step.arms


def _refs(step: Step) -> Iterator[BufferRef]:
    for arm in arms_of(step):
        yield from arm.bindings
        if isinstance(step, Loop):
            yield from _moved_refs(step, arm)
        elif arm.loop_offsets:
            raise ValueError("a loop offset outside of a loop")
    if isinstance(step, HostCall):
        yield from (tensor.buffer for tensor in (*step.inputs, *step.outputs) if tensor is not None)


def _moved_refs(loop: Loop, arm: Arm) -> Iterator[BufferRef]:
    """Where bindings get to in the iterations of a loop; raises ValueError for loop offsets that do not fit their
    bindings."""
    if len(arm.loop_offsets) != len(arm.bindings):
        raise ValueError("a binding inside a loop without a loop offset")
    for ref, move in zip(arm.bindings, arm.loop_offsets, strict=True):
        if move.lag not in (0, 1) or (move.lag and (move.special is None or move.at != 0)):
            raise ValueError(f"a loop offset that lags {move.lag} iterations begins nowhere")
        if move.special is not None:
            yield move.special
        steps = _steps(loop, move)
        if isinstance(ref.offset, int) and isinstance(move.stride, int) and steps is not None:
            yield ref._replace(offset=ref.offset + steps * move.stride)


def _steps(loop: Loop, move: LoopOffset) -> int | None:
    """How many strides a binding moves at most, where that is known."""
    if move.alternates:
        return 1
    return max(loop.trips - 1 - move.lag, 0) if isinstance(loop.trips, int) else None
