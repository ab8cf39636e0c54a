"""Kernels as text under their headings, in each form."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from fuseline.targets.cpu.code_text import code_text
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Kernel

MACHINE = machine("avx2")
HEADINGS = {"second": ("what second is", "who runs it"), "first": ("what first is",)}
MARKS = {"kernel": "//", "llvm": ";", "asm": "#"}


def _kernel(added: float) -> Kernel:
    k = KernelBuilder("as_built", MACHINE)
    x, y = k.binding(0, "f32", 64), k.binding(1, "f32", 64, writable=True)
    k.store(y, 0, k.add(k.load(x, 0, 8), k.load(x, 8, 8)) if added else k.load(x, 0, 8))
    return k.finish()


KERNELS = {"first": _kernel(1.0), "second": _kernel(0.0), "third": _kernel(0.0)}


@pytest.mark.parametrize("form", MARKS)
def test_each_kernel_with_a_heading_stands_under_it_in_order(form: str):
    text = code_text(KERNELS, HEADINGS, form, MACHINE)
    lines = text.splitlines()
    assert [line for line in lines if line.startswith(f"{MARKS[form]} w")] == [
        f"{MARKS[form]} {line}" for heading in HEADINGS.values() for line in heading
    ]
    for symbol, heading in HEADINGS.items():
        after = lines[lines.index(f"{MARKS[form]} {heading[-1]}") + 1]
        assert symbol in after
    assert "third" not in text and "as_built" not in text


def test_llvm_text_is_one_module():
    module = llvm.parse_assembly(code_text(KERNELS, HEADINGS, "llvm", MACHINE))
    module.verify()
    assert {function.name for function in module.functions if not function.is_declaration} == set(HEADINGS)


def test_kernels_keep_the_order_of_the_headings():
    for order in (["first", "second"], ["second", "first"]):
        text = code_text(KERNELS, {symbol: HEADINGS[symbol] for symbol in order}, "kernel", MACHINE)
        assert text.index(f"kernel @{order[0]}(") < text.index(f"kernel @{order[1]}(")
    assert code_text(KERNELS, {}, "kernel", MACHINE) == ""
