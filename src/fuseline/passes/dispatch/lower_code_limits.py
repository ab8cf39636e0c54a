"""Lower limits of code for the dispatches whose kernels came out too long: what the region former is told when it
starts again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fuseline.report.records import DispatchRecord
from fuseline.targets.compiled_kernel import CompiledKernel

SHRUNK = 4
"""By what a limit falls; the last one leaves every op alone."""

MOST_ROUNDS = 6
"""Of splitting: a part that still came out too long after three is one op, and other dispatches may follow from how the
parts are formed."""


def too_long(dispatches: Sequence[DispatchRecord], kernels: Mapping[str, CompiledKernel]) -> list[tuple[str, ...]]:
    """The members of each dispatch, or of its arm, that has no code because it would be too long."""
    return [members for dispatch in dispatches for members in _too_long(dispatch, kernels[dispatch.executable])]


def _too_long(dispatch: DispatchRecord, kernel: CompiledKernel) -> Iterator[tuple[str, ...]]:
    if kernel.arms and len(kernel.arms) == len(dispatch.arms):
        yield from (
            arm.members
            for arm, kernel_arm in zip(dispatch.arms, kernel.arms, strict=True)
            if kernel_arm.kernel.too_long
        )
    elif any(body.too_long for body in kernel.bodies):
        yield tuple(member.id for member in dispatch.members)


def lowered(limits: Mapping[str, int], member_sets: Sequence[tuple[str, ...]], target_limit: int) -> dict[str, int]:
    """The limits by member once each of `member_sets` has a lower one; `target_limit` holds for members without one."""
    out = dict(limits)
    for members in member_sets:
        limit = min(limits.get(member, target_limit) for member in members) // SHRUNK
        out |= {member: limit if limit * SHRUNK**3 > target_limit else 1 for member in members}
    return out
