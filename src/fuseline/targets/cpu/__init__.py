"""The CPU target: dispatches to native kernels through LLVM, linked with a native scheduler into one image."""

from __future__ import annotations

from fuseline.targets.target import Target


def create(variant: str | None = None, threads: int | None = None, numerics: str = "default") -> Target:
    """The target `cpu` or `cpu:<isa>`; `threads` None for the processors this process may run on. Raises E0501 for an unknown ISA."""
    from fuseline.targets.cpu.target import CpuTarget

    return CpuTarget(variant, threads, numerics=numerics)
