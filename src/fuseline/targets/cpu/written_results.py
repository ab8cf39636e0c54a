"""Whether a kernel writes every result of its dispatch: the one that it never touches would be read as what lay in
memory before."""

from __future__ import annotations

from fuseline.errors import FuselineError
from fuseline.targets.cpu.families.family import Plan
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder


def check_results_written(plan: Plan, kernel: KernelBuilder, family: str) -> None:
    """Raises FuselineError (E0901) where the kernel emitted from `plan` asked for no buffer to write some result of
    the dispatch into, though that has elements."""
    view = plan.view
    for position, result in enumerate(view.results):
        empty = plan.workgroups == 0 or any(dim == 0 for dim in view.shapes.dims(result))
        if not empty and not kernel.writes_binding(len(view.tensors) + position):
            raise FuselineError(
                "E0901", f"the {family} kernel never writes result {position}", node=view.entry.sym_name.data
            )
