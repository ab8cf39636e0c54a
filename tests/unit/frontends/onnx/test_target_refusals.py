"""Ops that a target has no way to run take back the node that emitted them."""

from __future__ import annotations

import pytest
from xdsl.dialects import tensor
from xdsl.dialects.builtin import f32
from xdsl.ir import Operation

from fuseline.analysis.structured import Kind, kind
from fuseline.frontends.onnx.program import Program
from fuseline.frontends.onnx.target_refusals import require_taken
from fuseline.frontends.onnx.tensors import NoNativeLowering
from fuseline.ir.build import Emitter
from fuseline.ir.context import new_context
from fuseline.targets.target import Refusal
from tests.graphs.program import Program as Linalg


class _Choosy:
    """A program for a target that refuses some kinds, and what the target was asked."""

    def __init__(self, *refused: Kind) -> None:
        self.asked: list[Kind] = []
        self.refused = refused
        ctx = new_context()
        ctx.takes_op = self._takes
        self.program = Program(ctx)

    def _takes(self, op: Operation, what: Kind) -> Refusal | None:
        assert kind(op) is what
        self.asked.append(what)
        return Refusal(f"no-{what.value}", f"{op.name} is not there") if what in self.refused else None

    def emit(self, *, slices: bool) -> None:
        """A fill, which no dispatch is made of, and a slice of it."""
        emitter = Emitter.at_end(self.program.block)
        filled = emitter.fill(0.0, emitter.empty(f32, [4]))
        if slices:
            emitter.add(tensor.ExtractSliceOp.from_static_parameters(filled, [1], [2], [1]))


def _computing() -> Linalg:
    made = Linalg((3, 5), (5, 4))
    return made.done(made.relu(made.matmul(*made.x)))


def test_what_was_emitted_since_the_mark_is_asked_about():
    choosy = _Choosy(Kind.SLICE)
    choosy.emit(slices=True)
    mark = choosy.program.mark()
    choosy.emit(slices=False)
    require_taken(choosy.program, mark, [])
    assert choosy.asked == []
    choosy.emit(slices=True)
    with pytest.raises(NoNativeLowering) as caught:
        require_taken(choosy.program, mark, [])
    assert (caught.value.reason, caught.value.detail) == ("target-no-slice", "tensor.extract_slice is not there")
    assert choosy.asked == [Kind.SLICE]


def test_a_program_without_an_op_before_is_asked_about_from_its_start():
    choosy = _Choosy(Kind.SLICE)
    mark = choosy.program.mark()
    choosy.emit(slices=True)
    with pytest.raises(NoNativeLowering):
        require_taken(choosy.program, mark, [])


@pytest.mark.parametrize(
    ("refused", "asked"),
    [(Kind.CONTRACTION, [Kind.CONTRACTION]), (Kind.ELEMENTWISE, [Kind.CONTRACTION, Kind.ELEMENTWISE])],
)
def test_functions_of_loops_are_looked_into(refused: Kind, asked: list[Kind]):
    choosy = _Choosy(refused)
    with pytest.raises(NoNativeLowering) as caught:
        require_taken(choosy.program, choosy.program.mark(), [_computing().function])
    assert caught.value.reason == f"target-no-{refused.value}" and choosy.asked == asked


def test_what_takes_no_dispatch_is_not_asked_about():
    choosy = _Choosy(*Kind.__members__.values())
    made = Linalg((4, 6))
    made.done(made.collapse(made.x[0]))
    mark = choosy.program.mark()
    choosy.emit(slices=False)
    require_taken(choosy.program, mark, [made.function])
    assert choosy.asked == []


def test_a_target_that_takes_all_refuses_nothing():
    choosy = _Choosy()
    mark = choosy.program.mark()
    choosy.emit(slices=True)
    require_taken(choosy.program, mark, [_computing().function, _computing().function])
    assert choosy.asked == [Kind.SLICE, *[Kind.CONTRACTION, Kind.ELEMENTWISE] * 2]
