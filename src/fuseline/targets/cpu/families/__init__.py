"""The kernel families, in the order in which they are offered a dispatch."""

from __future__ import annotations

import importlib

from fuseline.targets.cpu.families.family import Family, Policy

ORDER = (
    "blocked.family",
    "nests.dots",
    "contraction.family",
    "winograd.family",
    "sequential.scan",
    "sequential.order",
    "sequential.scatter",
    "sequential.selection",
    "window.family",
    "contraction.convolution",
    "nests.rows",
    "nests.elementwise",
    "nests.loop_nest",
)
"""Module names; the last accepts everything."""


def families(policy: Policy | None = None) -> list[Family]:
    """One of each, in order."""
    return [importlib.import_module(f"fuseline.targets.cpu.families.{name}").EXPORT(policy) for name in ORDER]
