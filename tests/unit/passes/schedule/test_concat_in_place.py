"""Concats that are memory: their parts are written where they belong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import math
from xdsl.ir import SSAValue

from fuseline.buffers import BufferRef
from fuseline.compilation import lower
from fuseline.errors import FuselineError
from fuseline.ir import dim as d
from fuseline.ir.context import new_context
from fuseline.phase_runner import run_phases
from fuseline.pipeline import CompileOptions
from fuseline.program.schedule import Schedule, bytes_of
from fuseline.program.steps import CopyStep, DispatchStep
from fuseline.runtime.session import Session
from fuseline.targets import create_target
from tests.unit.passes.fusion.programs import Program

ScheduleOf = Callable[..., Schedule]

T = "tensor<64xf32>"


def _one(result: str, operand: str) -> str:
    return f"%{result} = flow.dispatch @one::@one_entry(%{operand}, %n) : ({T}, index) -> {T}\n"


def _concat(result: str, *parts: str, sizes: tuple[int, ...] = ()) -> str:
    sizes = sizes or (64,) * len(parts)
    types = ", ".join(f"tensor<{size}xf32>" for size in sizes)
    return (
        f"%{result} = tensor.concat dim(0) {', '.join(f'%{part}' for part in parts)} : ({types}) -> "
        f"tensor<{sum(sizes)}xf32>\n"
    )


def _main(body: str, result: str, size: int) -> str:
    return f"""
  func.func @main(%x: {T}) -> tensor<{size}xf32> {{
    %n = arith.constant 64 : index
    {body}
    func.return %{result} : tensor<{size}xf32>
  }}"""


def _dispatches(schedule: Schedule) -> list[DispatchStep]:
    return [step for step in schedule.steps if isinstance(step, DispatchStep)]


def test_parts_are_written_into_the_output(schedule_of: ScheduleOf) -> None:
    schedule = schedule_of(_main(_one("a", "x") + _one("b", "a") + _concat("r", "a", "b"), "r", 128))
    assert [step.results[0].buffer for step in _dispatches(schedule)] == [
        BufferRef("output", 0),
        BufferRef("output", 0, 256),
    ]
    assert schedule.arena_bytes == 0 and len(schedule.steps) == 2


def test_who_reads_a_part_waits_for_that_part_only(schedule_of: ScheduleOf) -> None:
    body = (
        _one("a", "x")
        + _one("b", "x")
        + _one("b2", "b")
        + _one("c", "a")
        + _concat("k", "a", "b2")
        + _concat("r", "c", "c")
    )
    wave = {step.results[0].buffer: step.wave for step in _dispatches(schedule_of(_main(body, "r", 128)))}
    assert sorted(wave.values()) == [0, 0, 1, 1]  # c reads a, which lies in the same buffer as b2


def test_who_reads_the_whole_waits_for_every_part(schedule_of: ScheduleOf) -> None:
    flat = "%f = tensor.extract_slice %k[32] [64] [1] : tensor<128xf32> to tensor<64xf32>\n"
    schedule = schedule_of(
        _main(_one("a", "x") + _one("b", "a") + _concat("k", "a", "b") + flat + _one("r", "f"), "r", 64)
    )
    *_, last = _dispatches(schedule)
    assert last.wave == 2
    assert d.sub(last.operands[0].buffer.offset, _dispatches(schedule)[0].results[0].buffer.offset) == 128
    assert schedule.arena_bytes == 512


def test_what_no_dispatch_makes_is_copied(schedule_of: ScheduleOf) -> None:
    schedule = schedule_of(_main(_one("a", "x") + _concat("r", "x", "a"), "r", 128))
    (copy,) = (step for step in schedule.steps if isinstance(step, CopyStep))
    assert (copy.source.buffer, copy.target.buffer, bytes_of(copy.target)) == (
        BufferRef("input", 0),
        BufferRef("output", 0),
        256,
    )
    assert _dispatches(schedule)[0].results[0].buffer == BufferRef("output", 0, 256)


def test_a_part_lies_in_one_concat_and_is_copied_into_the_next(schedule_of: ScheduleOf) -> None:
    body = _one("a", "x") + _one("b", "a") + _concat("c", "a", "b") + _concat("d", "b", "c", sizes=(64, 128))
    schedule = schedule_of(_main(body, "d", 192))
    (copy,) = (step for step in schedule.steps if isinstance(step, CopyStep))
    assert [step.results[0].buffer for step in _dispatches(schedule)] == [
        BufferRef("output", 0, 256),
        BufferRef("output", 0, 512),
    ]
    assert (copy.source.buffer, copy.target.buffer) == (BufferRef("output", 0, 512), BufferRef("output", 0))
    assert copy.wave == 2


def test_a_concat_that_has_to_be_a_dispatch_is_refused(schedule_of: ScheduleOf) -> None:
    with pytest.raises(FuselineError, match=r"E0305.*tensor\.concat"):
        schedule_of(_main(_one("a", "x") + _concat("r", "x", "a", "x"), "r", 192))


def test_arguments_are_copied_side_by_side(schedule_of: ScheduleOf) -> None:
    schedule = schedule_of(_main(_concat("r", "x", "x", "x"), "r", 192))
    found = [step for step in schedule.steps if isinstance(step, CopyStep)]
    assert [(step.wave, step.source.buffer, step.target.buffer) for step in found] == [
        (0, BufferRef("input", 0), BufferRef("output", 0, offset)) for offset in (0, 256, 512)
    ]
    assert not _dispatches(schedule)


# whole programs -------------------------------------------------------------------------------------------------------


def _session(p: Program, target: str) -> Any:
    """The program, op by op, with no dispatch for its concat."""
    kind = create_target(target, 2)
    options, ctx = CompileOptions(target=target, threads=2, fusion="none"), new_context()
    ctx.target = kind.description
    run_phases(p.module, ctx, options)
    assert not any(dispatch.root == "concat" for dispatch in ctx.records.dispatches)
    made: Any = lower(p.module, ctx, options, kind)
    return made.session() if target == "interpreter" else Session(made)


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize("links", [3, 40])
def test_results_of_a_chain(links: int, target: str) -> None:
    """More parts than a dispatch binds buffers, and one that is an argument."""
    p = Program((3, 8), (8, 8), (2, 8))
    states: list[SSAValue] = [p.x[0]]
    for _ in range(links):
        states.append(p.unary(p.matmul(states[-1], p.x[1]), math.TanhOp))
    session = _session(p.done(p.concat(*states[1:], p.x[2], axis=0)), target)
    rng = np.random.default_rng(links)
    x, w, z = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((3, 8), (8, 8), (2, 8)))
    expected = [x]
    for _ in range(links):
        expected.append(np.tanh(expected[-1] @ w))
    feeds = dict(zip((spec.name for spec in session.inputs), (x, w, z), strict=True))
    for _ in range(2):
        (result,) = session.run(feeds).values()
        np.testing.assert_allclose(result, np.concatenate([*expected[1:], z]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", ["interpreter", "cpu"])
@pytest.mark.parametrize("columns", [1, 7, 33])
def test_parts_of_unknown_width(columns: int, target: str) -> None:
    """Places are expressions of the sizes."""
    p = Program((3, None))
    a = p.unary(p.x[0])
    b = p.unary(a, math.TanhOp)
    session = _session(p.done(p.unary(p.concat(a, b, p.x[0], axis=0), math.SinOp)), target)
    x = np.random.default_rng(columns).uniform(-1, 1, (3, columns)).astype(np.float32)
    (result,) = session.run({session.inputs[0].name: x}).values()
    np.testing.assert_allclose(result, np.sin(np.concatenate([np.exp(x), np.tanh(np.exp(x)), x])), rtol=1e-4, atol=1e-5)
