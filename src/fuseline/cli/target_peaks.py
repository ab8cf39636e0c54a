"""What the target that a command line names is taken to do at most."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fuseline.report.page.inputs import Peaks


def assumed_peaks(options: Mapping[str, Any], threads: int) -> Peaks:
    """The peaks of the target in the options of a compile, of this CPU where they name none: of what fusion weighs with
    and what dispatches are predicted with the faster, so that no prediction lies above its own roof."""
    from fuseline.targets import create_target

    target = create_target(options.get("target") or "cpu", threads, options.get("numerics") or "default")
    weighed, fitted = target.description.costs, target.description.work_costs
    return Peaks(
        threads * max(weighed.flops_per_ns, _rate(fitted.product)),
        threads * max(weighed.stored_bytes_per_ns, _rate(fitted.bytes)),
        threads * max(weighed.memory_bytes_per_ns, _rate(fitted.bytes + fitted.far)),
    )


def _rate(cost: float) -> float:
    """Units in a nanosecond; 0 where a unit is said to cost nothing, which no peak is made of."""
    return 1 / cost if cost > 0 else 0.0
