"""What work costs on the target that a command line names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fuseline.ir.costs import MachineCosts


def target_costs(options: Mapping[str, Any], threads: int) -> MachineCosts:
    """The figures of the target in the options of a compile; those of this CPU where they name none."""
    from fuseline.targets import create_target

    target = create_target(options.get("target") or "cpu", threads, options.get("numerics") or "default")
    return target.description.costs
