"""The values of one run: where those of the caller go, what host operators get and answer, what the caller gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from fuseline.buffers import BufferRef, Operand, TensorSpec
from fuseline.errors import FuselineError
from fuseline.runtime import host
from fuseline.runtime.boxed import box
from fuseline.runtime.program import HostCall, Program
from fuseline.runtime.values import Values, call_host, keep_answers, learn_answers, results_of, values_of
from tests.draws import RNG

N = ("sum", ((1, "n"),))
NUMBERS, WORDS, LIST = (
    TensorSpec("x", "float32", (4,)),
    TensorSpec("words", "object", (), 0, "tensor(string)"),
    TensorSpec("items", "object", (), 1, "seq(tensor(float))"),
)


def _floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def _program(inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec] = (), **more: Any) -> Program:
    return Program(tuple(inputs), tuple(outputs), (), slots=2, **more)


def _memory(place: str, number: int = 0) -> Operand:
    return Operand(BufferRef(place, number), (4,), "float32")  # pyright: ignore[reportArgumentType]


def _boxed(slot: int, dims: tuple[Any, ...] = ()) -> Operand:
    return Operand(BufferRef("boxed", slot), dims, "object")


def test_inputs_lie_in_memory_or_in_slots():
    x, words, items = _floats(4), np.array(["a", "b"], object), [_floats(2), _floats(3)]
    values = values_of(_program([NUMBERS, LIST, WORDS]), [x, box(items), words])
    assert values.inputs[0] is x and [array.size for array in values.inputs] == [4, 0, 0]
    kept_words, kept_items = values.boxed
    assert isinstance(kept_words, np.ndarray) and kept_words.tolist() == ["a", "b"]
    assert isinstance(kept_items, list) and kept_items is not items
    for kept, given in zip(kept_items, items, strict=True):
        assert not kept.flags.writeable and np.shares_memory(kept, given)
    assert values.outputs == []


def test_as_many_inputs_as_the_program_has():
    with pytest.raises(ValueError, match="zip"):
        values_of(_program([NUMBERS]), [])


def test_outputs_come_in_order_and_boxed_ones_are_the_callers_own():
    y, item = _floats(4), _floats(2)
    program = _program([LIST], [LIST._replace(slot=1), NUMBERS, WORDS])
    values = values_of(program, [box([item])])
    values.outputs[1] = y
    values.boxed[0] = host.call(_echo(np.array(["z"], object)), [], [])[0]
    items, numbers, words = results_of(program, values)
    assert numbers is y and words.tolist() == ["z"]
    np.testing.assert_array_equal(items[0], item)
    assert items[0].flags.writeable and not np.shares_memory(items[0], item)


def _echo(answer: Any) -> host.Call:
    host.register("test-values-echo", lambda node, inputs: [answer])
    return host.Call("test-values-echo", b"", "node", [True])


def test_a_host_operator_gets_its_operands_as_they_are_and_answers():
    seen: list[Any] = []

    def execute(node: bytes, inputs: Sequence[Any]) -> list[Any]:
        seen.append((node, *inputs))
        return [inputs[0] + 1, inputs[2]]

    host.register("test-values-sum", execute)
    program = _program([NUMBERS, LIST])
    values = values_of(program, [_floats(4), box([_floats(3)])])
    step = HostCall(
        "test-values-sum", b"it", (_memory("input"), None, _boxed(1)), (_memory("output"), _boxed(0)), "Foo_1"
    )
    lent = values.inputs[0]
    first, second = call_host(step, values, lambda operand: lent)
    ((node, numbers, left_out, items),) = seen
    assert node == b"it" and left_out is None and len(items) == 1 and not numbers.flags.writeable
    np.testing.assert_array_equal(first, lent + 1)
    np.testing.assert_array_equal(second[0], items[0])
    place = np.zeros(4, np.float32)
    keep_answers(step, [first, second], values, lambda operand: place)
    np.testing.assert_array_equal(place, lent + 1)
    assert values.boxed[0] is second


def test_a_boxed_answer_does_not_stay_in_memory_that_is_used_again():
    host.register("test-values-same", lambda node, inputs: [inputs[0]])
    memory = _floats(4)
    before = memory.copy()
    step = HostCall("test-values-same", b"", (_memory("arena"),), (_boxed(0),), "Foo_2")
    (answer,) = call_host(step, Values([], [], [None]), lambda operand: memory)
    memory[:] = 0
    np.testing.assert_array_equal(answer, before)


def test_answers_that_nobody_wants_are_dropped():
    values = Values([], [], [None, None])
    step = HostCall("none", b"", (), (None, _boxed(1)), "Foo_3")
    kept: Any = ["kept"]
    keep_answers(step, [["dropped"], kept, ["more"]], values, lambda operand: np.zeros(0))
    assert values.boxed == [None, kept]


def test_sizes_are_learned_from_answers_in_memory_and_from_boxed_numbers():
    program = _program([], symbols={"n": (0, 9), "m": (0, None)})
    step = HostCall(
        "none",
        b"",
        (),
        (None, Operand(BufferRef("arena"), (N, 4), "float32"), _boxed(0, (("sum", ((1, "m"),)),))),
        "Foo_4",
    )
    sizes: dict[str, int] = {}
    learn_answers(program, step, [None, _floats(7, 4), 12], sizes)
    assert sizes == {"n": 7, "m": 12}
    for answers, message in (
        ([None, _floats(10, 4)], "size 10 for n, which must be in 0..9"),
        ([None, _floats(7)], "answered rank 1, planned was 2"),
    ):
        with pytest.raises(FuselineError) as caught:
            learn_answers(program, step, answers, {})
        assert (caught.value.code, caught.value.node) == ("E0107", "Foo_4") and message in caught.value.message


def test_a_boxed_value_without_sizes_teaches_nothing():
    sizes: dict[str, int] = {}
    learn_answers(_program([]), HostCall("none", b"", (), (_boxed(0),), "Foo_5"), [["anything"]], sizes)
    assert sizes == {}
