"""Schedules executed step by step: a hand-made plan gives what it says, and a wrong one shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.func import FuncOp

from fuseline.buffers import BufferRef, LoopOffset, Operand, TensorSpec
from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.ir.dim import add, mul, symbol
from fuseline.ir.text import parse_module
from fuseline.program.schedule import Schedule
from fuseline.program.steps import CopyStep, DispatchStep, LoopStep, PoisonStep, SizesStep, Step
from fuseline.targets.interpreter.module import Interpreter
from fuseline.targets.interpreter.session import InterpretedProgram, InterpretedSession
from fuseline.targets.runtime_form import host_calls, program_of

N = symbol("n", 1, 9)
ENTRY = """func.func @double(%x: tensor<?xf32>, %n: index {fuseline.name = "s0"}) -> tensor<?xf32> {
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.elementwise <add> ins(%x, %x : tensor<?xf32>, tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}"""


def _entries() -> dict[str, FuncOp]:
    (function,) = parse_module(ENTRY, new_context()).ops
    assert isinstance(function, FuncOp)
    return {"double": function}


def _at(
    segment: Any, number: int = 0, offset: Any = 0, dims: Any = (N,), dtype: str = "float32", **more: Any
) -> Operand:
    return Operand(BufferRef(segment, number, offset), dims, dtype, **more)


X, Y = _at("input"), _at("output")


def _session(*steps: Step, arena: Any = 0, constants: Any = (), outputs: Any = None) -> InterpretedSession:
    spec = TensorSpec("x", "float32", (N,))
    schedule = Schedule((spec,), outputs or (spec._replace(name="y"),), steps, tuple(constants), arena, {"n": (1, 9)})
    return InterpretedProgram(schedule, _entries(), program_of(schedule, host_calls(schedule))).session(3)


def _double(source: Operand, target: Operand, size: Any = N) -> DispatchStep:
    return DispatchStep("double", "double", (source,), (target,), (("s0", size),), 0)


def _x() -> Any:
    return np.random.default_rng().standard_normal(np.random.default_rng().integers(1, 10)).astype(np.float32)


def test_dispatches_run_through_the_arena() -> None:
    between = _at("arena", offset=mul(N, 4))
    session = _session(_double(X, between), _double(between, Y), arena=mul(N, 8))
    x = _x()
    np.testing.assert_array_equal(session.run({"x": x})["y"], 4 * x)
    assert (session.threads, [spec.name for spec in session.inputs]) == (1, ["x"])


def test_an_arena_that_is_too_small_shows() -> None:
    between = _at("arena", offset=mul(N, 4))
    with pytest.raises(FuselineError, match="the schedule reads bytes") as caught:
        _session(_double(X, between), _double(between, Y), arena=mul(N, 4)).run({"x": _x()})
    assert caught.value.code == "E0901"


def test_what_was_never_written_is_no_number_that_was_computed() -> None:
    x = _x()
    found = _session(_double(_at("arena"), Y), arena=mul(N, 4)).run({"x": x})["y"]
    assert not np.isin(found, [0.0]).any()


def test_copies_and_sizes() -> None:
    outputs = (TensorSpec("y", "float32", (N,)), TensorSpec("shape", "int64", (2,)))
    sizes = SizesStep((mul(N, 3), 7), _at("output", 1, dims=(2,), dtype="int64"), 0)
    session = _session(CopyStep(X, Y, 0), sizes, outputs=outputs)
    x = _x()
    found = session.run({"x": x})
    np.testing.assert_array_equal(found["y"], x)
    assert found["shape"].tolist() == [3 * len(x), 7]
    assert not np.shares_memory(found["y"], x)


def test_a_copy_keeps_bytes() -> None:
    outputs = (TensorSpec("y", "int32", (N,)),)
    session = _session(CopyStep(X, Y._replace(dtype="int32"), 0), outputs=outputs)
    x = _x()
    np.testing.assert_array_equal(session.run({"x": x})["y"], x.view(np.int32))


def test_constants_are_read_where_they_lie() -> None:
    rows = np.random.default_rng().standard_normal((4, 3)).astype(np.float32)
    outputs = (TensorSpec("y", "float32", (3,)),)
    step = _double(_at("constant", offset=24, dims=(3,)), _at("output", dims=(3,)), 3)
    found = _session(step, constants=[rows], outputs=outputs).run({"x": _x()})["y"]
    np.testing.assert_array_equal(found, 2 * rows[2])


@pytest.mark.parametrize("trips", [1, 2, 5])
def test_a_loop_with_a_state_that_alternates(trips: int) -> None:
    """The state is doubled in each iteration; it begins with the input, and ends in the output."""
    read = _at("arena", loop_offset=LoopOffset(64, 1, True, BufferRef("input", 0)))
    write = _at("arena", loop_offset=LoopOffset(64, 0, True, BufferRef("output", 0), trips - 1))
    loop = LoopStep(trips, (_double(read, write),), (X,), (Y,), 0)
    x = _x()
    np.testing.assert_array_equal(_session(loop, arena=128).run({"x": x})["y"], 2.0**trips * x)


def test_a_loop_along_rows() -> None:
    """Twice the first row of the input, then twice the others, from the last one on."""
    read = _at(
        "input", offset=mul(add(N, -1), 4), dims=(1,), loop_offset=LoopOffset(-4, 1, special=BufferRef("input", 0, 0))
    )
    write = _at("output", dims=(1,), loop_offset=LoopOffset(4))
    x = np.arange(1, 6, dtype=np.float32)
    found = _session(LoopStep(N, (_double(read, write, 1),), (X,), (Y,), 0)).run({"x": x})["y"]
    np.testing.assert_array_equal(found, 2 * np.array([x[0], *x[:0:-1]]))


def test_dead_memory_is_poisoned() -> None:
    between = _at("arena")
    live = PoisonStep(((0, mul(N, 4)),), 0)
    dead = PoisonStep((), 0)
    x = _x()
    kept = _session(_double(X, between), live, _double(between, Y), arena=mul(N, 4)).run({"x": x})["y"]
    lost = _session(_double(X, between), dead, _double(between, Y), arena=mul(N, 4)).run({"x": x})["y"]
    np.testing.assert_array_equal(kept, 4 * x)
    assert not np.array_equal(lost, 4 * x)


@pytest.mark.parametrize(
    ("feeds", "code"),
    [
        ({}, "E0202"),
        ({"x": np.zeros(10, np.float32)}, "E0203"),
        ({"x": np.zeros(2)}, "E0204"),
        ({"x": 1, "z": 2}, "E0201"),
    ],
)
def test_feeds_are_refused_as_by_other_sessions(feeds: dict[str, Any], code: str) -> None:
    with pytest.raises(FuselineError) as caught:
        _session(CopyStep(X, Y, 0)).run(feeds)
    assert caught.value.code == code


def test_nothing_is_saved(tmp_path: Any) -> None:
    with pytest.raises(FuselineError, match="E0502"):
        _session().artifact.save(tmp_path / "m.fuse")
    assert not list(tmp_path.iterdir())


def test_a_module_without_names_has_numbers() -> None:
    text = (
        "func.func @main(%a: tensor<2xf32>, %b: tensor<2xf32> {fuseline.name "
        '= "b"}) -> tensor<2xf32> { return %a : tensor<2xf32> }'
    )
    program = Interpreter(parse_module(text, new_context()))
    assert (program.inputs, program.outputs) == (("input0", "b"), ("result0",))
    a = np.ones(2, np.float32)
    found = program.run({"input0": a, "b": a})["result0"]
    np.testing.assert_array_equal(found, a)
    assert not np.shares_memory(found, a)
    with pytest.raises(FuselineError) as caught:
        program.run({"a": a})
    assert caught.value.code == "E0201" and caught.value.hint == "inputs: input0, b"
