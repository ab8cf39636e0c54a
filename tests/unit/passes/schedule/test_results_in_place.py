"""Which results take an operand's place in a schedule: one that dies there, is bound once, and that nothing beside the
dispatch needs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fuseline.buffers import BufferRef, Operand
from fuseline.ir import dim as d
from fuseline.passes.schedule.dependencies import needs_of
from fuseline.passes.schedule.results_in_place import results_in_place
from fuseline.program.schedule import InPlaceDecision
from fuseline.program.steps import CopyStep, DispatchStep, HostStep, Step

N = d.symbol("n", 1, None)
SIZES: list[d.Dim] = [64, 64, 64, 128, d.mul(N, 4), d.mul(N, 4)]
"""Bytes of the transients."""


def _t(number: int, offset: int = 0, dims: tuple[d.Dim, ...] = (16,)) -> Operand:
    return Operand(BufferRef("transient", number, offset), dims, "float32")


def _other(segment: str) -> Operand:
    return Operand(BufferRef(segment, 0), (16,), "float32")  # pyright: ignore[reportArgumentType]


def _dispatch(reads: Sequence[Operand], writes: Sequence[Operand], wave: int) -> DispatchStep:
    return DispatchStep("e", "e", tuple(reads), tuple(writes), (), wave)


def _makes(wave: int, *numbers: int) -> DispatchStep:
    return _dispatch([_other("input")], [_t(number, dims=(SIZES[number] // 4,)) for number in numbers], wave)  # pyright: ignore[reportOperatorIssue]


def _decided(steps: Sequence[Step], pairs: Sequence[tuple[int, int]] = ((0, 0),)) -> list[InPlaceDecision]:
    """What becomes of the last step's pairs."""
    last = steps[-1]
    return results_in_place(steps, needs_of(steps), SIZES, lambda step: pairs if step is last else [])


def test_an_operand_that_dies_gives_its_place() -> None:
    assert _decided([_makes(0, 0), _dispatch([_t(0)], [_t(1)], 1)]) == [InPlaceDecision(1, 0)]


def test_sizes_that_are_equal_for_every_run() -> None:
    first = _dispatch([_other("input")], [_t(4, dims=(N,))], 0)
    assert _decided([first, _dispatch([_t(4, dims=(N,))], [_t(5, dims=(N,))], 1)]) == [InPlaceDecision(5, 4)]
    shorter = _dispatch([_t(4, dims=(d.sub(N, 1),))], [_t(5, dims=(N,))], 1)
    assert [one.refusal for one in _decided([first, shorter])] == ["part-of-a-buffer"]


@pytest.mark.parametrize("segment", ["input", "constant", "output"])
def test_only_transients(segment: str) -> None:
    assert _decided([_dispatch([_other(segment)], [_t(1)], 0)]) == [InPlaceDecision(-1, -1, "not-transient")]


def test_results_of_the_program_lie_in_their_outputs() -> None:
    assert _decided([_makes(0, 0), _dispatch([_t(0)], [_other("output")], 1)])[0].refusal == "not-transient"


def test_parts_of_buffers() -> None:
    behind = [_makes(0, 3), _dispatch([_t(3, 64)], [_t(1)], 1)]
    ahead = [_makes(0, 3), _dispatch([_t(3)], [_t(1)], 1)]  # the first half of it
    slice_of_a_concat = [_makes(0, 0), _dispatch([_t(0)], [_t(3, 64)], 1)]
    for steps in (behind, ahead, slice_of_a_concat):
        assert [one.refusal for one in _decided(steps)] == ["part-of-a-buffer"]


def test_an_operand_that_is_bound_twice() -> None:
    assert _decided([_makes(0, 0), _dispatch([_t(0), _t(0)], [_t(1)], 1)])[0].refusal == "bound-twice"
    assert _decided([_makes(0, 0), _dispatch([_t(0)], [_t(1), _t(1)], 1)])[0].refusal == "bound-twice"


def test_what_a_later_step_reads() -> None:
    copy, call = (
        CopyStep(_t(0), _other("output"), 2),
        HostStep("onnx", b"", (_t(0),), (_other("output"),), 2),
    )
    for later in (copy, call):
        steps = [_makes(0, 0), _dispatch([_t(0)], [_t(1)], 1), later]
        last = steps[1]
        (found,) = results_in_place(
            steps, needs_of(steps), SIZES, lambda step, last=last: [(0, 0)] if step is last else []
        )
        assert found == InPlaceDecision(1, 0, "read-later")


def test_a_result_that_others_have_begun() -> None:
    assert _decided([_makes(0, 0, 1), _dispatch([_t(0)], [_t(1)], 1)])[0].refusal == "written-earlier"


def test_steps_of_one_wave_run_side_by_side() -> None:
    reader = _dispatch([_t(0)], [_t(2)], 1)
    assert _decided([_makes(0, 0), reader, _dispatch([_t(0)], [_t(1)], 1)])[0].refusal == "side-by-side"


def test_a_place_is_given_once() -> None:
    steps = [_makes(0, 0, 1), _dispatch([_t(0), _t(1)], [_t(2)], 1)]
    assert _decided(steps, [(0, 0), (0, 1)]) == [InPlaceDecision(2, 0), InPlaceDecision(2, 1, "place-taken")]
    two = [_makes(0, 0), _dispatch([_t(0)], [_t(1), _t(2)], 1)]
    assert _decided(two, [(0, 0), (1, 0)]) == [InPlaceDecision(1, 0), InPlaceDecision(2, 0, "place-taken")]


def test_places_are_handed_on() -> None:
    steps = [_makes(0, 0), _dispatch([_t(0)], [_t(1)], 1), _dispatch([_t(1)], [_t(2)], 2)]
    found = results_in_place(steps, needs_of(steps), SIZES, lambda step: [(0, 0)] if step.wave else [])
    assert found == [InPlaceDecision(1, 0), InPlaceDecision(2, 1)]
