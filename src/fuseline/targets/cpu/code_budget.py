"""The budget of code and of compile time that a kernel has, measured while it is emitted.

What fusion estimates (`passes/fusion/code_size.py`) knows nothing of tiles and of the copies of an epilogue that a
family writes out. So the kernel builder counts: about one instruction for each register that an operation fills. That
is the same on every run, whatever the machine's load, and stands for bytes and seconds alike: 9 bytes (7 to 10) and 18
to 25 us of code generation an instruction, over kernels of 500 to 100,000 of them (AVX-512, 2.0 GHz; long bodies in
every family). A kernel that would be longer than the budget is emitted again in a smaller form:

    full       as the family has it
    compact    every body once: epilogues in a loop over the tile's registers, vectors all masked rather than whole ones
               and a rest

and where that is still too long, the dispatch comes back without code and is split by the region former, or, where it
is one op, left to the families that would be asked next, and in the end emitted as it is: then the op's own body is
that long.
"""

from __future__ import annotations

from math import inf

from fuseline.analysis.structured import Kind, kind
from fuseline.dispatch.view import DispatchView
from fuseline.targets.compiled_kernel import FORMS
from fuseline.targets.cpu.families.family import Family, Plan
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.emitter import TooMuchCodeError
from fuseline.targets.cpu.kernel_ir.types import Kernel
from fuseline.targets.cpu.written_results import check_results_written

CODE_BUDGET = 32_768
"""Instructions of a kernel, about: 300 KB, 0.7 s of code generation. The longest of the models in the tests has
5,000."""

FULL, COMPACT, OVER_BUDGET = FORMS[1:]
"""Forms of a kernel; the last one is compact, too, and longer than the budget."""

TOO_LONG = "code-budget: the kernel would be longer than the budget of code"


def is_divisible(view: DispatchView) -> bool:
    """Whether a dispatch is of several ops that the region former can take apart."""
    return sum(kind(op) is not Kind.RESHAPE for op in view.members) > 1


def emitted(symbol: str, machine: Machine, family: Family, plan: Plan, form: str, budget: float) -> Kernel | None:
    """The kernel of a plan in a form; None where it would be longer than the budget."""
    kernel = KernelBuilder(symbol, machine, budget=budget, compact=form == COMPACT)
    try:
        family.emit(plan, kernel)
    except TooMuchCodeError:
        return None
    check_results_written(plan, kernel, family.name)
    return kernel.finish()


def general(symbol: str, machine: Machine, family: Family, plan: Plan, form: str, *, edges: bool = False) -> Kernel:
    """The kernel of a plan in a form that it has been emitted in, its loops kept (`Emitter.keeps_loops`), and, where
    `edges`, its edges, too (`Emitter.keeps_edges`)."""
    kernel = KernelBuilder(symbol, machine, compact=form != FULL, keeps_loops=True, keeps_edges=edges)
    family.emit(plan, kernel)
    for position in range(len(plan.view.size_names)):  # also those that it does not read: numbers lie behind them all
        kernel.size(position)
    return kernel.finish()


def within_budget(symbol: str, machine: Machine, family: Family, plan: Plan) -> tuple[Kernel, str] | None:
    """The kernel of a plan in the largest form that is within the budget, and that form; None where none is."""
    for form in (FULL, COMPACT):
        kernel = emitted(symbol, machine, family, plan, form, CODE_BUDGET)
        if kernel is not None:
            return kernel, form
    return None


def as_it_is(symbol: str, machine: Machine, family: Family, plan: Plan) -> Kernel:
    """The kernel of a plan in the smallest form, however long."""
    kernel = emitted(symbol, machine, family, plan, COMPACT, inf)
    assert kernel is not None
    return kernel
