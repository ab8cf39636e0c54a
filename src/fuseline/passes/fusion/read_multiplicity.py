"""How often each element of a value would be computed where its readers compute it themselves.

exp(c) ──> mul(r, c)                       once for each row
exp(c) ──> slice 0..3 ──┐
     └───> slice 3..8 ──┴─> concat         once, in the slice that it lies in
"""

from __future__ import annotations

from collections.abc import Iterable

from fuseline.analysis.indexing_maps import dims_of
from fuseline.analysis.ranks import Rank
from fuseline.analysis.structured import Kind
from fuseline.analysis.walks import Scatter
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import Dim, product, upper_bound
from fuseline.passes.fusion.gathered_elements import is_gathered, picked
from fuseline.passes.fusion.node import Node, Read
from fuseline.passes.fusion.walk_prologue import walk_multiplicity


def recompute_factor(reads: Iterable[Read]) -> float:
    """How often each element would be computed if every reader computed what it reads: the sum over readers, of slices
    for as much as they look at. At least 1."""
    reads, by_reader = tuple(reads), dict[Node, float]()
    whole = max(map(_elements, reads), default=0)
    for read in reads:
        times = read_multiplicity(read) * _share(read, whole)
        by_reader[read.consumer] = max(times, by_reader.get(read.consumer, 0.0))
    return max(1.0, sum(times * _walked_again(reader) for reader, times in by_reader.items()))


def _share(read: Read, whole: int) -> float:
    """How much of what is made a reader looks at, of `whole` elements: a slice at its own, who reads a smaller value
    at those of that."""
    elements = assumed_size(product(read.consumer.loops)) if read.consumer.kind is Kind.SLICE else _elements(read)
    return min(1.0, elements / max(whole, 1))


def _elements(read: Read) -> int:
    """How many elements the value has that is read, at the sizes that are assumed."""
    assert read.producer is not None
    written = read.producer.written[read.producer.result_index(read.value)]
    return assumed_size(product(read.producer.loops[loop] for loop in written if loop is not None))


def evaluated_in_order(reads: Iterable[Read]) -> float:
    """The same where rows are sorted: what is only taken at places in the order is evaluated there, and nowhere
    else."""
    by_reader = {
        read.consumer: picked(read) if is_gathered(read) else read_multiplicity(read)
        for read in reads
    }  # fmt: skip
    return max(1.0, sum(by_reader.values()))


def _walked_again(reader: Node) -> float:
    """How often a walk behind a reader evaluates that one."""
    walked = [walk_multiplicity(read) for read in reader.readers if isinstance(read.consumer.idiom, Scatter)]
    return max(walked, default=1.0)


def read_multiplicity(read: Read) -> float:
    """How often a reader looks at each element: the extents of its loops that do not address the value. At least 1."""
    node: Node = read.consumer
    if isinstance(node.idiom, Scatter):
        return walk_multiplicity(read)
    if isinstance(node.idiom, Rank):
        return 1.0  # rows are sorted
    if is_gathered(read):
        return max(1.0, picked(read))
    if any(coordinate is None for coordinate in read.coordinates):
        return 1.0 if node.kind in (Kind.CONCAT, Kind.SLICE, Kind.PAD) else float("inf")
    used = _addressing(read)
    iterations = upper_bound(product(node.loops))
    elements = upper_bound(product(extent for loop, extent in enumerate(node.loops) if loop in used))
    if iterations is None or elements is None:
        rest = upper_bound(rounds_over(read))
        return float("inf") if rest is None else float(max(rest, 1))
    return max(1.0, iterations / max(elements, 1))


def rounds_over(read: Read) -> Dim:
    """How often a reader's loops go over a value that it reads plainly: the extents of those that do not address it."""
    used = _addressing(read)
    return product(extent for loop, extent in enumerate(read.consumer.loops) if loop not in used)


def _addressing(read: Read) -> set[int]:
    return {loop for coordinate in read.coordinates if coordinate is not None for loop in dims_of(coordinate)}
