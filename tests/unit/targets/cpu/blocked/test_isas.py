"""Every ISA's blocked kernels become objects, and compute what they should on the kernel IR's evaluator."""

from __future__ import annotations

import pytest

from fuseline.targets.cpu.families.blocked.family import BlockedFamily
from fuseline.targets.cpu.families.family import Policy
from fuseline.targets.cpu.isa import ISA_NAMES, machine
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.link.compile import emit_object
from tests.kernels import Runner, arrays_for, assert_close

from .programs import attention, expected_attention


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_attention_on_every_isa(isa: str):
    view, target = attention([3], 10, 19, 5, heads_last=False, masked=True), machine(isa)
    run = Runner(BlockedFamily(Policy(threads=8)), view, target)
    assert emit_object(print_llvm([run.kernel], target), target)[:4] == b"\x7fELF"
    arrays = arrays_for(view)
    assert_close(run.evaluated(*arrays)[0], expected_attention(arrays, heads_last=False), bits=15)
