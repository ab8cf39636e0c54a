"""Assembling: a schedule with hand-written kernels becomes an artifact that computes the right thing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fuseline.buffers import BufferRef, Operand, Segment, TensorSpec
from fuseline.errors import FuselineError
from fuseline.ir import dim as d
from fuseline.passes.schedule.pack_constants import pack_constants
from fuseline.program.schedule import Schedule
from fuseline.program.steps import DispatchStep
from fuseline.runtime import Session, load
from fuseline.runtime.cpu import machine_name
from fuseline.runtime.program import Command
from fuseline.targets.compiled_kernel import KernelArm, joined_kernel
from fuseline.targets.cpu.isa.baseline import MACHINE as BASELINE
from fuseline.targets.cpu.link.program import assemble
from fuseline.weight_layouts import PackedLayout
from tests.unit.targets.cpu.hand_kernels import artifact_of, kernels, schedule_of

pytestmark = pytest.mark.skipif(machine_name() != "x86_64", reason="the test kernels are compiled for x86-64")

_MAIN = """
func.func @main(%x: tensor<?xf32> {fuseline.name = "x", fuseline.dims = ["n"]})
    -> (tensor<?xf32> {fuseline.name = "y"}, tensor<?xf32>, tensor<?xf32>) {
  %z = arith.constant 0 : index
  %n = tensor.dim %x, %z : tensor<?xf32>
  %a = flow.dispatch @one::@one(%x, %n) : (tensor<?xf32>{%n}, index) -> tensor<?xf32>{%n}
  %b = flow.dispatch @one::@one(%a, %n) : (tensor<?xf32>{%n}, index) -> tensor<?xf32>{%n}
  %c = flow.dispatch @one::@one(%a, %n) : (tensor<?xf32>{%n}, index) -> tensor<?xf32>{%n}
  %d = flow.dispatch @two::@two(%b, %c, %n) : (tensor<?xf32>{%n}, tensor<?xf32>{%n}, index) -> tensor<?xf32>{%n}
  func.return %d, %x, %d : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
}
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_a_program_computes(threads: int) -> None:
    artifact = artifact_of(schedule_of(_MAIN), kernels(), threads=threads)
    session = Session(artifact._replace(program=artifact.program._replace(serial_below_ns=0, split_above_ns=0)))
    for n in (1, 100, 16, 4000):
        x = np.random.default_rng(n).standard_normal(n, dtype=np.float32)
        out = session.run({"x": x})
        np.testing.assert_allclose(out["y"], 2 * (2 * (2 * x + 3) + 3), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(out["result1"], x)
        np.testing.assert_array_equal(out["result2"], out["y"])
        assert not np.shares_memory(out["result2"], out["y"])


def test_commands_carry_barriers_costs_and_labels() -> None:
    steps = [step for step in artifact_of(schedule_of(_MAIN), kernels()).program.steps if isinstance(step, Command)]
    assert [step.barrier for step in steps if step.label in ("one", "two")] == [False, True, False, True]
    assert all(arm.cost_ns != 0 for step in steps for arm in step.arms)
    assert len({arm.kernel for step in steps for arm in step.arms}) == 3


@pytest.mark.parametrize("threads", [1, 2])
def test_arms_have_their_own_extra_constants_and_places(threads: int) -> None:
    """One operand, two arms: `2 x + 3` into the second half of a result, `2 x + 5` into the first."""
    one = kernels()["one"]
    other = replace(one, extra_constants=(np.float32(5).tobytes(),))
    arms = [KernelArm(kernel, (0,), ((0, at),), (("s0", d.symbol("s0")),)) for kernel, at in ((one, 50), (other, 0))]
    spec = TensorSpec("x", "float32", (50,)), TensorSpec("y", "float32", (100,))
    segments: tuple[Segment, Segment] = ("input", "output")
    places = [
        Operand(BufferRef(segment, 0), boundary.dims, "float32")
        for segment, boundary in zip(segments, spec, strict=True)
    ]
    step = DispatchStep("both", "both", (places[0],), (places[1],), (("s0", 50),), 0, "both")
    schedule = Schedule(spec[:1], spec[1:], (step,), (), 0)
    artifact = artifact_of(schedule, {"both": joined_kernel("both", arms)}, threads=threads)
    assert len({arm.kernel for step in artifact.program.steps if isinstance(step, Command) for arm in step.arms}) == 1
    session = Session(artifact._replace(program=artifact.program._replace(serial_below_ns=0, split_above_ns=0)))
    x = np.random.default_rng(0).standard_normal(50, dtype=np.float32)
    for _ in range(2):
        np.testing.assert_allclose(
            session.run({"x": x})["y"], np.concatenate([2 * x + 5, 2 * x + 3]), rtol=1e-6, atol=1e-6
        )


def test_saved_and_loaded(tmp_path: Path) -> None:
    artifact = artifact_of(schedule_of(_MAIN), kernels(), records=b"r", metadata={"target": "cpu"}, threads=2)
    artifact.save(tmp_path / "m.fuse")
    session = load(tmp_path / "m.fuse", verify=True)
    x = np.arange(50, dtype=np.float32)
    np.testing.assert_array_equal(session.run({"x": x})["y"], Session(artifact).run({"x": x})["y"])
    assert session.records == b"r" and session.artifact.metadata == {"target": "cpu"}


def test_packed_constant_operand() -> None:
    main = """
func.func @main(%x: tensor<6xf32> {fuseline.name = "x"}) -> (tensor<6xf32> {fuseline.name = "y"}) {
  %n = arith.constant 6 : index
  %w = arith.constant dense_resource<w> : tensor<6xf32>
  %d = flow.dispatch @two::@two(%x, %w, %n) : (tensor<6xf32>, tensor<6xf32>, index) -> tensor<6xf32>
  func.return %d : tensor<6xf32>
}"""
    ours = kernels()
    ours["two"] = replace(ours["two"], constant_layouts={1: PackedLayout((6,), (2, 3), (1, 0))})
    session = Session(artifact_of(schedule_of(main, w=np.arange(6, dtype=np.float32)), ours))
    np.testing.assert_array_equal(session.run({"x": np.zeros(6, np.float32)})["y"], [0, 3, 1, 4, 2, 5])


@pytest.mark.parametrize("threads", [1, 2])
def test_sizes_as_a_tensor(threads: int) -> None:
    main = """
func.func @main(%x: tensor<?x3xf32> {fuseline.name = "x", fuseline.dims = ["n", "3"]})
    -> (tensor<3xi64> {fuseline.name = "y"}) {
  %z = arith.constant 0 : index
  %n = tensor.dim %x, %z : tensor<?x3xf32>
  %two = arith.constant 2 : index
  %half = arith.floordivsi %n, %two : index
  %a = arith.index_cast %n : index to i64
  %b = arith.index_cast %half : index to i64
  %c = arith.constant 3 : i64
  %s = tensor.from_elements %a, %c, %b : tensor<3xi64>
  func.return %s : tensor<3xi64>
}"""
    artifact = artifact_of(schedule_of(main), {}, threads=threads)
    session = Session(artifact._replace(program=artifact.program._replace(serial_below_ns=0, split_above_ns=0)))
    for n in (1, 7, 100):
        assert session.run({"x": np.zeros((n, 3), np.float32)})["y"].tolist() == [n, 3, n // 2]


def test_tensor_of_other_scalars_is_refused() -> None:
    main = """
func.func @main() -> (tensor<1xf32>) {
  %a = arith.constant 1.0 : f32
  %s = tensor.from_elements %a : tensor<1xf32>
  func.return %s : tensor<1xf32>
}"""
    with pytest.raises(FuselineError, match="from_elements of float32 cannot be scheduled"):
        schedule_of(main)


def test_missing_kernel_and_symbol_are_refused() -> None:
    schedule = schedule_of(_MAIN)
    with pytest.raises(FuselineError, match="no kernel was compiled for @one"):
        artifact_of(schedule, {"two": kernels()["two"]})
    with pytest.raises(FuselineError, match=r"E0404.*does not define other"):
        artifact_of(schedule, kernels(symbol="other"))


def test_a_size_no_input_determines_is_refused() -> None:
    schedule = schedule_of(_MAIN)
    lost = schedule.outputs[0]._replace(dims=(d.symbol("found"),))
    with pytest.raises(FuselineError, match=r"E0107.*found"):
        artifact_of(replace(schedule, outputs=(lost, *schedule.outputs[1:])), kernels())


def test_an_unpacked_constant_is_an_internal_error() -> None:
    main = """
func.func @main() -> (tensor<6xf32>) {
  %w = arith.constant dense<1.0> : tensor<6xf32>
  func.return %w : tensor<6xf32>
}"""
    schedule = schedule_of(main)
    packed = pack_constants(schedule, {})
    np.testing.assert_array_equal(
        Session(assemble(schedule, {}, packed, machine=BASELINE)).run({})["result0"], np.ones(6, np.float32)
    )
    with pytest.raises(FuselineError, match=r"E0901.*was not packed"):
        assemble(schedule, {}, replace(packed, layouts={}), machine=BASELINE)
