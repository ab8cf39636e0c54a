"""Running: values, threads, barriers, shapes, reuse of memory."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from fuseline.buffers import BufferRef
from fuseline.runtime import Session, TensorSpec
from fuseline.runtime.execution import Execution
from fuseline.runtime.memory import address_of, aligned_empty

X, Y = BufferRef("input", 0), BufferRef("output", 0)
N = ("sum", ((1, "n"),))


def _vector(name: str, size: Any) -> TensorSpec:
    return TensorSpec(name, "float32", (size,))


def _floats(count: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(count, dtype=np.float32)


def _chain(kit: Any, count: int, steps: int, threads: int, **more: Any) -> Session:
    """`steps` mirrors in a row, each behind a barrier, through two transients: any missing barrier shows in the
    numbers."""
    places = [X, *(BufferRef("arena", 0, (i % 2) * 4 * count) for i in range(steps - 1)), Y]
    commands = [kit.command("mirror", places[i : i + 2], count, barrier=i > 0) for i in range(steps)]
    artifact = kit.artifact(
        [_vector("x", count)], [_vector("y", count)], commands, arena_bytes=8 * count, threads=threads, **more
    )
    return Session(artifact)


@pytest.mark.parametrize("threads", [1, 2, 3, 4, 5, 8])
def test_values_and_barriers(kit: Any, threads: int) -> None:
    x = _floats(999)
    session = _chain(kit, 999, 9, threads)
    for _ in range(50):
        np.testing.assert_allclose(session.run({"x": x})["y"], x[::-1] + 9, rtol=1e-5)


def test_thousands_of_runs_at_two_threads(kit: Any) -> None:
    session = _chain(kit, 64, 21, 2)
    x = _floats(64)
    first = session.run({"x": x})["y"]
    np.testing.assert_allclose(first, x[::-1] + 21, rtol=1e-4)
    assert all(np.array_equal(session.run({"x": x})["y"], first) for _ in range(5000))


@pytest.mark.parametrize("threads", [2, 3])
def test_sleeping_workers_are_woken(kit: Any, threads: int) -> None:
    """Pauses of all lengths between runs: workers are met spinning, yielding, asleep and on their way there."""
    session = _chain(kit, 64, 5, threads)
    x, random = _floats(64), np.random.default_rng(0)
    for pause in random.uniform(0, 3e-4, 500):
        time.sleep(pause)
        np.testing.assert_allclose(session.run({"x": x})["y"], x[::-1] + 5, rtol=1e-4)


def test_many_more_threads_than_processors(kit: Any) -> None:
    session = _chain(kit, 999, 4, 16)
    x = _floats(999)
    for _ in range(30):
        np.testing.assert_allclose(session.run({"x": x})["y"], x + 4, rtol=1e-4, atol=1e-6)


def test_independent_grids_of_one_wave(kit: Any) -> None:
    """Three grids side by side, then one that reads all of them."""
    a, b = BufferRef("arena", 0, 0), BufferRef("arena", 0, 4096)
    steps = [
        kit.command("double", [X, a], 500),
        kit.command("increment", [X, b], 500),
        kit.command("add", [a, b, Y], 500, barrier=True),
    ]
    session = Session(kit.artifact([_vector("x", 500)], [_vector("y", 500)], steps, arena_bytes=8192, threads=2))
    x = _floats(500)
    for _ in range(300):
        np.testing.assert_allclose(session.run({"x": x})["y"], 3 * x + 1, rtol=1e-5, atol=1e-6)


def test_outputs_are_fresh_and_aligned(kit: Any) -> None:
    session = _chain(kit, 100, 1, 1)
    first, second = (session.run({"x": _floats(100)})["y"] for _ in range(2))
    assert address_of(first) % 64 == 0 and first.flags.c_contiguous
    assert not np.shares_memory(first, second)


def test_inputs_of_any_layout(kit: Any) -> None:
    session = _chain(kit, 100, 1, 1)
    wide = _floats(201)
    for x in (wide[1:101], wide[::2][:100], wide[::-1][:100]):
        np.testing.assert_array_equal(session.run({"x": x})["y"], x[::-1] + 1)


def test_aligned_input_is_read_in_place(kit: Any) -> None:
    x = aligned_empty((100,), np.dtype(np.float32))
    x[:] = _floats(100)
    kept = x.copy()
    np.testing.assert_array_equal(_chain(kit, 100, 1, 1).run({"x": x})["y"], kept[::-1] + 1)
    np.testing.assert_array_equal(x, kept)


@pytest.mark.parametrize(("alignment", "offset", "copies"), [(64, 2, 1), (8, 2, 0), (8, 1, 1), (4, 1, 0)])
def test_inputs_are_copied_only_where_the_artifact_asks_for_more(
    kit: Any, alignment: int, offset: int, copies: int
) -> None:
    session = _chain(kit, 100, 1, 1, input_alignment=alignment)
    x = aligned_empty((120,), np.dtype(np.float32))[offset : offset + 100]
    x[:] = _floats(100)
    np.testing.assert_array_equal(session.run({"x": x})["y"], x[::-1] + 1)
    (workspace,) = session._pool.idle  # pyright: ignore[reportPrivateUsage]
    assert [len(e._copies) for e in workspace.executions.values() if isinstance(e, Execution)] == [copies]  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("threads", [1, 2])
def test_symbolic_sizes(kit: Any, threads: int) -> None:
    grid = ("sum", ((1, ("div", ("sum", ((1, "n"), (15,))), 16)),))
    half = ("sum", ((4, "n"),))
    commands = [
        kit.command("increment", [X, BufferRef("arena", 0, half)], N, grid),
        kit.command("add", [X, BufferRef("arena", 0, half), Y], N, grid, barrier=True),
    ]
    session = Session(
        kit.artifact([_vector("x", N)], [_vector("y", N)], commands, arena_bytes=("sum", ((8, "n"),)), threads=threads)
    )
    for count in (5, 1, 300, 5, 7000, 64):
        x = _floats(count, count)
        np.testing.assert_allclose(session.run({"x": x})["y"], 2 * x + 1, rtol=1e-5, atol=1e-6)


def test_many_shapes_are_evicted_in_order(kit: Any) -> None:
    session = Session(kit.artifact([_vector("x", N)], [_vector("y", N)], [kit.command("double", [X, Y], N, 1)]))
    for count in [*range(1, 17), *range(1, 17)]:
        x = _floats(count)
        np.testing.assert_array_equal(session.run({"x": x})["y"], 2 * x)


@pytest.mark.parametrize("threads", [1, 2])
def test_concurrent_runs(kit: Any, threads: int) -> None:
    session = _chain(kit, 500, 5, threads)
    wrong: list[int] = []

    def work(seed: int) -> None:
        x = _floats(500, seed)
        for _ in range(100):
            if not np.allclose(session.run({"x": x})["y"], x[::-1] + 5, rtol=1e-4):
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_sessions_of_different_width_share_the_team(kit: Any) -> None:
    sessions = [_chain(kit, 300, 4, threads) for threads in (4, 2, 3)]
    x = _floats(300)
    for _ in range(100):
        for session in sessions:
            np.testing.assert_allclose(session.run({"x": x})["y"], x + 4, rtol=1e-4, atol=1e-6)


def test_constants_and_copies(kit: Any) -> None:
    weights = _floats(40)
    steps = [
        kit.command("add", [X, BufferRef("constant", 0, 0), Y], 40),
        kit.command("copy", [X, BufferRef("output", 1)], 160, 1),
        kit.command("copy", [BufferRef("constant", 0, 80), BufferRef("output", 2)], 80, 1),
    ]
    outputs = [_vector("y", 40), _vector("same", 40), _vector("tail", 20)]
    out = Session(kit.artifact([_vector("x", 40)], outputs, steps, [weights])).run({"x": (x := _floats(40, 1))})
    np.testing.assert_array_equal(out["y"], x + weights)
    np.testing.assert_array_equal(out["same"], x)
    np.testing.assert_array_equal(out["tail"], weights[20:])


@pytest.mark.parametrize("count", [1, 63, 64, 65, 64 * 1024, 200_001])
def test_copy_kernel_moves_every_byte(kit: Any, count: int) -> None:
    x = np.random.default_rng(count).integers(0, 255, count, np.uint8)
    spec = [TensorSpec(name, "uint8", (count,)) for name in "xy"]
    session = Session(
        kit.artifact(spec[:1], spec[1:], [kit.command("copy", [X, Y], count, -(-count // 65536))], threads=2)
    )
    np.testing.assert_array_equal(session.run({"x": x})["y"], x)


def test_program_without_steps(kit: Any) -> None:
    assert Session(kit.artifact([], [], [])).run({}) == {}


def test_tiny_programs_stay_on_the_calling_thread(kit: Any) -> None:
    session = _chain(kit, 64, 3, 2, serial_below_ns=1)
    x = _floats(64)
    np.testing.assert_allclose(session.run({"x": x})["y"], x[::-1] + 3, rtol=1e-5)
    (workspace,) = session._pool.idle  # pyright: ignore[reportPrivateUsage]
    assert [execution.threads for execution in workspace.executions.values()] == [1]


def test_a_part_finds_memory_as_the_last_run_left_it(kit: Any) -> None:
    """The last command alone makes the same of what the ones before it wrote; without a run there is nothing of
    theirs."""
    session, x = _chain(kit, 99, 4, 1), _floats(99)
    program = session.artifact.program
    last = program._replace(steps=program.steps[-1:])
    np.testing.assert_array_equal(session.part(last).run({"x": x})["y"], np.ones(99, np.float32))
    whole = session.run({"x": x})["y"]
    np.testing.assert_array_equal(session.part(last).run({"x": x})["y"], whole)
    np.testing.assert_array_equal(session.part(last).run({"x": x + 1})["y"], whole)
