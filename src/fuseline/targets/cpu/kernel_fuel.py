"""Fuel for kernels: which families may take a dispatch, and noting what one took."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.dispatch.view import DispatchView
from fuseline.ir.fuel import Fuel
from fuseline.ir.provenance import provenance
from fuseline.targets.cpu.families.family import Family


def affordable(offered: Sequence[Family], fuel: Fuel | None) -> Sequence[Family]:
    """The families that may take a dispatch: without fuel the last one, which takes every dispatch."""
    return offered if fuel is None or fuel.left("kernel") else offered[-1:]


def spend(fuel: Fuel | None, family: Family, view: DispatchView) -> None:
    """Note a family that took a dispatch; the last one is no choice, for it is what remains."""
    if fuel is not None and fuel.left("kernel"):
        nodes = dict.fromkeys(name for op in view.members for name in provenance(op))
        fuel.spend("kernel", family.name, (view.entry.sym_name.data,), tuple(nodes))
