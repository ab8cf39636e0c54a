"""What the NPU is: sizes, rates, and what fuseline's passes are told of them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fuseline.errors import FuselineError
from fuseline.ir.costs import MachineCosts
from fuseline.ir.target_description import TargetDescription


@dataclass(frozen=True)
class Machine:
    """A grid of `rows` by `columns` cores at 1 GHz.

    Each has an array of `side` by `side` multipliers that keeps a tile of weights, streams one row of an image per
    cycle past it and adds into accumulators; `lanes` of a vector unit, an operation each per cycle; a scalar core, an
    operation per cycle; `memory` bytes of its own, which `dma` bytes per cycle are copied to and from. `group`: rows of
    an image that are streamed without a gap. `launch`: cycles until a dispatch has begun on all cores.
    """

    rows: int = 4
    columns: int = 4
    side: int = 16
    lanes: int = 16
    group: int = 4
    memory: int = 64 * 1024
    dma: int = 32
    launch: int = 500
    tiled: bool = True


def machine(variant: str | None) -> Machine:
    """The machine of a variant: `ROWSxCOLUMNS`, and `-untiled` for one that lets no loop grow. Raises E0501."""
    found = re.fullmatch(r"([1-9]\d?)x([1-9]\d?)(-untiled)?", variant or "4x4")
    if found is None:
        raise FuselineError("E0501", f"the systolic NPU has no variant {variant!r}", hint="write 4x4, 2x8, 4x4-untiled")
    return Machine(rows=int(found[1]), columns=int(found[2]), tiled=not found[3])


def description(machine: Machine, numerics: str) -> TargetDescription:
    """Tiles: heights are dealt to the rows of the grid, widths come in groups, channels in sides of the array. One
    part per dispatch (what else it may have is up to the vetoes). A core is a thread; there is no minimal filtering."""
    side, group = machine.side, machine.group
    image = (("OH", machine.rows), ("OW", group), ("OC", side), ("IC", side))
    costs = MachineCosts(
        flops_per_ns=2.0 * side * side,
        operation_ns=1 / machine.lanes,
        stored_bytes_per_ns=machine.dma,
        streamed_bytes_per_ns=machine.dma,
        memory_bytes_per_ns=machine.dma,
        cached_bytes=machine.memory,
        launch_ns=machine.launch,
        filtering_gain=1.0,
        packed_bytes=1,
    )
    return TargetDescription(
        f"systolic-npu:{machine.rows}x{machine.columns}",
        threads=machine.rows * machine.columns,
        scratch_bytes_limit=machine.memory,
        image_bytes_limit=machine.memory,
        arms_limit=1,
        numerics=numerics,
        tile_multiples=(*image, ("M", group * machine.rows), ("N", side), ("K", side)) if machine.tiled else (),
        class_multiples=(("pointwise", image), ("depthwise", image[:3])) if machine.tiled else (),
        costs=costs,
    )
