"""Kernels as text for people: kernel IR, LLVM or assembly, each kernel under its heading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.kernel_ir.text import kernel_text
from fuseline.targets.cpu.kernel_ir.types import Kernel
from fuseline.targets.cpu.link.compile import emit_assembly

Headings = Mapping[str, Sequence[str]]


def code_text(kernels: Mapping[str, Kernel], headings: Headings, form: str, machine: Machine) -> str:
    """The `kernels` (by symbol) that have a heading, in its order, in a form of `targets.target.CODE_FORMS`. LLVM text
    is one module, assembly one file."""
    named = [replace(kernels[symbol], symbol=symbol) for symbol in headings]
    if form == "kernel":
        return "\n".join(_comment("//", headings[one.symbol]) + kernel_text(one) for one in named)
    module = print_llvm(named, machine)
    if form == "llvm":
        return _headed(module, {f"define void @{symbol}(": _comment(";", headings[symbol]) for symbol in headings})
    # LLVM writes a directive per symbol before its code, in the order of the module.
    marks = {f"\t.globl\t{symbol}\n": _comment("#", headings[symbol]) for symbol in headings}
    return _headed(emit_assembly(module, machine), marks)


def _comment(mark: str, lines: Sequence[str]) -> str:
    return "".join(f"{mark} {line}\n" for line in lines)


def _headed(text: str, marks: Mapping[str, str]) -> str:
    """`text` with each heading before the words that it belongs to."""
    for anchor, heading in marks.items():
        before, found, after = text.partition(anchor)
        text = before + heading + found + after
    return text
