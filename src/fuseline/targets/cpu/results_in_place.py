"""Which results of a dispatch may lie in the place of an operand, asked of its finished kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fuseline.dispatch.result_boxes import box_of
from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.kernel_ir.in_place import Pair, in_place
from fuseline.targets.cpu.kernel_ir.types import Kernel
from fuseline.targets.target import Refusal


def results_in_place(
    view: DispatchView, kernel: Kernel, workgroups: Dim, numbers: Sequence[int] = ()
) -> Mapping[Pair, Refusal | None]:
    """For each result and operand (by position) of equal size None where the result may take the operand's place, else
    why not. Constants and results that are a box of a larger tensor are left out. `numbers`: what this dispatch passes
    to a `kernel` that it shares; others may be answered otherwise."""
    count = len(view.tensors)
    pairs = [(count + result, operand) for result, operand in _candidates(view)]
    passed = dict(enumerate(numbers, start=len(view.size_names)))
    found = in_place(kernel, pairs, d.upper_bound(workgroups), passed)
    return {(result - count, operand): refusal for (result, operand), refusal in found.items()}


def _candidates(view: DispatchView) -> list[Pair]:
    results = [
        (i, d.product(view.shapes.dims(value)))
        for i, value in enumerate(view.results)
        if not box_of(view.shapes, value).sliced
    ]
    operands = [
        (i, d.product(view.shapes.dims(value))) for i, value in enumerate(view.tensors) if not view.is_constant(value)
    ]
    return [(result, operand) for result, size in results for operand, other in operands if size == other]
