"""What is overwritten between steps: all that nothing needs any more."""

from __future__ import annotations

from fuseline.buffers import BufferRef, Operand
from fuseline.passes.schedule.dependencies import StepNeeds
from fuseline.passes.schedule.poison_dead_memory import poison_dead_memory
from fuseline.program.steps import CopyStep, PoisonStep

SIZES, OFFSETS = [16, 32, 64], [0, 16, 48]


def _step(wave: int) -> CopyStep:
    return CopyStep(Operand(BufferRef("input"), (4,), "float32"), Operand(BufferRef("output"), (4,), "float32"), wave)


def test_what_a_later_step_reads_stays_until_then() -> None:
    steps = [_step(0), _step(1), _step(2)]
    needs = [StepNeeds((), (), (0,)), StepNeeds((0,), (0,), (1,)), StepNeeds((1,), (0, 1), (2,))]
    made = list(poison_dead_memory(steps, needs, SIZES, OFFSETS))
    assert made[1::2] == steps
    assert made[::2] == [
        PoisonStep((), 0, begins=True),
        PoisonStep(((0, 16),), 0),
        PoisonStep(((0, 16), (16, 32)), 1),
        PoisonStep((), 2),
    ]


def test_steps_of_one_wave_keep_what_the_wave_behind_reads() -> None:
    needs = [StepNeeds((), (), (0,)), StepNeeds((), (), (1,)), StepNeeds((0,), (0,), ())]
    made = list(poison_dead_memory([_step(0), _step(0), _step(1)], needs, SIZES, OFFSETS))
    assert [step.live for step in made if isinstance(step, PoisonStep)] == [(), ((0, 16),), ((0, 16),), ()]


def test_a_program_that_does_nothing_still_begins() -> None:
    assert list(poison_dead_memory([], [], [], [])) == [PoisonStep((), 0, begins=True)]
