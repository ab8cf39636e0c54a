"""Assembling: a schedule with hand-written kernels becomes an artifact that computes the right thing."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from xdsl.parser import Parser

from fuseline.analysis.schedule import Schedule
from fuseline.errors import FuselineError
from fuseline.ir import dim as d
from fuseline.ir.context import CompilerContext, new_context
from fuseline.passes.schedule.build_schedule import build_schedule
from fuseline.passes.schedule.pack_constants import pack_constants
from fuseline.runtime import Artifact, Session, load
from fuseline.runtime.cpu import machine_name
from fuseline.runtime.program import Command
from fuseline.targets.cpu.isa.baseline import MACHINE as BASELINE
from fuseline.targets.cpu.program import assemble
from fuseline.targets.target import CompiledKernel, PackedLayout

pytestmark = pytest.mark.skipif(machine_name() != "x86_64", reason="the test kernels are compiled for x86-64")

# out[i] = a[i] * 2 + extra constant; grid of 16 elements per workgroup
_ONE = """
define void @one(ptr %bindings, ptr %sizes, i64 %begin, i64 %end, ptr %scratch) {
entry:
  %ap = load ptr, ptr %bindings
  %o1 = getelementptr ptr, ptr %bindings, i64 1
  %rp = load ptr, ptr %o1
  %o2 = getelementptr ptr, ptr %bindings, i64 2
  %kp = load ptr, ptr %o2
  %k = load float, ptr %kp
  %n = load i64, ptr %sizes
  %from = mul i64 %begin, 16
  %t0 = mul i64 %end, 16
  %clip = icmp slt i64 %t0, %n
  %to = select i1 %clip, i64 %t0, i64 %n
  store i64 %from, ptr %scratch
  br label %head
head:
  %i = phi i64 [%from, %entry], [%i1, %body]
  %more = icmp slt i64 %i, %to
  br i1 %more, label %body, label %exit
body:
  %ai = getelementptr float, ptr %ap, i64 %i
  %a = load float, ptr %ai
  %twice = fmul float %a, 2.0
  %v = fadd float %twice, %k
  %ri = getelementptr float, ptr %rp, i64 %i
  store float %v, ptr %ri
  %i1 = add i64 %i, 1
  br label %head
exit:
  ret void
}
"""
# out[i] = a[i] + b[i]
_TWO = (
    _ONE.replace("@one", "@two")
    .replace("%twice = fmul float %a, 2.0", "%bi = getelementptr float, ptr %rp, i64 %i\n  %b = load float, ptr %bi")
    .replace("fadd float %twice, %k", "fadd float %a, %b")
    .replace("%ri = getelementptr float, ptr %rp", "%ri = getelementptr float, ptr %kp")
)


@cache
def _object(text: str) -> bytes:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(BASELINE.triple).create_target_machine(opt=2, reloc="pic", codemodel="small")
    return machine.emit_object(llvm.parse_assembly(text))


def _kernels(**changes: Any) -> dict[str, CompiledKernel]:
    size = d.symbol("s0")
    grid, bytes_ = d.ceil_div(size, 16), d.mul(size, 4)
    constant = np.float32(3).tobytes()
    one = CompiledKernel("one", _object(_ONE), "test", grid, 64, extra_constants=(constant,), flops=size, bytes_read=bytes_, bytes_written=bytes_)
    two = CompiledKernel("two", _object(_TWO), "test", grid, 64, flops=size, bytes_read=bytes_)
    return {"one": replace(one, **changes), "two": two}


def _executable(name: str, operands: int) -> str:
    arguments = ", ".join(f"%a{i}: tensor<?xf32>" for i in range(operands))
    return (
        f"flow.executable private @{name} {{ flow.executable.export public @{name}\n builtin.module {{\n"
        f'func.func @{name}({arguments}, %n: index {{fuseline.name = "s0"}}) -> tensor<?xf32> {{ func.return %a0 : tensor<?xf32> }} }} }}\n'
    )


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


def _schedule(main: str = _MAIN, ctx: CompilerContext | None = None) -> Schedule:
    ctx = ctx or new_context()
    return build_schedule(ctx, Parser(ctx, "builtin.module {" + _executable("one", 1) + _executable("two", 2) + main + "}").parse_module())


def _artifact(schedule: Schedule, kernels: dict[str, CompiledKernel], **more: Any) -> Artifact:
    return assemble(schedule, kernels, pack_constants(schedule, kernels), machine=BASELINE, **more)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_program_computes(threads: int) -> None:
    artifact = _artifact(_schedule(), _kernels(), threads=threads)
    session = Session(artifact._replace(program=artifact.program._replace(serial_below_ns=0, split_above_ns=0)))
    for n in (1, 100, 16, 4000):
        x = np.random.default_rng(n).standard_normal(n, dtype=np.float32)
        out = session.run({"x": x})
        np.testing.assert_allclose(out["y"], 2 * (2 * (2 * x + 3) + 3), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(out["result1"], x)
        np.testing.assert_array_equal(out["result2"], out["y"])
        assert not np.shares_memory(out["result2"], out["y"])


def test_commands_carry_barriers_costs_and_labels() -> None:
    steps = [step for step in _artifact(_schedule(), _kernels()).program.steps if isinstance(step, Command)]
    assert [step.barrier for step in steps if step.label in ("one", "two")] == [False, True, False, True]
    assert all(step.cost_ns != 0 for step in steps)
    assert len({step.kernel for step in steps}) == 3


def test_saved_and_loaded(tmp_path: Path) -> None:
    artifact = _artifact(_schedule(), _kernels(), records=b"r", metadata={"target": "cpu"}, threads=2)
    artifact.save(tmp_path / "m.fuse")
    session = load(tmp_path / "m.fuse", verify=True)
    x = np.arange(50, dtype=np.float32)
    np.testing.assert_array_equal(session.run({"x": x})["y"], Session(artifact).run({"x": x})["y"])
    assert session.records == b"r" and session.artifact.metadata == {"target": "cpu"}


def test_packed_constant_operand() -> None:
    ctx = new_context()
    ctx.resources["w"] = np.arange(6, dtype=np.float32)
    main = """
func.func @main(%x: tensor<6xf32> {fuseline.name = "x"}) -> (tensor<6xf32> {fuseline.name = "y"}) {
  %n = arith.constant 6 : index
  %w = arith.constant dense_resource<w> : tensor<6xf32>
  %d = flow.dispatch @two::@two(%x, %w, %n) : (tensor<6xf32>, tensor<6xf32>, index) -> tensor<6xf32>
  func.return %d : tensor<6xf32>
}"""
    kernels = _kernels()
    kernels["two"] = replace(kernels["two"], constant_layouts={1: PackedLayout((6,), (2, 3), (1, 0))})
    session = Session(_artifact(_schedule(main, ctx), kernels))
    np.testing.assert_array_equal(session.run({"x": np.zeros(6, np.float32)})["y"], [0, 3, 1, 4, 2, 5])


def test_missing_kernel_and_symbol_are_refused() -> None:
    schedule, kernels = _schedule(), _kernels()
    with pytest.raises(FuselineError, match="no kernel was compiled for @one"):
        _artifact(schedule, {"two": kernels["two"]})
    with pytest.raises(FuselineError, match=r"E0404.*does not define other"):
        _artifact(schedule, _kernels(symbol="other"))


def test_a_size_no_input_determines_is_refused() -> None:
    schedule = _schedule()
    lost = replace(schedule.outputs[0], dims=(d.symbol("found"),))
    with pytest.raises(FuselineError, match=r"E0107.*found"):
        _artifact(replace(schedule, outputs=(lost, *schedule.outputs[1:])), _kernels())


def test_an_unpacked_constant_is_an_internal_error() -> None:
    main = """
func.func @main() -> (tensor<6xf32>) {
  %w = arith.constant dense<1.0> : tensor<6xf32>
  func.return %w : tensor<6xf32>
}"""
    schedule = _schedule(main)
    packed = pack_constants(schedule, {})
    np.testing.assert_array_equal(Session(assemble(schedule, {}, packed, machine=BASELINE)).run({})["result0"], np.ones(6, np.float32))
    with pytest.raises(FuselineError, match=r"E0901.*was not packed"):
        assemble(schedule, {}, replace(packed, layouts={}), machine=BASELINE)
