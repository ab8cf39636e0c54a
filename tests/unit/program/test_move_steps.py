"""Steps that move bytes: what they read and write, and changes of them."""

from __future__ import annotations

import pytest

from fuseline.buffers import BufferRef, Operand
from fuseline.program.steps import CopyStep, DispatchStep, FillStep, InsertStep, MoveStep, changed

A, B, C = (Operand(BufferRef("input", number), (4,), "float32") for number in range(3))

MOVES = [CopyStep(A, B, 3), FillStep(A, B, 3), InsertStep(A, B, 3, offsets=(1,))]


@pytest.mark.parametrize("step", MOVES)
def test_what_is_written_is_the_target_and_an_insertion_reads_it_too(step: MoveStep):
    assert step.results == (B,)
    assert step.operands == ((A, B) if isinstance(step, InsertStep) else (A,))


@pytest.mark.parametrize("step", MOVES)
def test_a_changed_step_is_of_its_kind(step: MoveStep):
    moved = step.mapped(lambda part: C if part is A else part)
    assert type(moved) is type(step) and (moved.source, moved.target, moved.label) == (C, B, step.label)
    later = changed(step, wave=7)
    assert later.wave == 7 and later != step and changed(later, wave=3) == step


def test_steps_of_different_kinds_differ():
    assert CopyStep(A, B, 0, "move") != FillStep(A, B, 0, "move")


def test_a_launch_is_changed_likewise():
    launch = DispatchStep("e", "f", (A,), (B,), (), 0)
    assert changed(launch, wave=2) == DispatchStep("e", "f", (A,), (B,), (), 2)
