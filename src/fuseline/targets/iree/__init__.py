"""IREE as a target: our dispatches, its code generation and its runtime (docs/iree.md)."""

from __future__ import annotations

from fuseline.targets.target import Target


def create(variant: str | None = None, threads: int | None = None, numerics: str = "default") -> Target:
    """The target `iree` (its CPU code generation) or `iree:<backend>`; raises E0501 for a backend that there is not."""
    from fuseline.targets.iree.backends import backend_named
    from fuseline.targets.iree.target import IreeTarget

    return IreeTarget(backend_named(variant), threads, numerics)
