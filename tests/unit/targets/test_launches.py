"""What a dispatch of several arms launches: operands, results, sizes and extra constants of each, and their sums."""

from __future__ import annotations

from fuseline.buffers import BufferRef, Operand
from fuseline.ir import dim as d
from fuseline.program.steps import DispatchStep
from fuseline.targets.compiled_kernel import CompiledKernel, KernelArm, joined_kernel, launches

N, S0, S1 = d.symbol("n"), d.symbol("s0"), d.symbol("s1")


def _operand(index: int, rows: d.Dim) -> Operand:
    return Operand(BufferRef("arena", 0, d.mul(index, 4096)), (rows, 4), "float32")


def _step() -> DispatchStep:
    operands = tuple(_operand(i, N) for i in range(3))
    return DispatchStep(
        "both", "both", operands, (_operand(8, N), _operand(9, d.mul(N, 2))), (("s0", 7), ("s1", N)), 0, "both"
    )


def _kernel() -> CompiledKernel:
    one = CompiledKernel(
        "a",
        b"a",
        "contraction",
        d.ceil_div(S0, 8),
        64,
        extra_constants=(b"p", b"q"),
        flops=S0,
        bytes_read=3,
        bytes_written=1,
    )
    two = CompiledKernel("b", b"b", "rows", 5, 128, extra_constants=(b"r",), flops=2, bytes_read=4)
    arms = (
        KernelArm(one, (2, 0), ((1, d.mul(S1, 4)),), (("s0", S1),)),
        KernelArm(two, (1,), ((0, 0), (1, 0)), ()),
    )
    return joined_kernel("both", arms)


def test_a_kernel_of_arms_is_their_sum() -> None:
    kernel = _kernel()
    assert kernel.family == "contraction+rows" and kernel.scratch_bytes == 128 and kernel.object_code == b""
    assert kernel.workgroups == d.add(d.ceil_div(S1, 8), 5) and kernel.flops == d.add(
        S1, 2
    )  # in the executable's sizes
    assert kernel.bytes_read == 7 and kernel.bytes_written == 1 and list(kernel.extra_constants) == [b"p", b"q", b"r"]
    assert [body.symbol for body in kernel.bodies] == ["a", "b"]


def test_each_arm_is_a_dispatch_of_its_own() -> None:
    step = _step()
    first, second = launches(step, _kernel())
    assert first.step.operands == (step.operands[2], step.operands[0]) and first.step.sizes == (("s0", N),)
    assert first.step.results[0].buffer.offset == d.add(
        9 * 4096, d.mul(N, 16)
    )  # four elements of four bytes for each row
    assert second.step.operands == (step.operands[1],) and second.step.sizes == ()
    assert second.step.results == step.results
    assert (first.first_extra, second.first_extra) == (0, 2)


def test_a_kernel_without_arms_is_launched_as_it_is() -> None:
    step, kernel = _step(), CompiledKernel("a", b"a", "rows", 1)
    (launch,) = launches(step, kernel)
    assert launch.step is step and launch.kernel is kernel and launch.first_extra == 0
    assert kernel.bodies == [kernel]


def _arm(in_place: tuple[tuple[int, int], ...], operands: tuple[int, ...], position: int, offset: int = 0) -> KernelArm:
    kernel = CompiledKernel("a", b"a", "elementwise", 1, in_place=in_place)
    return KernelArm(kernel, operands, ((position, offset),), ())


def test_arms_run_side_by_side_and_give_places_of_their_own_only() -> None:
    mine, other = _arm(((0, 0),), (2, 0), 1), _arm((), (1,), 0)
    assert joined_kernel("both", [mine, other]).in_place == ((1, 2),)
    assert joined_kernel("both", [mine, _arm((), (2,), 0)]).in_place == ()  # another arm reads the operand
    assert joined_kernel("both", [mine, _arm((), (1,), 1, 8)]).in_place == ()  # another arm writes the result
    assert joined_kernel("both", [_arm(((0, 0),), (2, 0), 1, 8), other]).in_place == ()  # not where the result begins
