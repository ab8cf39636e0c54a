"""What a merge saves: bytes that no longer travel through memory, against parallelism lost. Plain analysis, no rule asks it anything.

A merge saves the store of every value that nobody outside reads any more, and one load per value for each reader that comes inside. It costs time
when too few workgroups are left for the target's threads; then the driver records `parallelism` with the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from fuseline.ir.dim import product, upper_bound
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.graph import FusionGraph, Read
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.rule import Merge

UNBOUNDED_SIZE = 512
"""Stands for a symbolic size without a bound when sizes are only weighed against each other."""

SERIAL_ELEMENTS = 1 << 15
"""Up to this many elements a single thread is at least as fast as several: a barrier costs about 100 ns, 32 Ki elements a few microseconds."""


@dataclass(frozen=True, slots=True)
class Profit:
    """`bytes_saved`: loads and stores that vanish, in bytes per run."""

    bytes_saved: int


def weigh(merge: Merge, graph: FusionGraph) -> Profit:
    """What merging the two groups saves."""
    inside = set(merge.producer.members) | set(merge.consumer.members)
    saved = 0
    for value, readers in _values(merge).items():
        size = upper_bound(graph.num_bytes(value))
        size = size if size is not None else UNBOUNDED_SIZE
        node = readers[0].producer
        assert node is not None
        stays = node.escapes or any(read.consumer not in inside for read in node.readers if read.value is value)
        saved += size if stays else 2 * size
    return Profit(saved)


def _values(merge: Merge) -> dict[SSAValue, list[Read]]:
    found: dict[SSAValue, list[Read]] = {}
    for read in merge.reads:
        found.setdefault(read.value, []).append(read)
    return found


def loses_parallelism(group: Group, merge: Merge, target: TargetDescription) -> WhyNot | None:
    """The refusal of a merge that would leave a large dispatch with fewer workgroups than threads, None where it does not."""
    left = group.parallel_iterations()
    if left is None or left >= target.threads:
        return None
    before = max(_iterations(merge.producer), _iterations(merge.consumer))
    work = max((upper_bound(product(node.loops)) or 0) for node in group.members)
    if before <= left or work <= SERIAL_ELEMENTS:
        return None
    numbers = {"parallel_iterations": float(left), "threads": float(target.threads)}
    return WhyNot("parallelism", f"{left} parallel iterations would be left for {target.threads} threads", group.root.name, numbers)


def _iterations(group: Group) -> int:
    found = group.parallel_iterations()
    return found if found is not None else UNBOUNDED_SIZE
