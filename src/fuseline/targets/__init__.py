"""Targets: places where dispatches run. One folder each; `create_target` finds one by its name."""

from __future__ import annotations

import importlib

from fuseline.errors import FuselineError
from fuseline.ir.target_description import NUMERICS
from fuseline.targets.target import Target

TARGETS = ("cpu", "interpreter", "null")


def create_target(name: str, threads: int | None = None, numerics: str = "default") -> Target:
    """The target called `name`, `<target>` or `<target>:<variant>`, with kernels of this exactness; raises E0501 for a
    name that is none."""
    if numerics not in NUMERICS:
        raise FuselineError("E0501", f"numerics cannot be {numerics!r}", hint=f"use one of {', '.join(NUMERICS)}")
    folder, _, variant = name.partition(":")
    if folder not in TARGETS:
        raise FuselineError("E0501", f"no target is called {name!r}", hint=f"use one of {', '.join(TARGETS)}")
    module = importlib.import_module(f"fuseline.targets.{folder}")
    return module.create(variant or None, threads, numerics)
