"""Sizes that a host operator tells while the program runs: later steps, the arena and the outputs follow them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuseline.buffers import BufferRef, Operand
from fuseline.errors import FuselineError
from fuseline.runtime import Session, TensorSpec, host, load
from fuseline.runtime.command_table import CommandTable
from fuseline.runtime.program import Arm, Command, HostCall, Program
from fuseline.runtime.staged import split_stages

N, M, K = (("sum", ((1, name),)) for name in "nmk")
FOUR_N = ("sum", ((64, ("div", ("sum", ((4, "n"), (63,))), 64)),))
BOTH = ("sum", ((64, ("div", ("sum", ((4, "n"), (63,))), 64)), (64, ("div", ("sum", ((4, "m"), (63,))), 64))))
GRID_N, GRID_M = (("sum", ((1, ("div", ("sum", ((1, name), (15,))), 16)),)) for name in "nm")
X, FIRST, KEPT = BufferRef("input"), BufferRef("arena", 0, 0), BufferRef("arena", 0, FOUR_N)


def _vector(place: BufferRef, size: Any) -> Operand:
    return Operand(place, (size,), "float32")


def _positive(node: bytes, inputs: Sequence[Any]) -> list[Any]:
    return [inputs[0][inputs[0] > 0]]


def _session(kit: Any, executor: str, threads: int = 1, result: Operand | None = None, **more: Any) -> Session:
    """a = 2x; b = the positive ones of a (on the host); outputs b + 1, a + 1, b itself: what was before the call is
    still there after it."""
    result = result or _vector(KEPT, M)
    outputs = [TensorSpec("b1", "float32", (M,)), TensorSpec("a1", "float32", (N,)), TensorSpec("b", "float32", (M,))]
    steps = [
        kit.command("double", [X, FIRST], N, GRID_N),
        HostCall(executor, b"", (_vector(FIRST, N),), (result,), "Compress_0", BOTH),
        kit.command("increment", [KEPT, BufferRef("output", 0)], M, GRID_M),
        kit.command("increment", [FIRST, BufferRef("output", 1)], N, GRID_N),
        kit.command("copy", [KEPT, BufferRef("output", 2)], ("sum", ((4, "m"),)), 1),
    ]
    return Session(
        kit.artifact([TensorSpec("x", "float32", (N,))], outputs, steps, arena_bytes=FOUR_N, threads=threads, **more)
    )


def _check(session: Session, x: Any) -> None:
    out, kept = session.run({"x": x}), 2 * x[x > 0]
    np.testing.assert_array_equal(out["b"], kept)
    np.testing.assert_array_equal(out["b1"], kept + 1)
    np.testing.assert_array_equal(out["a1"], 2 * x + 1)


@pytest.mark.parametrize("threads", [1, 2])
def test_sizes_follow_the_data(kit: Any, threads: int) -> None:
    host.register("test-positive", _positive)
    session = _session(kit, "test-positive", threads)
    for seed, count in enumerate((5, 300, 300, 1, 7000, 64, 5)):
        x = np.random.default_rng(seed).standard_normal(count, dtype=np.float32)
        _check(session, x)
        _check(session, -np.abs(x))
        _check(session, np.abs(x))


@pytest.mark.parametrize(("first", "launches"), [(True, 2), (False, 1)])
def test_nothing_is_launched_before_a_call_that_comes_first(
    kit: Any, monkeypatch: pytest.MonkeyPatch, first: bool, launches: int
) -> None:
    host.register("test-positive", _positive)
    ranges: list[tuple[int, int]] = []
    set_range = CommandTable.set_range
    monkeypatch.setattr(CommandTable, "set_range", lambda table, *rows: ranges.append(rows) or set_range(table, *rows))
    before = [kit.command("double", [X, FIRST], N, GRID_N)] if first else []
    steps = [
        *before,
        HostCall("test-positive", b"", (_vector(FIRST if first else X, N),), (_vector(KEPT, M),), "Compress_0", BOTH),
        kit.command("increment", [KEPT, BufferRef("output", 0)], M, GRID_M),
    ]
    sides = [TensorSpec("x", "float32", (N,))], [TensorSpec("y", "float32", (M,))]
    session = Session(kit.artifact(*sides, steps, arena_bytes=FOUR_N, threads=1))
    for x in (np.array([1, -2, 3], np.float32), np.array([-1], np.float32), np.arange(40, dtype=np.float32)):
        ranges.clear()
        (found,) = session.run({"x": x}).values()
        np.testing.assert_array_equal(found, (2 if first else 1) * x[x > 0] + 1)
        assert len(ranges) == launches


def test_from_many_threads_and_from_a_file(kit: Any, tmp_path: Path) -> None:
    host.register("test-positive", _positive)
    _session(kit, "test-positive", 2).artifact.save(tmp_path / "m.fuse")
    session, failures = load(tmp_path / "m.fuse"), list[BaseException]()

    def work(seed: int) -> None:
        try:
            for count in (10, 200, 3000):
                _check(session, np.random.default_rng(seed).standard_normal(count, dtype=np.float32))
        except AssertionError as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_a_result_that_is_an_output(kit: Any) -> None:
    host.register("test-positive", _positive)
    call = HostCall("test-positive", b"", (_vector(X, N),), (_vector(BufferRef("output"), M),))
    session = Session(kit.artifact([TensorSpec("x", "float32", (N,))], [TensorSpec("y", "float32", (M,))], [call]))
    assert session.run({"x": np.array([3, -1, 4], np.float32)})["y"].tolist() == [3, 4]
    assert session.run({"x": np.array([-1], np.float32)})["y"].shape == (0,)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(np.ones((2, 2), np.float32), "rank 2"), (np.ones(9, np.float32), "must be in 0..4"), (None, "0 results")],
)
def test_answers_that_do_not_fit_are_refused(kit: Any, answer: Any, reason: str) -> None:
    host.register("test-odd-size", lambda node, inputs: [] if answer is None else [answer])
    session = _session(kit, "test-odd-size", symbols={"n": (1, None), "m": (0, 4)})
    with pytest.raises(FuselineError, match=rf"E0107 \[Compress_0\].*{reason}"):
        session.run({"x": np.ones(3, np.float32)})


def test_a_known_size_must_be_answered(kit: Any) -> None:
    """The call also has a result of a size that the inputs determine."""
    host.register("test-two", lambda node, inputs: [np.ones(2, np.float32), np.ones(5, np.float32)])
    call = HostCall(
        "test-two", b"", (_vector(X, N),), (_vector(BufferRef("output"), M), _vector(BufferRef("output", 1), N))
    )
    specs = [TensorSpec("y", "float32", (M,)), TensorSpec("z", "float32", (N,))]
    session = Session(kit.artifact([TensorSpec("x", "float32", (N,))], specs, [call]))
    assert [array.shape for array in session.run({"x": np.ones(5, np.float32)}).values()] == [(2,), (5,)]
    with pytest.raises(FuselineError, match="E0107"):
        session.run({"x": np.ones(4, np.float32)})


def test_stages_end_where_sizes_turn_up() -> None:
    inputs = (TensorSpec("x", "float32", (N,)),)
    plain = HostCall("e", b"", (_vector(X, N),), (_vector(FIRST, N), None))
    first, second = (HostCall("e", b"", (), (_vector(FIRST, size),)) for size in (M, K))
    again = HostCall("e", b"", (), (_vector(FIRST, M),))
    command = Command((Arm(0, (), (), 1),))
    assert split_stages(Program(inputs, (), (command, plain, command))) == [((command, plain, command), None)]
    stages = split_stages(Program(inputs, (), (command, first, again, command, second)))
    assert stages == [((command,), first), ((again, command), second), ((), None)]
