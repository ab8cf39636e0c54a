"""Targets: places where dispatches run. One folder each; `create_target` finds one by its name, those of other packages
and by the path of their code as well (docs/targets.md)."""

from __future__ import annotations

import importlib

from fuseline.errors import FuselineError
from fuseline.ir.target_description import NUMERICS
from fuseline.targets.target import Target

TARGETS = ("cpu", "interpreter", "iree", "null")


def create_target(name: str, threads: int | None = None, numerics: str = "default") -> Target:
    """The target called `name`, `<target>` or `<target>:<variant>`, with kernels of this exactness: one of the tree, of
    an installed package, or at a path (`./npu.py:4x4`).

    Raises E0501 for a name that is none, E0801 for a target from outside that does not load, E0802 for one that is
    wrong.
    """
    if numerics not in NUMERICS:
        raise FuselineError("E0501", f"numerics cannot be {numerics!r}", hint=f"use one of {', '.join(NUMERICS)}")
    folder, _, variant = name.partition(":")
    if folder in TARGETS:
        module = importlib.import_module(f"fuseline.targets.{folder}")
        return module.create(variant or None, threads, numerics)
    from fuseline.targets.outside.named import create_outside

    return create_outside(name, threads, numerics, TARGETS)
