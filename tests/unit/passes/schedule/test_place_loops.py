"""Where the operands of a loop's body lie in each iteration: slices, stacks, states in two places by turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from xdsl.dialects.func import CallOp, FuncOp

from fuseline.buffers import BufferRef, LoopOffset, Operand, TensorSpec
from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.ir.dim import Dim, mul, sub, symbol
from fuseline.ir.text import parse_module
from fuseline.passes.schedule.main_buffers import Storage
from fuseline.passes.schedule.place_loops import LoopBody, LoopPlacer
from fuseline.passes.schedule.read_loops import LoopShape, Position, Source, Stack, State
from fuseline.program.steps import CopyStep, DispatchStep, FillStep, HostStep, InsertStep, LoopStep, SizesStep, Step

TEXT = """func.func private @loop()
func.func @main() {
  func.call @loop() : () -> () loc("scan_7")
  return
}"""
_MODULE = parse_module(TEXT, new_context())
(CALL,) = [op for op in _MODULE.walk() if isinstance(op, CallOp)]
(STEP,) = [op for op in _MODULE.ops if isinstance(op, FuncOp) and op.sym_name.data == "main"]

N = symbol("n", 1)
STATE_BYTES = 64
"""Of three floats, rounded up to where the next tensor may begin."""


def _in(number: int, *dims: Dim) -> Operand:
    return Operand(BufferRef("input", number), dims or (1, 3), "float32")


def _out(number: int, *dims: Dim) -> Operand:
    return Operand(BufferRef("output", number), dims or (1, 3), "float32")


def _launch(operands: Sequence[Operand], results: Sequence[Operand], wave: int = 0) -> DispatchStep:
    return DispatchStep("one", "one_entry", tuple(operands), tuple(results), (), wave)


X, H0 = _in(0, N, 3), _in(1)
Y, LAST = _out(0, N, 3), _out(1)


class _Loop:
    """A loop over rows of `x` with a state, placed: `operands` as the body reads them, a stack of result 0 of it."""

    def __init__(
        self,
        operands: tuple[Source | State, ...] = (Source(0, Position(12, -3)), State(0, 1)),
        stacks: Mapping[int, Stack] | None = None,
        last: Mapping[int, State] | None = None,
        *,
        trips: Dim = N,
        steps: Sequence[Step] = (_launch([_in(0), _in(1)], [_out(0)]),),
        outputs: int = 1,
        used: Sequence[bool] = (True, True),
        transients: Sequence[Dim] = (),
    ) -> None:
        self.storage = Storage(new_context())
        self.storage.transients += transients
        shape = LoopShape(STEP, trips, operands, stacks or {}, last or {})
        body = LoopBody(steps, [TensorSpec(f"o{i}", "float32", (1, 3)) for i in range(outputs)])
        placer = LoopPlacer(shape, body, [X, H0], [Y, LAST], used, self.storage)
        self.loop, self.copies = placer.steps(CALL)

    def launch(self, number: int = 0) -> DispatchStep:
        step = self.loop.steps[number]
        assert isinstance(step, DispatchStep)
        return step


STACKED = _Loop(stacks={0: Stack(0, Position(0, 3))})


def test_a_slice_moves_with_the_iteration():
    (slice_, _), ((_, _, _, to),) = STACKED.launch().operands, STACKED.launch().results
    assert slice_ == Operand(BufferRef("input", 0, 48), (1, 3), "float32", LoopOffset(-12))
    assert to == LoopOffset(12)


def test_a_state_that_is_stacked_is_read_one_iteration_later():
    _, state = STACKED.launch().operands
    assert state.buffer == BufferRef("output", 0)
    assert state.loop_offset == LoopOffset(12, 1, special=BufferRef("input", 1))
    assert not STACKED.storage.transients and not STACKED.copies


def test_the_loop_says_what_it_reads_and_writes_and_where_it_comes_from():
    loop = STACKED.loop
    assert (loop.trips, loop.operands, loop.results) == (N, (X, H0), (Y,))
    assert (loop.label, loop.nodes, loop.wave) == ("scan_7", ("scan_7",), 0)


def test_a_state_that_nothing_stacks_lies_in_two_places_by_turns():
    made = _Loop(last={1: State(0, 1)})
    (_, state), (written,) = made.launch().operands, made.launch().results
    pair = BufferRef("transient", 0)
    assert state == Operand(pair, (1, 3), "float32", LoopOffset(STATE_BYTES, 1, True, BufferRef("input", 1)))
    # .. and in the last iteration where the program wants it
    assert written == Operand(
        pair, (1, 3), "float32", LoopOffset(STATE_BYTES, 0, True, BufferRef("output", 1), sub(N, 1))
    )
    assert made.storage.transients == [2 * STATE_BYTES]
    assert made.loop.results == (LAST, Operand(pair, (2 * STATE_BYTES,), "uint8"))


def test_a_state_that_nobody_wants_in_the_end_has_no_such_place():
    made = _Loop(last={1: State(0, 1)}, used=(True, False))
    (written,) = made.launch().results
    assert written.loop_offset == LoopOffset(STATE_BYTES, alternates=True)
    assert not made.copies and LAST not in made.loop.results


def test_a_stack_that_is_a_state_at_the_end_too_is_copied_from_its_last_row():
    made = _Loop(stacks={0: Stack(0, Position(0, 3))}, last={1: State(0, 1)})
    (copy,) = made.copies
    assert copy.source == Operand(BufferRef("output", 0, mul(sub(N, 1), 12)), (1, 3), "float32")
    assert copy.target == LAST


def test_one_state_wanted_twice_is_copied_once():
    made = _Loop(last={0: State(0, 1), 1: State(0, 1)})
    assert [(copy.source, copy.target) for copy in made.copies] == [(Y, LAST)]
    assert made.launch().results[0].loop_offset.special == BufferRef("output", 0)


def test_parts_of_a_border_tensor_move_with_it():
    half = Operand(BufferRef("input", 1, 8), (1, 1), "float32")
    made = _Loop(last={1: State(0, 1)}, steps=[_launch([half], [_out(0)])])
    (state,) = made.launch().operands
    assert state.buffer == BufferRef("transient", 0, 8)
    assert state.loop_offset.special == BufferRef("input", 1, 8)


def test_steps_run_by_what_they_need_and_the_bodys_own_buffers_stand():
    between = Operand(BufferRef("transient", 0, 4), (1, 3), "float32")
    sizes = SizesStep((N, 2), _out(1), 0)
    steps = [sizes, _launch([_in(0)], [between], 7), _launch([between, _in(1)], [_out(0)], 9)]
    made = _Loop(last={1: State(0, 1)}, steps=steps, outputs=2, transients=[96])
    waves = [step.wave for step in made.loop.steps]
    assert sorted(waves) == waves == [0, 0, 1]
    (own,) = made.launch(1).results
    assert own == between
    transients = [one for one in made.loop.results if one.buffer.segment == "transient"]
    assert {(one.buffer, one.dims[0]) for one in transients} == {
        (BufferRef("transient", 0), 96),
        (BufferRef("transient", 1), 2 * STATE_BYTES),
        (BufferRef("transient", 2), 2 * STATE_BYTES),
    }
    first = made.loop.steps[0]
    assert isinstance(first, SizesStep) and first.target.buffer.segment == "transient"


@pytest.mark.parametrize(
    "step", [CopyStep(_in(0), _out(0), 0), FillStep(_in(0), _out(0), 0), InsertStep(_in(0), _out(0), 0, offsets=(0, 1))]
)
def test_what_moves_bytes_in_a_body_is_placed_at_both_ends(step: CopyStep | FillStep | InsertStep):
    made = _Loop(last={1: State(0, 1)}, steps=[step])
    (copy,) = made.loop.steps
    assert isinstance(copy, CopyStep | FillStep | InsertStep) and type(copy) is type(step)
    assert (copy.source.buffer, copy.target.buffer) == (BufferRef("input", 0, 48), BufferRef("transient", 0))


INNER = LoopStep(2, (), (), (), 0)
HOST = HostStep("onnx", b"", (), (), 0)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"trips": 0}, "has no iteration at all"),
        ({"trips": symbol("m", 0, 0)}, "has no iteration at all"),
        ({"steps": [INNER]}, "holds a host operator or another loop"),
        ({"steps": [_launch([_in(0)], [_out(0)]), HOST]}, "holds a host operator or another loop"),
    ],
)
def test_a_loop_that_is_not_for_the_program_is_refused(changes: dict[str, object], why: str):
    with pytest.raises(FuselineError, match=f"the loop @loop {why}") as caught:
        _Loop(**changes)  # pyright: ignore[reportArgumentType]
    assert (caught.value.code, caught.value.node) == ("E0305", "scan_7")


def test_a_size_that_may_be_none_is_taken():
    assert _Loop(last={1: State(0, 1)}, trips=symbol("m", 0)).loop.trips == symbol("m", 0)
