"""Who owns what crosses the border: nothing that is boxed or handed out lies in memory that somebody else writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from fuseline.buffers import BufferRef, Operand
from fuseline.runtime import Session, TensorSpec, host
from fuseline.runtime.ownership import hand_out, lend, take
from fuseline.runtime.program import HostCall

X, Y, ARENA, CONSTANT = BufferRef("input"), BufferRef("output"), BufferRef("arena"), BufferRef("constant")


def _random(seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal((4, 6), dtype=np.float32)


def test_lent_values_cannot_be_written() -> None:
    x = _random()
    lent: Any = lend({"a": [x, (x,)], "b": None})
    assert lent["b"] is None
    for view in (lent["a"][0], lent["a"][1][0]):
        assert np.shares_memory(view, x)
        with pytest.raises(ValueError, match="read-only"):
            view[0] = 0
    assert x.flags.writeable


WAYS: list[tuple[str, Callable[[Any], Any]]] = [
    ("itself", lambda x: x),
    ("a view", lambda x: x[1:, ::2].T),
    ("inside a list", lambda x: [x[0], x[1]]),
    ("deep inside", lambda x: [{"k": (x.reshape(-1),)}]),
    ("beyond NumPy's books", lambda x: np.frombuffer(memoryview(x).cast("B"), np.float32)),
]


def _leaf(value: Any) -> Any:
    while not isinstance(value, np.ndarray):
        value = next(iter(value.values() if isinstance(value, dict) else value))
    return value


@pytest.mark.parametrize("way", [way for _, way in WAYS], ids=[name for name, _ in WAYS])
def test_what_lies_in_lent_memory_is_copied(way: Callable[[Any], Any]) -> None:
    memory = _random()
    answer = way(lend(memory))
    wanted = _leaf(answer).copy()
    boxed: Any = take(answer, [memory])
    memory[:] = 7
    np.testing.assert_array_equal(_leaf(boxed), wanted)


def test_what_is_fresh_is_not_copied_and_comes_out_writable() -> None:
    fresh = _random()
    boxed = take([fresh], [_random(1)])
    [[out]] = hand_out([boxed])
    assert np.shares_memory(out, fresh)
    out[0] = 1


def test_each_array_handed_out_is_the_callers_alone() -> None:
    fed, fresh = _random(), _random(1)
    inputs = [lend(fed)]
    kept = _random(2)
    kept.flags.writeable = False  # as an executor keeps a constant
    boxed = [
        take(x, [])
        for x in (
            inputs[0],
            [fresh, fresh[1:]],
            fresh.reshape(-1),
            kept,
            kept[1:],
            fresh.T,
            np.broadcast_to(np.float32(3), (2, 2)),
        )
    ]
    outputs = hand_out(boxed, inputs)
    leaves = [outputs[0], *outputs[1], *outputs[2:]]
    wanted = [array.copy() for array in (fed, fresh, fresh[1:], fresh.reshape(-1), kept, kept[1:], fresh.T)] + [
        np.full((2, 2), 3, np.float32)
    ]
    for array, expected in zip(leaves, wanted, strict=True):
        np.testing.assert_array_equal(array, expected)
        array[...] = -1  # would show in those that come later
    np.testing.assert_array_equal(fed, _random())
    np.testing.assert_array_equal(kept, _random(2))


def test_overlaps_are_found_among_many() -> None:
    """Ranges inside, across and beside ranges that are taken; empty arrays lie nowhere."""
    whole = np.arange(1000)
    rng = np.random.default_rng(3)
    for _ in range(50):
        cuts = [sorted(rng.integers(0, 1000, 2)) for _ in range(12)]
        parts = [whole[low:high] for low, high in cuts]
        out = hand_out([take(part, []) for part in parts[6:]], [lend(part) for part in parts[:6]])
        for i, array in enumerate(out):
            np.testing.assert_array_equal(array, parts[6 + i])
            assert not any(np.shares_memory(array, other) for other in [*parts[:6], *out[:i]])


# -- programs ----------------------------------------------------------------------------------------------------------


def _tensor(place: BufferRef) -> Operand:
    return Operand(place, (64,), "float32")


BOXED = Operand(BufferRef("boxed", 0), (), "object")


def _program(kit: Any, steps: Sequence[Any], outputs: Sequence[TensorSpec], **more: Any) -> Session:
    constants = [np.arange(64, dtype=np.float32)]
    return Session(
        kit.artifact([TensorSpec("x", "float32", (64,))], outputs, steps, constants, arena_bytes=256, slots=1, **more)
    )


HELD_OUTPUT = TensorSpec("kept", "object", (), 0, "any_rank(tensor(float32))")
NUMBERS = TensorSpec("y", "float32", (64,))


@pytest.mark.parametrize("place", [ARENA, CONSTANT, X, Y], ids=lambda place: place.segment)
def test_a_held_view_keeps_its_numbers_when_memory_is_used_again(kit: Any, place: BufferRef) -> None:
    """a = 2x; the host holds `place`; a = a + 1: what was boxed is what `place` was when it was boxed, also in the next
    run."""
    host.register("test-view", lambda node, inputs: [inputs[0][:]])  # pyright: ignore[reportOptionalSubscript]
    number = HELD_OUTPUT._replace(slot=0)
    steps = [
        kit.command("double", [X, ARENA], 64),
        kit.command("copy", [ARENA, BufferRef("output", 1)], 256, 1),
        HostCall("test-view", b"", (_tensor(place if place is not Y else BufferRef("output", 1)),), (BOXED,), "View_1"),
        kit.command("increment", [ARENA, BufferRef("output", 1)], 64),
        kit.command("copy", [BufferRef("output", 1), ARENA], 256, 1),
    ]
    session = _program(kit, steps, [number, NUMBERS])
    x = np.random.default_rng(5).standard_normal(64, dtype=np.float32)
    given = x.copy()
    first = session.run({"x": x})
    wanted = {"arena": 2 * given, "constant": np.arange(64), "input": given, "output": 2 * given}[place.segment]
    for _ in range(2):
        np.testing.assert_array_equal(first["kept"], wanted)
        np.testing.assert_array_equal(first["y"], 2 * given + 1)
        session.run({"x": -x})
    first["kept"][:] = 100  # the caller's alone
    np.testing.assert_array_equal(session.run({"x": x})["kept"], wanted)
    np.testing.assert_array_equal(x, given)


@pytest.mark.parametrize("place", [ARENA, CONSTANT, X], ids=lambda place: place.segment)
def test_an_operator_that_writes_its_operand_is_refused(kit: Any, place: BufferRef) -> None:
    def scribble(node: bytes, inputs: Sequence[Any]) -> list[Any]:
        inputs[0][0] = 5
        return [inputs[0]]

    host.register("test-scribble", scribble)
    session = _program(kit, [HostCall("test-scribble", b"", (_tensor(place),), (_tensor(Y),), "Bad_1")], [NUMBERS])
    x = np.ones(64, np.float32)
    with pytest.raises(Exception, match=r"E0106 \[Bad_1\].*read-only"):
        session.run({"x": x})
    assert x[0] == 1
