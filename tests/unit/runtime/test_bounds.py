"""What a program asks of a kernel is checked against the kernel's signature before it runs: every guard refuses what it
is for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.buffers import BufferRef, LoopOffset, Operand
from fuseline.errors import FuselineError
from fuseline.runtime import Session, TensorSpec
from fuseline.runtime.program import Arm, Command, HostCall, Loop, Program, Scratch
from fuseline.runtime.references import check_references
from fuseline.runtime.signatures import Buffer, CodeTable, Signature, SizeBounds, split_table, with_table
from fuseline.scalar_code import Computed, ScalarCode, ScalarOp
from tests.graphs.onnx_text import onnx_model

N: Any = ("sum", ((1, "n"),))
FOUR_N: Any = ("sum", ((4, "n"),))
GRID: Any = ("sum", ((1, ("div", ("sum", ((1, "n"), (15,))), 16)),))
X, Y = BufferRef("input", 0), BufferRef("output", 0)
INPUT = np.random.default_rng(1).standard_normal(40, np.float32)


def _session(
    kit: Any, *, inputs: Any = (40,), outputs: Any = (40,), steps: Any = None, kernels: Any = None, **program: Any
) -> Session:
    """`y = (x + c) * 2` through the arena; whatever is given replaces a part of it."""
    specs = [TensorSpec("x", "float32", tuple(inputs))], [TensorSpec("y", "float32", tuple(outputs))]
    usual = [
        kit.command("add", [X, BufferRef("constant"), BufferRef("arena")], 40),
        kit.command("double", [BufferRef("arena"), Y], 40, barrier=True),
    ]
    made = usual if steps is None else steps(usual)
    constants = [np.ones(40, np.float32)]
    return Session(
        kit.artifact(*specs, made, constants, kernels=kernels or kit.signatures(), **{"arena_bytes": 192, **program})
    )


def _refused(run: Callable[[], Any], words: str) -> None:
    with pytest.raises(FuselineError) as caught:
        run()
    assert caught.value.code == "E0401"
    assert words in caught.value.message


def test_a_program_that_fits_runs(kit: Any) -> None:
    np.testing.assert_allclose(_session(kit).run({"x": INPUT})["y"], (INPUT + 1) * 2)


def _rebound(number: int, place: BufferRef) -> Callable[[list[Command]], list[Command]]:
    """The first command with another binding."""

    def change(steps: list[Command]) -> list[Command]:
        (arm,) = steps[0].arms
        bindings = tuple(place if i == number else old for i, old in enumerate(arm.bindings))
        return [steps[0]._replace(arms=(arm._replace(bindings=bindings),)), *steps[1:]]

    return change


def _changed(**fields: Any) -> Callable[[list[Command]], list[Command]]:
    """The first command's arm with other fields."""
    return lambda steps: [steps[0]._replace(arms=(steps[0].arms[0]._replace(**fields),)), *steps[1:]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_rebound(0, BufferRef("input", 0, 4)), "bytes 4..164 of input 0, which has 160"),
        (_rebound(1, BufferRef("constant", 0, 4)), "of constant 0"),
        (_rebound(2, BufferRef("arena", 0, 64)), "bytes 64..224 of arena 0, which has 192"),
        (_rebound(2, BufferRef("arena", 0, -64)), "of arena 0"),
        (_rebound(2, BufferRef("constant", 0)), "a result in constant 0"),
        (_rebound(2, BufferRef("input", 0)), "a result in input 0"),
        (_rebound(0, BufferRef("arena", 0, 2)), "the kernel wants multiples of 4"),
        (_rebound(0, BufferRef("arena", 0, ("sum", ((1 << 40,),)))), "of arena 0"),
        (_changed(sizes=(41,)), "bytes 0..164"),
        (_changed(sizes=(1 << 40,)), "a grid of 3"),
        (_changed(sizes=(-1,)), "sizes that the kernel was not compiled for"),
        (_changed(sizes=()), "sizes that the kernel was not compiled for"),
        (_changed(sizes=(40, 40)), "sizes that the kernel was not compiled for"),
        (_changed(workgroups=4), "a grid of 4, the kernel's is 3"),
        (_changed(workgroups=2), "a grid of 2, the kernel's is 3"),
        (_changed(bindings=(X,)), "1 bindings, the kernel takes 3"),
        (_changed(sizes=(("sum", ((1, "nobody"),)),)), "KeyError"),
        (_changed(cost_ns=10**400), "OverflowError"),
    ],
)
def test_a_launch_that_does_not_fit_is_refused(change: Any, words: str, kit: Any) -> None:
    _refused(lambda: _session(kit, steps=change, threads=2).run({"x": INPUT}), words)


def test_an_output_that_is_larger_than_what_is_written_is_refused(kit: Any) -> None:
    _refused(lambda: _session(kit, outputs=(41,)).run({"x": INPUT}), "output y has 164 bytes, 160 are written")
    _refused(lambda: _session(kit, outputs=(39,)).run({"x": INPUT}), "output 0")


def test_scratch_and_alignment_are_what_the_kernel_wants(kit: Any) -> None:
    def with_signature(**fields: Any) -> dict[int, Any]:
        known = kit.signatures()
        known[kit.kernel("add")] = [known[kit.kernel("add")][0]._replace(**fields)]
        return known

    _refused(
        lambda: _session(kit, kernels=with_signature(scratch_bytes=64)).run({"x": INPUT}),
        "0 bytes of scratch, the kernel uses 64",
    )
    _session(kit, kernels=with_signature(scratch_bytes=64), scratch_bytes=64).run({"x": INPUT})
    strict = tuple(Buffer(FOUR_N, i == 2, 64) for i in range(3))
    _refused(
        lambda: _session(kit, kernels=with_signature(buffers=strict), input_alignment=8).run({"x": INPUT}),
        "multiples of 64",
    )
    _session(kit, kernels=with_signature(buffers=strict), input_alignment=64).run({"x": INPUT})
    _refused(
        lambda: _session(kit, kernels=with_signature(sizes=(SizeBounds("n", 0, 39),))).run({"x": INPUT}),
        "not compiled for",
    )


@pytest.mark.parametrize(
    ("scratch", "words"),
    [
        (Scratch(256, 32), "scratch in bytes 256..320"),  # no whole lines
        (Scratch(200, 64), "scratch in bytes 200..328"),
        (Scratch(256, 128), "scratch in bytes 256..512 of the arena, which has 448"),
        (Scratch(-64, 64), "scratch in bytes -64..64"),
        (Scratch(192, 0), "0 bytes of scratch, the kernel uses 64"),
    ],
)
def test_scratch_lies_in_the_arena_for_every_thread(scratch: Scratch, words: str, kit: Any) -> None:
    known = {at: [one._replace(scratch_bytes=64) for one in found] for at, found in kit.signatures().items()}

    def session(place: Scratch) -> Session:
        def placed(steps: list[Command]) -> list[Command]:
            return [step._replace(scratch=place) for step in steps]

        return _session(kit, steps=placed, kernels=known, scratch_bytes=64, arena_bytes=448, threads=2)

    np.testing.assert_allclose(session(Scratch(192, 128)).run({"x": INPUT})["y"], (INPUT + 1) * 2)
    _refused(lambda: session(scratch).run({"x": INPUT}), words)


def test_one_of_several_signatures_is_enough(kit: Any) -> None:
    known = kit.signatures()
    (right,) = known[kit.kernel("add")]
    known[kit.kernel("add")] = [right._replace(scratch_bytes=1 << 30), right]
    _session(kit, kernels=known).run({"x": INPUT})


def test_symbolic_sizes_are_checked_for_each_shape(kit: Any) -> None:
    def steps(usual: list[Command]) -> list[Command]:
        arm = kit.arm("double", [X, BufferRef("output", 0)], N, GRID)
        return [Command((arm,))]

    session = _session(
        kit, inputs=(N,), outputs=(("sum", ((1, ("min", N, 40)),)),), steps=steps, symbols={"n": (1, None)}
    )
    np.testing.assert_allclose(session.run({"x": INPUT})["y"], INPUT * 2)
    _refused(lambda: session.run({"x": np.ones(41, np.float32)}), "output 0")


def _loop(
    kit: Any,
    *,
    trips: int = 4,
    walks: tuple[LoopOffset, LoopOffset] = (LoopOffset(40), LoopOffset(40)),
    places: Any = (X, Y),
) -> Callable[[Any], list[Loop]]:
    arm = kit.arm("double", places, 10)._replace(loop_offsets=walks)
    return lambda usual: [Loop(trips, (Command((arm,)),))]


@pytest.mark.parametrize(
    "changes",
    [
        {"trips": 5},
        {"walks": (LoopOffset(44), LoopOffset(40))},
        {"walks": (LoopOffset(40), LoopOffset(1 << 40))},
        {"walks": (LoopOffset(-40), LoopOffset(40))},
        {"walks": (LoopOffset(164, alternates=True), LoopOffset(40))},
        {"walks": (LoopOffset(40, special=BufferRef("input", 0, 160), at=2), LoopOffset(40))},
        {"places": (BufferRef("input", 0, 4), Y)},
    ],
)
def test_a_loop_stays_inside_in_every_iteration(changes: Any, kit: Any) -> None:
    np.testing.assert_allclose(_session(kit, steps=_loop(kit)).run({"x": INPUT})["y"], INPUT * 2)
    _refused(lambda: _session(kit, steps=_loop(kit, **changes)).run({"x": INPUT}), "does not fit its code")


def test_operands_and_results_of_a_host_call_lie_inside(kit: Any) -> None:
    from fuseline.runtime import host

    host.register("twice", lambda node, operands: [operands[0] * 2])
    for operand, result in ((X._replace(offset=4), Y), (X, Y._replace(offset=4)), (X._replace(offset=-4), Y)):
        call = HostCall("twice", b"", (Operand(operand, (40,), "float32"),), (Operand(result, (40,), "float32"),))
        _refused(lambda call=call: _session(kit, steps=lambda usual: [call]).run({"x": INPUT}), "bytes")
    call = HostCall("twice", b"", (Operand(X, (40,), "float32"),), (Operand(Y, (40,), "float32"),))
    np.testing.assert_allclose(_session(kit, steps=lambda usual: [call]).run({"x": INPUT})["y"], INPUT * 2)


# what loading checks, without sizes -----------------------------------------------------------------------------------


def _program(*steps: Any, **more: Any) -> Program:
    spec = TensorSpec("x", "float32", (N,)), TensorSpec("y", "float32", (N,))
    given: dict[str, Any] = {
        "symbols": {"n": (1, None)},
        "inputs": spec[:1],
        "outputs": spec[1:],
        "steps": steps,
        **more,
    }
    return Program(**given)


def _arm(**more: Any) -> Command:
    given: dict[str, Any] = {"kernel": 16, "bindings": (X, Y), "sizes": (N,), "workgroups": 1, **more}
    return Command((Arm(**given),))


def _code(op: tuple[str, int, tuple[int, ...]], **more: Any) -> ScalarCode:
    return ScalarCode((ScalarOp(*op),), (Computed("int64", (), (0,)),), **more)


def _computing(code: ScalarCode, dims: tuple[Any, ...] = (2, 2), dtype: str = "int32") -> Program:
    """A program whose host call computes what its operator gets from four elements."""
    return _program(HostCall("onnx", b"", (Operand(X, dims, dtype),), (Operand(Y, (N,), "float32"),), code=code))


UNKNOWN: Any = ("sum", ((1, "m"),))
WRONG: list[tuple[Program, str]] = [
    (_program(_arm(kernel=15)), "no kernel begins at 15"),
    (_program(_arm(kernel=4096)), "outside the code"),
    (_program(_arm(sizes=(UNKNOWN,))), "nothing determines the size m"),
    (_program(_arm(workgroups=UNKNOWN)), "nothing determines the size m"),
    (_program(_arm(), arena_bytes=UNKNOWN), "nothing determines the size m"),
    (_program(_arm(), outputs=(TensorSpec("y", "float32", (UNKNOWN,)),)), "nothing determines the size m"),
    (_program(_arm(bindings=(X, BufferRef("boxed", 0))), slots=1), "a kernel bound to a boxed value"),
    (_program(_arm(bindings=(X, BufferRef("output", 1)))), "output 1 does not exist"),
    (_program(_arm(loop_offsets=(LoopOffset(), LoopOffset()))), "a loop offset outside of a loop"),
    (_program(Loop(3, (_arm(),))), "without a loop offset"),
    (_program(Loop(3, (_arm(loop_offsets=(LoopOffset(lag=2), LoopOffset())),))), "begins nowhere"),
    (_program(_arm(), inputs=(TensorSpec("x", "object", (N,)),)), "no type of numbers"),
    (_program(_arm(), inputs=(TensorSpec("x", "U4", (N,)),)), "no type of numbers"),
    (_program(_arm(), inputs=(TensorSpec("x", "f4", (N,)),)), "no type of numbers"),
    (_program(_arm(), inputs=(TensorSpec("x", "float32", (-1,)),), outputs=()), "a negative size"),
    (_program(inputs=(TensorSpec("x", "float32", (N,)),) * 2), "of one name"),
    (_program(HostCall("onnx", b"", (), (Operand(X, (N,), "float32"),))), "a result in input 0"),
    (
        _program(HostCall("onnx", b"", (Operand(X, (UNKNOWN,), "float32"),), (Operand(Y, (UNKNOWN,), "float32"),))),
        "determines the size m",
    ),
    (_program(HostCall("onnx", b"", (Operand(X, (N,), "object"),), ())), "no type of numbers"),
    (_computing(_code(("size", 64, (0,)), sizes=(UNKNOWN,))), "determines the size m"),
    (_computing(_code(("size", 64, (1,)), sizes=(N,))), "1 is not in 0..0"),
    (_computing(_code(("element", 32, (0, 4)))), "no element 4 of operand 0"),
    (_computing(_code(("element", 32, (1, 0)))), "1 is not in 0..0"),
    (_computing(_code(("element", 32, (0, 0))), dims=(N,)), "no element 0 of operand 0"),
    (_computing(_code(("element", 32, (0, 0))), dtype="float32"), "element of 32 bits reads f32"),
    (_computing(_code(("elementf", 32, (0, 0)))), "elementf of 32 bits reads i32"),
    (_computing(_code(("elementf", 32, (0, 0))), dtype="float16"), "no element 0 of operand 0"),
    (_computing(_code(("element", 32, (0, 0)))._replace(operands=(1,))), "1 is not in 0..0"),
]


@pytest.mark.parametrize(("program", "words"), WRONG)
def test_loading_refuses_what_makes_no_sense(program: Program, words: str) -> None:
    right = _computing(_code(("size", 64, (0,)), sizes=(N,))), _computing(_code(("element", 32, (0, 3))))
    for fine in (_program(_arm()), *right):
        check_references(fine, 64, {"run": 0, "worker": 8}, [], {16})
    with pytest.raises(ValueError, match=words):
        check_references(program, 64, {"run": 0, "worker": 8}, [], {16})


def test_the_table_of_an_image_survives_and_is_read_strictly() -> None:
    signature = Signature((SizeBounds("n", 1, 9),), (Buffer(FOUR_N, True, 64), Buffer(3)), GRID, 128)
    table = CodeTable({"run": 0, "worker": 8}, ((16, 24),), {32: (signature, Signature(None, (), 1))}, "digest")
    assert split_table(with_table(b"code", table)) == (b"code", table)
    assert split_table(with_table(b"", table._replace(kernels=None)))[1].kernels is None
    stored = with_table(b"code", table)
    for broken in (
        b"",
        b"code",
        stored[:-1],
        stored[:4] + stored[5:],
        stored.replace(b"128", b"1.5"),
        stored.replace(b"true", b"1111"),
    ):
        with pytest.raises((ValueError, KeyError, TypeError)):
            split_table(broken)


@pytest.mark.parametrize("heads", [0, 2])
def test_no_bytes_may_lie_behind_the_end(heads: int) -> None:
    """Where a part of a result of no elements begins does not matter."""
    model = onnx_model(
        f"(float[2, {heads}, 3, 8] x, float[2, 3, 4] c, float[2, 3, 4] s) => (y) {{ y = RotaryEmbedding(x, c, s) }}",
        opset=23,
    )
    rng = np.random.default_rng()
    x, c, s = (rng.random(shape).astype(np.float32) for shape in ((2, heads, 3, 8), (2, 3, 4), (2, 3, 4)))
    (found,) = fuseline.compile(model, cache=False).run({"x": x, "c": c, "s": s}).values()
    low, high, cos, sin = x[..., :4], x[..., 4:], c[:, None], s[:, None]
    wanted = np.concatenate([low * cos - high * sin, low * sin + high * cos], -1)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
