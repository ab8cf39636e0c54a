"""A slice or pad per reader, so that each may read the tensor below in place."""

from __future__ import annotations

from xdsl.dialects import tensor
from xdsl.ir import SSAValue

from fuseline.ir.context import new_context
from fuseline.ir.provenance import provenance
from fuseline.passes.dispatch.clone_reads import CloneReadsPass
from tests.graphs.program import Program
from tests.unit.passes.layout.rewriting.programs import same_results

Read = tensor.ExtractSliceOp | tensor.PadOp


def _cloned(p: Program) -> list[Read]:
    """The reads afterwards."""
    with same_results(p):
        CloneReadsPass().apply(new_context(), p.module)
    return [op for op in p.function.walk() if isinstance(op, Read)]


def _one_reader_each(reads: list[Read]) -> bool:
    return all(len({use.operation for use in op.results[0].uses}) == 1 for op in reads)


def _columns(p: Program) -> SSAValue:
    """Some columns, which do not lie side by side."""
    return p.columns(p.x[0], 1, 3)


def test_each_reader_has_its_own() -> None:
    p = Program((4, 6))
    cut = _columns(p)
    reads = _cloned(p.done(p.unary(cut), p.relu(cut), p.reduce(cut)))
    assert len(reads) == 3 and _one_reader_each(reads)
    assert len({provenance(op) for op in reads}) == 1 and provenance(reads[0])


def test_a_reader_that_reads_twice_needs_one() -> None:
    p = Program((4, 6))
    cut = _columns(p)
    assert len(_cloned(p.done(p.add(cut, cut)))) == 1


def test_a_pad_of_a_slice_makes_the_slice_as_often_read() -> None:
    p = Program((4, 6))
    padded = p.pad(_columns(p), [1, 0], [0, 2])
    reads = _cloned(p.done(p.unary(padded), p.relu(padded)))
    assert [type(op).__name__ for op in reads].count("PadOp") == 2
    assert len(reads) == 4 and _one_reader_each(reads)


def test_what_the_caller_gets_is_stored_once() -> None:
    p = Program((4, 6))
    cut = _columns(p)
    reads = _cloned(p.done(cut, p.unary(cut), cut))
    assert len(reads) == 2 and _one_reader_each(reads)


def test_rows_in_one_piece_are_a_view_and_stay() -> None:
    p = Program((4, 6))
    rows = p.slice(p.x[0], [1, 0], [2, 6])
    assert len(_cloned(p.done(p.unary(rows), p.relu(rows)))) == 1
