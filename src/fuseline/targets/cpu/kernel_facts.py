"""What a compiled kernel says of itself: code, places, work, layouts, and what was asked of it."""

from __future__ import annotations

from fuseline.ir.work_costs import MADE
from fuseline.targets.compiled_kernel import CompiledKernel
from fuseline.targets.cpu.families.asked import asked_notes
from fuseline.targets.cpu.families.estimates import bytes_read, bytes_written, flops
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.link.signature import signature_of, with_numbers
from fuseline.targets.cpu.results_in_place import results_in_place
from fuseline.targets.cpu.shared_kernels import Built


def compiled_kernel(one: Built, symbol: str, code: bytes, machine: Machine) -> CompiledKernel:
    """The kernel of a dispatch as object code under a symbol, with what reports and the schedule need of it."""
    plan, view = one.plan, one.plan.view
    places = results_in_place(view, one.code, plan.workgroups, one.numbers)
    return CompiledKernel(
        symbol=symbol,
        object_code=code,
        family=one.family.name,
        workgroups=plan.workgroups,
        scratch_bytes=one.code.scratch_bytes,
        constant_layouts=plan.constant_layouts,
        extra_constants=plan.extra_constants,
        flops=flops(view),
        bytes_read=bytes_read(view, plan.constant_layouts),
        bytes_written=bytes_written(view),
        notes={
            **plan.notes,
            **asked_notes(plan, one.family.policy),
            MADE: plan.work_made(machine),
            "refused": one.refusals,
            "form": one.form,
            "unshared": one.unshared,
            "lost": one.lost,
        },
        form=one.form,
        in_place=tuple(pair for pair, refusal in places.items() if refusal is None),
        signature=with_numbers(signature_of(one.kernel, plan), one.numbers, one.code.scratch_bytes),
        numbers=one.numbers,
    )
