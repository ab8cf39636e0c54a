"""The CPU target: dispatches to native kernels through LLVM, linked with a native scheduler into one image."""

from __future__ import annotations

from pathlib import Path

from fuseline.targets.target import Target


def create(variant: str | None = None, threads: int | None = None, numerics: str = "default") -> Target:
    """The target `cpu`, `cpu:<isa>` or `cpu:<file.toml>`; `threads` None for the processors this process may run on.

    Raises E0501 for an unknown ISA, and for a file that describes no CPU.
    """
    from fuseline.targets.cpu.described import described_cpu
    from fuseline.targets.cpu.isa.description_file import SUFFIX
    from fuseline.targets.cpu.target import CpuTarget

    if variant is not None and variant.endswith(SUFFIX):
        return described_cpu(Path(variant), threads, numerics)
    return CpuTarget(variant, threads, numerics=numerics)
