"""The null target: no code, counts only. For looking at dispatches, bytes and decisions without generating kernels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fuseline.targets.description_file import read_toml
from fuseline.targets.null.target import NullProgram, NullTarget
from fuseline.targets.target import Target, TargetDescription
from fuseline.targets.target_file import description_of

__all__ = ["NullProgram", "NullTarget", "create"]


def create(variant: str | None = None, threads: int | None = None, numerics: str = "default") -> Target:
    """The target `null`, as described in the TOML file `variant` if given (`null:npu.toml`); raises E0501 for a file
    that is no description."""
    if variant is None:
        return NullTarget(TargetDescription("null", threads=threads or 1, numerics=numerics))
    path = Path(variant)
    described, caps = description_of(read_toml(path), path, TargetDescription(path.stem))
    if threads is not None:
        described = replace(described, threads=threads)
    return NullTarget(described if numerics == "default" else replace(described, numerics=numerics), caps)
