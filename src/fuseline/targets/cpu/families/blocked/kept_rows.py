"""Whether the kernels of a plan can keep rows of an image from band to band."""

from __future__ import annotations

from fuseline.targets.cpu.families.blocked.plan import BlockedPlan
from fuseline.targets.target import Refusal


def apart(plan: BlockedPlan) -> Refusal | None:
    """Why the two kernels that make the rows of an image cannot: they ask for other layouts of a constant, or what they
    make of a row depends on those beside it."""
    if plan.bands is None or not plan.bands.image.kept:
        return None
    kernels = plan.sub_kernels[plan.bands.first : plan.bands.end]
    if not all(one.family.computes_rows_alike for one in kernels):
        return Refusal("filtered", "rows are made several at a time")
    one, other = (
        {kernel.arguments[i]: layout for i, layout in kernel.plan.constant_layouts.items()} for kernel in kernels
    )
    return Refusal("layouts", "few rows ask for constants in another order") if one != other else None
