"""What dispatches cost without code, by hand; programs of a target that makes none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from xdsl.dialects import arith

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.errors import FuselineError
from fuseline.ir.build import dims_map
from fuseline.ir.dim import Dim, add, mul, symbol
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.dispatch.legality import GroupCandidate
from fuseline.program.schedule import PackedConstants, Schedule
from fuseline.targets.dispatch_caps import DispatchCaps
from fuseline.targets.null.counts import counted_kernel
from fuseline.targets.null.target import NullProgram, NullTarget
from tests.graphs.program import Program
from tests.unit.passes.dispatch.test_group_candidate import chain

M, K, N = 3, 5, 7


def _product(rows: int | str = M) -> Program:
    p = Program((rows, K), (K, N), (N,))
    p.dispatch(p.bias(p.matmul(p.x[0], p.x[1]), p.x[2], 1))
    return p


@pytest.mark.parametrize(("rows", "count"), [(M, M), ("m", symbol("m"))])
def test_a_product_and_a_bias(rows: int | str, count: Dim) -> None:
    kernel = counted_kernel(_product(rows).function, "some-family", "name")
    assert (kernel.symbol, kernel.family, kernel.object_code, kernel.workgroups) == ("name", "some-family", b"", 1)
    assert kernel.flops == mul(count, 2 * K * N + N)
    assert kernel.bytes_written == mul(count, 4 * N)
    assert kernel.bytes_read == add(mul(count, 4 * K), 4 * (K * N + N))


def test_an_argument_is_read_once_and_one_that_nobody_reads_not_at_all() -> None:
    p = Program((4, 6), (100, 100))
    p.dispatch(p.binary(p.x[0], p.x[0]))
    kernel = counted_kernel(p.function, "null", "k")
    assert (kernel.flops, kernel.bytes_read, kernel.bytes_written) == (24, 96, 96)


def test_a_result_that_is_part_of_another_counts_as_what_is_written() -> None:
    p = Program((4, 6))
    p.dispatch(p.columns(p.unary(p.x[0], arith.NegfOp), 1, 2))
    assert counted_kernel(p.function, "null", "k").bytes_written in (4 * 4 * 2, 4 * 4 * 6)


def _target(caps: DispatchCaps | None = None) -> NullTarget:
    description = TargetDescription("npu", threads=1)
    return NullTarget(description) if caps is None else NullTarget(description, caps)


def test_equal_entries_have_one_symbol() -> None:
    other = Program((M, K + 1), (K + 1, N), (N,))
    other.dispatch(other.bias(other.matmul(other.x[0], other.x[1]), other.x[2], 1))
    kernels = _target().compile_executables([_product().function, other.function, _product().function], {})
    first, second, third = (kernel.symbol for kernel in kernels)
    assert first == third != second and [kernel.family for kernel in kernels] == ["null"] * 3
    assert kernels[0].flops == kernels[2].flops != kernels[1].flops


def test_limits_are_asked_of_a_candidate() -> None:
    _, groups = chain()
    candidate = GroupCandidate((groups[0],), ShapeAnalysis())
    assert _target().legal(candidate) is None
    limited = _target(replace(DispatchCaps(), operands=1)).legal(candidate)
    assert limited is not None and limited.code == "operands-limit"
    assert _target(replace(DispatchCaps(), operands=2)).legal(candidate) is None


def _program() -> NullProgram:
    schedule = Schedule((), (), (), (), 0, {"n": (1, 4)})
    return _target().assemble(schedule, {}, PackedConstants([], {}, {}), records=b"r", metadata={"model": "m"})


def test_a_program_answers_questions(tmp_path: Path) -> None:
    program = _program()
    assert program.session(4) is program is program.artifact and program.records == b"r"
    assert (program.inputs, program.outputs, program.metadata, program.threads) == ((), (), {"model": "m"}, 1)
    assert dict(program.program.symbols) == {"n": (1, 4)}
    with pytest.raises(FuselineError, match="E0305"):
        program.run({})
    with pytest.raises(FuselineError, match="E0502") as caught:
        program.save(tmp_path / "m.fuse")
    assert caught.value.node == str(tmp_path / "m.fuse") and not list(tmp_path.iterdir())


def test_a_bias_is_read_along_its_axis() -> None:
    p = Program((2, 3, 4), (3,))
    p.dispatch(p.binary(p.x[0], p.x[1], dims_map(3, [1])))
    assert counted_kernel(p.function, "null", "k").bytes_read == 4 * (24 + 3)
