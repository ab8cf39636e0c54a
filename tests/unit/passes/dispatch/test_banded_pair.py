"""The number around an image that is converted where it is read."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import f16, f32
from xdsl.ir import OpResult

from fuseline.passes.dispatch.banded_pair import has_border
from fuseline.passes.dispatch.region_rows import RowRead
from tests.graphs.program import Program


def _read(number: float, *, further: bool = False) -> RowRead:
    """A pad with `number` of halves that are widened, or widened and then doubled."""
    p = Program((6, 4), arguments=[f16])
    empty = p.empty(6, 4, element=f32)

    def widened(b):  # pyright: ignore
        value = b.op(arith.ExtFOp, b.args[0], f32)
        return b.op(arith.AddfOp, value, value) if further else value

    made = p.emit.elementwise([p.x[0]], empty, widened)
    padded = p.pad(made, (1, 0), (1, 0), number)
    assert isinstance(made, OpResult) and isinstance(made.op, linalg.ops.GenericOp)
    assert isinstance(padded, OpResult) and isinstance(padded.op, tensor.PadOp)
    return RowRead(p.x[0], 0, 1, 2, padded.op, (made.op,))


@pytest.mark.parametrize(("number", "further", "known"), [(0.0, False, True), (1.5, False, False), (0.0, True, False)])
def test_number(number: float, further: bool, known: bool) -> None:
    assert has_border(_read(number, further=further)) == known


def test_no_pad_or_no_conversion() -> None:
    read = _read(1.5)
    assert has_border(RowRead(read.value, 0, through=read.through)) and has_border(RowRead(read.value, 0, pad=read.pad))
