"""Steps that overwrite memory which nothing needs: what reads it shows, what is live stays."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from fuseline.buffers import BufferRef, Operand
from fuseline.compilation import compile_program
from fuseline.compile_options import CompileOptions
from fuseline.errors import FuselineError
from fuseline.runtime import Session, TensorSpec, host
from fuseline.runtime.poison import poison
from fuseline.runtime.program import HostCall, Poison, program_from_json, program_to_json
from tests.small_models import diamond

X, Y, FIRST, SECOND = BufferRef("input"), BufferRef("output"), BufferRef("arena"), BufferRef("arena", 0, 256)
SPECS = [TensorSpec(name, "float32", (64,)) for name in "xy"]


def test_live_ranges_stay() -> None:
    memory = np.arange(100, dtype=np.uint8)
    poison(memory, [(10, 5), (12, 8), (99, 1), (0, 0)])
    live = [*range(10, 20), 99]
    assert [i for i in range(100) if memory[i] != 0xFF] == live and memory[live].tolist() == live


def _session(kit: Any, live: Any, **more: Any) -> Session:
    """y = 2x by way of the arena, where only `live` stays in between; the second half of y is never written."""
    steps = [
        Poison((), True),
        kit.command("double", [X, FIRST], 64),
        Poison(live),
        kit.command("copy", [FIRST, Y], 128, 1),
    ]
    return Session(kit.artifact(SPECS[:1], SPECS[1:], steps, arena_bytes=512, **more))


@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_dead_is_not_a_number(kit: Any, threads: int) -> None:
    x = np.random.default_rng(0).standard_normal(64, dtype=np.float32)
    for _ in range(2):
        kept = _session(kit, ((0, 256),), threads=threads).run({"x": x})["y"]
        np.testing.assert_array_equal(kept[:32], 2 * x[:32])
        assert np.isnan(kept[32:]).all()  # what no step writes of an output
        half = _session(kit, ((0, 64),), threads=threads).run({"x": x})["y"]
        np.testing.assert_array_equal(half[:16], 2 * x[:16])
        assert np.isnan(half[16:]).all()


def test_a_view_that_a_host_operator_keeps_shows(kit: Any) -> None:
    """An executor that breaks its contract and answers, much later, what was lent to it."""
    lent: list[Any] = []
    host.register("test-keeps", lambda node, inputs: lent.append(inputs[0]) or [inputs[0]])  # pyright: ignore[reportArgumentType]
    tensor = Operand(FIRST, (64,), "float32"), Operand(Y, (64,), "float32")
    steps = [
        kit.command("double", [X, FIRST], 64),
        HostCall("test-keeps", b"", (tensor[0],), (tensor[1],), "Keep_1"),
        Poison(()),
    ]
    x = np.ones(64, np.float32)
    session = Session(kit.artifact(SPECS[:1], SPECS[1:], steps, arena_bytes=512))
    np.testing.assert_array_equal(session.run({"x": x})["y"], 2 * x)
    assert np.isnan(lent[0]).all()


def test_the_file_format_has_them(kit: Any) -> None:
    program = _session(kit, ((("sum", ((64, "n"),)), 4),)).artifact.program
    assert program_from_json(json.loads(json.dumps(program_to_json(program)))) == program


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_a_compile_asks_for_them(target: str) -> None:
    """One step before the first and one behind each; behind the last nothing is live."""
    plain, poisoned = (
        compile_program(diamond(), CompileOptions(target=target, threads=1, fusion="none", poison=flag))
        for flag in (False, True)
    )
    if target == "cpu":
        steps = poisoned.program.steps
        assert (
            steps[0] == Poison((), True) and steps[-1] == Poison(()) and len(steps) == 2 * len(plain.program.steps) + 1
        )
        assert [step for step in steps if not isinstance(step, Poison)] == list(plain.program.steps)
        assert any(step.live for step in steps if isinstance(step, Poison))
    else:
        steps, before = (program.schedule.steps for program in (poisoned, plain))  # pyright: ignore[reportAttributeAccessIssue]
        assert len(steps) == 2 * len(before) + 1


def test_the_option_is_a_flag() -> None:
    with pytest.raises(FuselineError, match="E0501"):
        CompileOptions(poison="yes")  # pyright: ignore[reportArgumentType]
