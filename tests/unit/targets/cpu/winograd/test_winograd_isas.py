"""Every ISA: kernels become objects, no access can leave its buffer, and the evaluator agrees with the machine."""

from __future__ import annotations

import pytest

from fuseline.ir import dim as d
from fuseline.targets.cpu.families.winograd.family import WinogradFamily
from fuseline.targets.cpu.isa import ISA_NAMES, cpu_flags, machine
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.link.compile import emit_object
from tests.kernels import Runner, assert_close, kernel_of, plan_of

from .convolutions import Case, Forced

CASES: dict[str, tuple[WinogradFamily, Case]] = {
    "whole": (Forced(2, 3), Case((4, 5), (16, 16))),
    "tails": (Forced(2, 3, 8, 1), Case((5, 3), (3, 21))),
    "one dimension": (Forced(4, 2), Case((9,), (5, 8), epilogue=False)),
    "larger tiles": (Forced(4, 2), Case((7, 5), (16, 9), pad=(0, 1), batch=2)),
}


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("name", CASES)
def test_no_access_can_leave_its_buffer(name: str, isa: str):
    family, case = CASES[name]
    plan = plan_of(family, case.view, machine(isa))
    assert check_bounds(kernel_of(family, plan, machine(isa)), [], d.evaluate(plan.workgroups, {})) == []


@pytest.mark.parametrize("name", CASES)
def test_evaluator_and_machine_agree(name: str):
    family, case = CASES[name]
    run, arrays = Runner(family, case.view), case.arrays()
    assert_close(run.evaluated(*arrays)[0], run(*arrays)[0])


@pytest.mark.parametrize(
    "isa", [name for name in ("avx512", "baseline", "neon") if not cpu_flags().issuperset(machine(name).needs)]
)
def test_kernels_of_machines_that_are_not_here(isa: str):
    family, case = CASES["tails"]
    arrays = case.arrays()
    assert_close(Runner(family, case.view, machine(isa)).evaluated(*arrays)[0], case.expected(*arrays), bits=16)


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_kernels_become_objects(isa: str):
    family, view = Forced(4, 12), Case((28, 28), (64, 64)).view
    text = print_llvm([kernel_of(family, plan_of(family, view, machine(isa)), machine(isa))], machine(isa))
    assert len(text) < 160_000
    assert emit_object(text, machine(isa))[:4] == b"\x7fELF"
