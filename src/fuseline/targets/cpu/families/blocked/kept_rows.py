"""Whether the kernels of a plan can keep rows of an image from band to band."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.targets.cpu.families.blocked.planned_sub_kernels import PlannedSubKernel
from fuseline.targets.target import Refusal


def apart(kernels: Sequence[PlannedSubKernel]) -> Refusal | None:
    """Why those that make the rows of an image, as many as are planned, cannot: they ask for other layouts of a
    constant, or what they make of a row depends on those beside it."""
    if not all(one.family.computes_rows_alike for one in kernels):
        return Refusal("filtered", "rows are made several at a time")
    alike = all(one.layouts == kernels[0].layouts for one in kernels)
    return None if alike else Refusal("layouts", "few rows ask for constants in another order")
