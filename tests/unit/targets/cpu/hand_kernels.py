"""Two hand-written kernels, executables for them, and how programs of them become artifacts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fuseline.ir import dim as d
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.passes.schedule.build_schedule import build_schedule
from fuseline.passes.schedule.pack_constants import pack_constants
from fuseline.program.schedule import Schedule
from fuseline.runtime import Artifact
from fuseline.targets.compiled_kernel import CompiledKernel
from fuseline.targets.cpu.isa.baseline import MACHINE as BASELINE
from fuseline.targets.cpu.link.compile import compile_texts
from fuseline.targets.cpu.link.program import assemble

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


def _object(text: str) -> bytes:
    return compile_texts([text], BASELINE)[0]


def kernels(**changes: Any) -> dict[str, CompiledKernel]:
    """`one` (operand * 2 + 3) and `two` (sum of its operands); `changes` replace fields of `one`."""
    size = d.symbol("s0")
    grid, bytes_ = d.ceil_div(size, 16), d.mul(size, 4)
    constant = np.float32(3).tobytes()
    one = CompiledKernel(
        "one",
        _object(_ONE),
        "test",
        grid,
        64,
        extra_constants=(constant,),
        flops=size,
        bytes_read=bytes_,
        bytes_written=bytes_,
    )
    two = CompiledKernel("two", _object(_TWO), "test", grid, 64, flops=size, bytes_read=bytes_)
    return {"one": replace(one, **changes), "two": two}


def _executable(name: str, operands: int) -> str:
    arguments = ", ".join(f"%a{i}: tensor<?xf32>" for i in range(operands))
    return (
        f"flow.executable private @{name} {{ flow.executable.export public @{name}\n builtin.module {{\n"
        f'func.func @{name}({arguments}, %n: index {{fuseline.name = "s0"}}) -> tensor<?xf32> {{ func.return %a0 : '
        f"tensor<?xf32> }} }} }}\n"
    )


def schedule_of(main: str, **resources: Any) -> Schedule:
    """The schedule of a `@main` in text; `resources` are its `dense_resource` arrays."""
    ctx = new_context()
    ctx.resources.update(resources)
    return build_schedule(
        ctx, parse_module("builtin.module {" + _executable("one", 1) + _executable("two", 2) + main + "}", ctx)
    )


def artifact_of(schedule: Schedule, kernels: dict[str, CompiledKernel], **more: Any) -> Artifact:
    """Constants packed, everything assembled for a baseline x86-64."""
    return assemble(schedule, kernels, pack_constants(schedule, kernels), machine=BASELINE, **more)
