"""The null target: no code, counts only. For looking at dispatches, bytes and decisions without generating kernels."""

from __future__ import annotations

from fuseline.errors import FuselineError
from fuseline.targets.null.target import NullProgram, NullTarget
from fuseline.targets.target import Target

__all__ = ["NullProgram", "NullTarget", "create"]


def create(variant: str | None = None, threads: int | None = None, numerics: str = "default") -> Target:
    """The target `null`; raises E0501 for a variant, of which it has none."""
    if variant is not None:
        raise FuselineError("E0501", f"the null target has no variant {variant!r}")
    del numerics  # nothing is computed
    return NullTarget(threads or 1)
