"""Host operators run in Python between native ranges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fuseline.buffers import BufferRef, Operand
from fuseline.errors import FuselineError
from fuseline.runtime import Session, TensorSpec, host
from fuseline.runtime.program import HostCall

X, Y = BufferRef("input", 0), BufferRef("output", 0)


def _vector(place: BufferRef) -> Operand:
    return Operand(place, (64,), "float32")


def _session(kit: Any, name: str, threads: int = 1, **more: Any) -> Session:
    """double(x) natively -> host call -> double natively."""
    first, second = BufferRef("arena", 0, 0), BufferRef("arena", 0, 256)
    call = HostCall(
        name,
        b"node",
        (_vector(first), None, _vector(X), _vector(BufferRef("constant", 0))),
        (_vector(second),),
        "Foo_3",
    )
    steps = [kit.command("double", [X, first], 64), call, kit.command("double", [second, Y], 64)]
    specs = [TensorSpec(n, "float32", (64,)) for n in "xy"]
    return Session(
        kit.artifact(
            specs[:1], specs[1:], steps, [np.full(64, 7, np.float32)], arena_bytes=512, threads=threads, **more
        )
    )


@pytest.mark.parametrize("threads", [1, 2])
def test_values_pass_both_ways(kit: Any, threads: int) -> None:
    seen: list[Any] = []

    def execute(node: bytes, inputs: Sequence[Any]) -> list[Any]:
        seen.append((node, inputs[1]))
        return [inputs[0] + inputs[2] + inputs[3]]

    host.register("test-sum", execute)
    session = _session(kit, "test-sum", threads)
    x = np.random.default_rng(0).standard_normal(64, dtype=np.float32)
    for _ in range(20):
        np.testing.assert_allclose(session.run({"x": x})["y"], 2 * (3 * x + 7), rtol=1e-5)
    assert seen[0] == (b"node", None)


def test_host_call_straight_from_input_to_output(kit: Any) -> None:
    host.register("test-negate", lambda node, inputs: [-inputs[0]])  # pyright: ignore[reportOptionalOperand]
    specs = [TensorSpec(n, "float32", (64,)) for n in "xy"]
    session = Session(kit.artifact(specs[:1], specs[1:], [HostCall("test-negate", b"", (_vector(X),), (_vector(Y),))]))
    wide = np.arange(128, dtype=np.float32)
    np.testing.assert_array_equal(session.run({"x": wide[::2]})["y"], -wide[::2])


def test_operands_and_results_may_be_parts_of_inputs_and_outputs(kit: Any) -> None:
    host.register("test-part", lambda node, inputs: [inputs[0] * 10])
    specs = [TensorSpec(n, "float32", (64,)) for n in "xy"]
    part, rest = (Operand(BufferRef("input", 0, 4 * at), (2, 16), "float32") for at in (32, 0))
    low, high = (Operand(BufferRef("output", 0, 4 * at), (2, 16), "float32") for at in (0, 32))
    session = Session(
        kit.artifact(
            specs[:1], specs[1:], [HostCall("test-part", b"", (a,), (b,)) for a, b in ((part, low), (rest, high))]
        )
    )
    wide = np.arange(128, dtype=np.float32)
    x = wide[::2]
    np.testing.assert_array_equal(session.run({"x": x})["y"], 10 * np.concatenate([x[32:], x[:32]]))


def test_without_the_executor(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_executors", {})
    for name, word in (("onnx-missing", "register"), ("onnx", "install")):
        with pytest.raises(FuselineError, match=r"E0503") as caught:
            _session(kit, name).run({"x": np.ones(64, np.float32)})
        assert caught.value.hint and word in caught.value.hint


@pytest.mark.parametrize(
    "answer",
    [[np.ones(63, np.float32)], [np.ones(64, complex)], [np.ones((64, 1), np.float32)], []],
    ids=["shape", "dtype", "rank", "none"],
)
def test_unplanned_answers_are_refused(kit: Any, answer: list[Any]) -> None:
    host.register("test-odd", lambda node, inputs: answer)
    with pytest.raises(FuselineError, match=r"E0107.*Foo_3"):
        _session(kit, "test-odd").run({"x": np.ones(64, np.float32)})


def test_an_exception_in_the_executor_leaves_the_session_usable(kit: Any) -> None:
    def fail(node: bytes, inputs: Sequence[Any]) -> list[Any]:
        raise ValueError("no")

    session = _session(kit, "test-flaky", 2)
    host.register("test-flaky", fail)
    with pytest.raises(FuselineError, match=r"E0106 \[Foo_3\].*ValueError: no"):
        session.run({"x": np.ones(64, np.float32)})
    host.register("test-flaky", lambda node, inputs: [inputs[0]])  # pyright: ignore[reportReturnType, reportArgumentType]
    assert session.run({"x": np.ones(64, np.float32)})["y"][0] == 4
