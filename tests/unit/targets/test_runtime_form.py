"""A schedule's values in the runtime's form: the same sizes, nothing lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuseline.buffers import BufferRef, LoopOffset, Operand, TensorSpec
from fuseline.ir.dim import Dim, add, ceil_div, evaluate, floor_div, maximum, minimum, mul, symbol
from fuseline.program.schedule import Schedule
from fuseline.program.steps import CopyStep, HostStep
from fuseline.runtime.program import Command, HostCall
from fuseline.runtime.requirements import holds
from fuseline.runtime.sizes import SizeEvaluator
from fuseline.size_requirement import SizeRequirement
from fuseline.targets.runtime_form import host_calls, program_of, runtime_form, runtime_size

N, M = symbol("n", 0), symbol("m", 1, 9)
SIZES = [7, N, add(mul(N, 4), -3), ceil_div(N, 16), floor_div(mul(N, M), 3), maximum(N, M), minimum(add(N, M), 5)]


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_size_is_the_same_number(size: Dim) -> None:
    rng = np.random.default_rng()
    for _ in range(10):
        values = {"n": int(rng.integers(0, 99)), "m": int(rng.integers(1, 10))}
        assert SizeEvaluator(values)(runtime_size(size)) == evaluate(size, values)


def test_numbers_and_names_stay_as_they_are() -> None:
    for value in (3, "x", None, True, 2.5, ()):
        assert runtime_form(value) == value and type(runtime_form(value)) is type(value)


def test_tuples_keep_their_kind() -> None:
    operand = Operand(
        BufferRef("arena", 0, mul(N, 4)), (N, 3), "float32", LoopOffset(mul(M, 8), 1, special=BufferRef("input", 1, N))
    )
    found = runtime_form(operand)
    assert (
        isinstance(found, Operand) and isinstance(found.buffer, BufferRef) and isinstance(found.loop_offset, LoopOffset)
    )
    assert found.dims == (runtime_size(N), 3) and found.buffer.offset == runtime_size(mul(N, 4))
    assert found.loop_offset.stride == runtime_size(mul(M, 8))
    assert found.loop_offset.special == BufferRef("input", 1, runtime_size(N))
    assert runtime_form((operand, 4)) == (found, 4) and type(runtime_form((operand, 4))) is tuple


def test_buffers_are_placed_first() -> None:
    moved: list[BufferRef] = []

    def place(ref: BufferRef) -> BufferRef:
        moved.append(ref)
        return ref._replace(number=ref.number + 10, offset=add(ref.offset, N))

    operand = Operand(BufferRef("constant", 2, 8), (3,), "int8")
    found = runtime_form(operand, place)
    assert moved == [operand.buffer] and found.buffer == BufferRef("constant", 12, runtime_size(add(N, 8)))


def _schedule(**changes: Any) -> Schedule:
    given: dict[str, Any] = {
        "inputs": (TensorSpec("x", "float32", (N, 4)),),
        "outputs": (TensorSpec("y", "object", (N,), 0, "sequence"),),
        "steps": (),
        "constants": (),
        "arena_bytes": mul(N, 64),
        "symbols": {"n": (0, None), "m": (1, 9)},
        "requirements": (SizeRequirement(N, mul(M, 2), "node", relation="at_least"),),
        "slots": 3,
    }
    return Schedule(**{**given, **changes})


def test_a_program_has_the_border_of_its_schedule() -> None:
    steps = [Command(())]
    program = program_of(_schedule(), steps)
    assert program.inputs == (TensorSpec("x", "float32", (runtime_size(N), 4)),) and program.steps == tuple(steps)
    assert program.outputs == (TensorSpec("y", "object", (runtime_size(N),), 0, "sequence"),)
    assert (program.slots, dict(program.symbols)) == (3, {"n": (0, None), "m": (1, 9)})
    (requirement,) = program.requirements
    assert (requirement.node, requirement.relation) == ("node", "at_least")
    assert [holds(requirement, SizeEvaluator({"n": n, "m": 2})) for n in (3, 4)] == [False, True]


@pytest.mark.parametrize("initial", [None, 128, mul(M, 32)])
def test_memory_is_what_the_inputs_tell(initial: Dim | None) -> None:
    expected = mul(N, 64) if initial is None else initial
    assert program_of(_schedule(initial_arena_bytes=initial), ()).arena_bytes == runtime_size(expected)


def test_host_operators_are_all_that_is_left_without_code() -> None:
    x = Operand(BufferRef("input", 0), (N, 4), "float32")
    hosts = [HostStep("onnx", name.encode(), (x,), (x,), 0, name) for name in ("first", "second")]
    schedule = _schedule(steps=(hosts[0], CopyStep(x, x, 0), hosts[1]))
    assert host_calls(schedule) == [HostCall("onnx", name.encode(), (), (), name) for name in ("first", "second")]
