"""Tiny hand-written kernels, linked with the scheduler into artifacts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fuseline.runtime.artifact import Artifact
from fuseline.runtime.cpu import machine_name
from fuseline.runtime.memory import aligned_empty
from fuseline.runtime.program import Arm, Command, Program, Step
from fuseline.runtime.signatures import Buffer, Signature, SizeBounds
from fuseline.targets.cpu.isa.detection import machine
from fuseline.targets.cpu.link.built_in_kernels import COPY_SYMBOL
from fuseline.targets.cpu.link.compile import compile_texts
from fuseline.targets.cpu.link.image import Image, link_image
from fuseline.targets.cpu.link.scheduler import RUN_SYMBOL, WORKER_SYMBOL, scheduler_object
from fuseline.targets.cpu.link.signature import BUILT_IN

MACHINE = machine("baseline" if machine_name() == "x86_64" else "neon")
ROW = 16
"""Elements one workgroup of the test kernels covers."""

_LOOP = """
define void @{name}(ptr %bindings, ptr %sizes, i64 %begin, i64 %end, ptr %scratch) nounwind {{
entry:
  %ap = load ptr, ptr %bindings, align 8
  %bs = getelementptr ptr, ptr %bindings, i64 1
  %bp = load ptr, ptr %bs, align 8
  %cs = getelementptr ptr, ptr %bindings, i64 {last}
  %cp = load ptr, ptr %cs, align 8
  %n = load i64, ptr %sizes, align 8
  %from = mul i64 %begin, {row}
  %to0 = mul i64 %end, {row}
  %clip = icmp slt i64 %to0, %n
  %to = select i1 %clip, i64 %to0, i64 %n
  br label %head
head:
  %i = phi i64 [%from, %entry], [%i1, %body]
  %more = icmp slt i64 %i, %to
  br i1 %more, label %body, label %exit
body:
  %ai = getelementptr float, ptr %ap, i64 %i
  %a = load float, ptr %ai, align 4
  {second}
  %ci = getelementptr float, ptr %cp, i64 %i
  store float %v, ptr %ci, align 4
  %i1 = add i64 %i, 1
  br label %head
exit:
  ret void
}}
"""
_ADD = "%bi = getelementptr float, ptr %bp, i64 %i\n  %b = load float, ptr %bi, align 4\n  %v = fadd float %a, %b"
_TEXTS = {
    "add": _LOOP.format(name="add", last=2, row=ROW, second=_ADD),
    "double": _LOOP.format(name="double", last=1, row=ROW, second="%v = fmul float %a, 2.0"),
    "increment": _LOOP.format(name="increment", last=1, row=ROW, second="%v = fadd float %a, 1.0"),
    "nothing": "define void @nothing(ptr %b, ptr %s, i64 %begin, i64 %end, ptr %scratch) { ret void }",
    # element i of the result: element n-1-i of the operand plus one; so a thread reads what another one wrote
    "mirror": _LOOP.format(
        name="mirror",
        last=1,
        row=ROW,
        second="%last = sub i64 %n, 1\n  %j = sub i64 %last, %i\n  %mi = getelementptr float, ptr %ap, i64 %j\n"
        "  %m = load float, ptr %mi, align 4\n  %v = fadd float %m, 1.0",
    ),
}


@cache
def _image() -> Image:
    return link_image([scheduler_object(MACHINE), *compile_texts(list(_TEXTS.values()), MACHINE, processes=1)])


class Kit:
    """What tests build artifacts from; `kernel` answers a kernel's offset in the image."""

    row = ROW

    def kernel(self, name: str) -> int:
        if name == "copy":
            return _image().symbols[0][COPY_SYMBOL]
        return _image().symbols[1 + list(_TEXTS).index(name)][name]

    def arm(self, name: str, bindings: Sequence[Any], elements: Any, workgroups: Any = None, cost_ns: Any = 0) -> Arm:
        grid = -(-elements // ROW) if workgroups is None else workgroups
        return Arm(self.kernel(name), tuple(bindings), (elements,), grid, cost_ns)

    def command(
        self,
        name: str,
        bindings: Sequence[Any],
        elements: Any,
        workgroups: Any = None,
        *,
        cost_ns: Any = 0,
        **more: Any,
    ) -> Command:
        return Command((self.arm(name, bindings, elements, workgroups, cost_ns),), **more)

    def artifact(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[Any],
        steps: Sequence[Step],
        constants: Sequence[Any] = (),
        **more: Any,
    ) -> Artifact:
        image = _image()
        entries = {"run": image.symbols[0][RUN_SYMBOL], "worker": image.symbols[0][WORKER_SYMBOL]}
        records, kernels = more.pop("records", b""), more.pop("kernels", None)
        program = Program(tuple(inputs), tuple(outputs), tuple(steps), **more)
        fixups = tuple((f.offset, f.target) for f in image.fixups)
        constants = tuple(as_bytes(constant) for constant in constants)
        return Artifact(program, image.code, entries, machine_name(), fixups, (), constants, records, kernels=kernels)

    def signatures(self) -> dict[int, list[Signature]]:
        """What the kernels take: `n` elements of every buffer, the last one written."""
        n, four = ("sum", ((1, "n"),)), ("sum", ((4, "n"),))
        grid = ("sum", ((1, ("div", ("sum", ((1, "n"), (ROW - 1,))), ROW)),))
        buffers = {"add": 3, "double": 2, "increment": 2, "mirror": 2}
        known = {
            self.kernel(name): [
                Signature((SizeBounds("n"),), tuple(Buffer(four, i == count - 1, 4) for i in range(count)), grid)
            ]
            for name, count in buffers.items()
        }
        known[self.kernel("copy")] = [BUILT_IN[COPY_SYMBOL]]
        known[self.kernel("nothing")] = [Signature((SizeBounds("n"),), (), w) for w in (n, *range(200))]
        return known


def as_bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    out = aligned_empty((array.nbytes,), np.dtype(np.uint8))
    out[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return out


@pytest.fixture(scope="session")
def kit() -> Kit:
    return Kit()
