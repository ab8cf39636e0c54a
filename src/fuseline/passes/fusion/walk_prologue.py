"""What a scatter reads through its producers: elementwise work and slices, evaluated where the walk comes by.

    indices ──> cast ──────┐
    updates ──> multiply ──┴─> scatter      =>      for each update: its index, its element, where the result lies

The walk looks at each update once for every element of the result beside the scattered loop: an element of the updates
that has all of those loops is evaluated once, an index that a whole row of the result shares once for each element of
the row. A conversion is part of the load. Vectors run along the innermost dimension of the result, where all of it has
one index; without them elements are evaluated one by one.
"""

from __future__ import annotations

from fuseline.analysis.indexing_maps import dims_of
from fuseline.analysis.ranks import Rank
from fuseline.analysis.structured import Kind
from fuseline.analysis.walks import Scatter, loops_behind
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import product
from fuseline.passes.fusion.conversions import CONVERSIONS, OF_INDICES, is_conversion
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.node import Node, Read
from fuseline.passes.fusion.rule import Merge

EVALUATED = frozenset({Kind.ELEMENTWISE, Kind.SLICE})
"""What the walk evaluates; other moves would have it read across memory, or find its way around a border, an update at
a time (updates padded from 200 to 256 rows: 1.15 of the time)."""

LANES = 8
"""Elements of a vector, about: so many of a row share the evaluation of their index."""

SCALAR = 2.0
"""How much longer an operation takes on one element than its share of a vector does, beside the rest of a walk
(measured: an exponential .75 ns more)."""


def may_precede(producer: Group, node: Node) -> bool:
    """Whether the walk of `node` could evaluate all that `producer` does."""
    return isinstance(node.idiom, Scatter) and all(member.kind in EVALUATED for member in producer.members)


def loaded_on_the_way(producer: Group) -> bool:
    """Whether the walk does what `producer` does as part of its loads."""
    converts = CONVERSIONS | OF_INDICES
    return all(node.moves or is_conversion(node, converts) for node in producer.members)


def evaluations(merge: Merge, factor: float) -> float:
    """What it takes to evaluate the producer in the walk, `factor` times each element: in evaluations by itself, which
    is all in vectors."""
    node = next(node for node in merge.consumer.members if isinstance(node.idiom, Scatter))
    return factor if _vector_loop(node) is not None else factor * SCALAR


def _vector_loop(node: Node) -> int | None:
    """The loop of a scatter along which vectors run, None where there is none."""
    assert isinstance(node.idiom, Scatter) and node.structured is not None
    indexed = {node.idiom.scattered, *loops_behind(node.structured, node.idiom.position)}
    return node.innermost if node.innermost not in indexed else None


def only_walked(merge: Merge) -> bool:
    """Whether nothing reads the producer but a scatter and what that reads in place; not where rows are sorted."""
    walks = [node for node in merge.consumer.members if node.is_sequential]
    if any(isinstance(node.idiom, Rank) for node in walks):
        return False
    before = made_before(merge.consumer, walks[0]) if walks else ()
    return all(read.consumer in before for read in merge.reads)


def made_before(group: Group, node: Node) -> set[Node]:
    """`node` and the members of its group that it is made from."""
    found, waiting = {node}, [node]
    while waiting:
        made = [read.producer for read in waiting.pop().reads if read.producer in group.member_set]
        new = {one for one in made if one is not None and one not in found}
        found |= new
        waiting += new
    return found


def walk_multiplicity(read: Read) -> float:
    """How often the walk of the reader, a scatter, looks at each element of what is read, at the sizes that are
    assumed; at least 1."""
    node = read.consumer
    assert isinstance(node.idiom, Scatter) and node.structured is not None
    if read.value in node.structured.outputs:
        return 1.0  # where the totals start from, once per element
    walked = {loop for loop in range(len(node.loops)) if loop != node.idiom.scattered}
    used = {loop for coordinate in read.coordinates if coordinate is not None for loop in dims_of(coordinate)}
    if any(coordinate is None for coordinate in read.coordinates):
        used = set(node.structured.reduction)  # picked by the number of the update
    again, along = assumed_size(product(node.loops[loop] for loop in walked - used)), _vector_loop(node)
    return max(1.0, again / (LANES if along in walked - used else 1))
