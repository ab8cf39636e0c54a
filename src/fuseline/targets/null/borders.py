"""What a program without code still says of itself: its border, and what runs on the host."""

from __future__ import annotations

from collections.abc import Iterable

from fuseline.ir.dim import Dim
from fuseline.ir.dim_json import to_json
from fuseline.program.schedule import Boundary, HostStep, Schedule
from fuseline.runtime.program import HostCall, TensorSpec
from fuseline.runtime.sizes import Size, size_from_json


def runtime_sizes(dims: Iterable[Dim]) -> tuple[Size, ...]:
    """Sizes as the runtime has them."""
    return tuple(size_from_json(to_json(dim)) for dim in dims)


def boundary_specs(boundaries: Iterable[Boundary]) -> tuple[TensorSpec, ...]:
    """Inputs or outputs as the runtime describes them."""
    return tuple(TensorSpec(b.name, b.dtype, runtime_sizes(b.dims), b.slot, b.type) for b in boundaries)


def host_calls(schedule: Schedule) -> tuple[HostCall, ...]:
    """The host operators of a schedule, without their operands."""
    return tuple(
        HostCall(step.executor, step.node, (), (), step.label) for step in schedule.steps if isinstance(step, HostStep)
    )
