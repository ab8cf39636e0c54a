"""Vectors that find no register lie in one line of the cache each, whatever the caller's stack."""

from __future__ import annotations

import re

import pytest

from fuseline.targets.cpu.isa.detection import machine
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.link.compile import emit_assembly

PATTERNS = {"avx2": r"vmov(\w+)\s.*ymm.*\(%rsp\)", "avx512": r"vmov(\w+)\s.*zmm.*\(%rsp\)"}


def _spilling(isa: str) -> str:
    """A module with one function that holds more vectors than there are registers: loaded one by one, then stored."""
    described = machine(isa)
    vector = f"<{described.vector_bytes // 4} x float>"
    count = 2 * described.vector_registers
    lines = ["define void @spill(ptr %from, ptr %to) #0 {"]
    for k in range(count):
        lines += [f"%p{k} = getelementptr {vector}, ptr %from, i64 {k}"]
        lines += [f"%v{k} = load volatile {vector}, ptr %p{k}, align 4"]
    for k in range(count):
        lines += [f"%q{k} = getelementptr {vector}, ptr %to, i64 {k}"]
        lines += [f"store volatile {vector} %v{k}, ptr %q{k}, align 4"]
    return print_llvm([], described) + "\n".join([*lines, "ret void", "}"]) + "\n"


@pytest.mark.parametrize("isa", sorted(PATTERNS))
def test_spilled_vectors_are_aligned(isa: str):
    moves = re.findall(PATTERNS[isa], emit_assembly(_spilling(isa), machine(isa)))
    assert moves and all(move.startswith("ap") for move in moves)


@pytest.mark.parametrize("isa", sorted(PATTERNS))
def test_the_attribute_is_what_aligns_them(isa: str):
    text = re.sub(r"alignstack=\d+ ", "", _spilling(isa))
    assert any(move.startswith("up") for move in re.findall(PATTERNS[isa], emit_assembly(text, machine(isa))))
