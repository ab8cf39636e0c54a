"""Commands of several arms: one launch, no barrier inside, the arms' grids shared by cost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuseline.buffers import BufferRef, Operand
from fuseline.runtime import Session, TensorSpec, host, load
from fuseline.runtime.artifact import Artifact
from fuseline.runtime.program import Command, HostCall

X, Y = BufferRef("input", 0), BufferRef("output", 0)
A, B = BufferRef("arena", 0, 0), BufferRef("arena", 0, 4096)


def _artifact(kit: Any, threads: int, **more: Any) -> Artifact:
    """`2 x + (x + 1)` of 900 numbers: two arms, then their sum."""
    parts = (kit.arm("double", [X, A], 900, cost_ns=1), kit.arm("increment", [X, B], 900, cost_ns=9))
    spec = [TensorSpec(name, "float32", (900,)) for name in "xy"]
    steps = [Command(parts, label="parts"), kit.command("add", [A, B, Y], 900, barrier=True)]
    return kit.artifact(spec[:1], spec[1:], steps, arena_bytes=8192, threads=threads, **more)


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_all_arms_run_before_the_next_barrier(kit: Any, threads: int) -> None:
    session = Session(_artifact(kit, threads))
    random = np.random.default_rng(threads)
    for _ in range(200):
        x = random.standard_normal(900, dtype=np.float32)
        np.testing.assert_allclose(session.run({"x": x})["y"], 3 * x + 1, rtol=1e-5, atol=1e-5)


def test_saved_and_loaded(kit: Any, tmp_path: Path) -> None:
    artifact = _artifact(kit, 2)
    artifact.save(tmp_path / "m.fuse")
    session = load(tmp_path / "m.fuse", verify=True)
    assert session.artifact.program.steps == artifact.program.steps
    x = np.random.default_rng(0).standard_normal(900, dtype=np.float32)
    for _ in range(2):
        np.testing.assert_allclose(session.run({"x": x})["y"], 3 * x + 1, rtol=1e-5, atol=1e-5)


def test_the_cost_of_all_arms_decides_whether_threads_are_worth_it(kit: Any) -> None:
    for limit, threads in ((10, 2), (11, 1)):
        session = Session(_artifact(kit, 2, serial_below_ns=limit))
        x = np.random.default_rng(0).standard_normal(900, dtype=np.float32)
        session.run({"x": x})
        (workspace,) = session._pool.idle  # pyright: ignore[reportPrivateUsage]
        assert [execution.threads for execution in workspace.executions.values()] == [threads]


@pytest.mark.parametrize("threads", [1, 2])
def test_host_calls_stand_between_all_rows_of_their_neighbours(kit: Any, threads: int) -> None:
    """`2 x` and `x + 1`, their sum in Python, then twice and once more of that."""
    host.register("test-arms", lambda node, inputs: [inputs[0] + inputs[1]])  # pyright: ignore[reportOperatorIssue]
    a, b, c, u, v = (BufferRef("arena", 0, 4096 * i) for i in range(5))
    spec = [TensorSpec(name, "float32", (900,)) for name in "xy"]

    def vector(place: BufferRef) -> Operand:
        return Operand(place, (900,), "float32")

    steps = [
        Command((kit.arm("double", [X, a], 900), kit.arm("increment", [X, b], 900))),
        HostCall("test-arms", b"", (vector(a), vector(b)), (vector(c),), "sum"),
        Command((kit.arm("double", [c, u], 900), kit.arm("increment", [c, v], 900))),
        kit.command("add", [u, v, Y], 900, barrier=True),
    ]
    session = Session(kit.artifact(spec[:1], spec[1:], steps, arena_bytes=4096 * 5, threads=threads))
    x = np.random.default_rng(0).standard_normal(900, dtype=np.float32)
    for _ in range(20):
        np.testing.assert_allclose(session.run({"x": x})["y"], 3 * (3 * x + 1) + 1, rtol=1e-5, atol=1e-5)
