"""Producers that are evaluated where they are read: pads, slices, concats, copies, gathers, and elementwise ops that
are read once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import isfinite

from xdsl.ir import Operation

from fuseline.analysis.box_blocks import root_ns
from fuseline.analysis.cost import operations
from fuseline.analysis.image_box import image_box
from fuseline.analysis.indexing_maps import used_dims
from fuseline.analysis.narrow_products import in_pairs, paired_steps
from fuseline.analysis.packings import packings
from fuseline.analysis.producers import is_stored
from fuseline.analysis.prologue_kind import Prologue
from fuseline.analysis.quantized_arguments import quantizes_argument
from fuseline.analysis.structured import Kind, StructuredOp, is_generic, multiply_add_operands
from fuseline.ir.costs import MachineCosts, assumed_size
from fuseline.ir.dim import product
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.conversions import CONVERSIONS, WIDENINGS, only_converts
from fuseline.passes.fusion.decision import Answer, Legal, NotApplicable, WhyNot
from fuseline.passes.fusion.gathered_elements import evaluated_by_element_ns, is_gathered
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.order_walk import rank_in
from fuseline.passes.fusion.profit import CONVERSION, EVALUATION_NS, QUANTIZES
from fuseline.passes.fusion.read_multiplicity import evaluated_in_order, recompute_factor
from fuseline.passes.fusion.rule import FusionRule, Merge, Shape
from fuseline.passes.fusion.tile_cost import block_passes
from fuseline.passes.fusion.walk_prologue import evaluations, loaded_on_the_way, only_walked


class ReadInPlace(FusionRule):
    """
    pad ──> convolution      =>      convolution that reads zeros outside its input
    negate ──> concat ──> multiply      =>      multiply that selects what it reads

    The producer's own result is never stored, so all its readers must be in the consumer's dispatch. Moving data costs
    no arithmetic and may be repeated, as may widening what is loaded; arithmetic may not (`recompute`). What moves is
    read through a reshape, too, by what computes: moves behind moves had better be where the first are made (a softmax
    that is padded and cut into tiles: 1.1 to 1.4 of the time of a transposition by itself).
    """

    name = "read-in-place"
    after = ("elementwise-cluster", "elementwise-epilogue", "row-chain")
    shape = Shape.INLINE_PRODUCER

    def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
        """`multi-use`, `reshape-between`, `recompute`, or legal with how often an element is computed."""
        producer, consumer = merge.producer, merge.consumer
        if producer.reduces:
            return NotApplicable()
        at = consumer.root.name
        if merge.leaks:
            return WhyNot("multi-use", "other ops read the producer too, so it has to be stored", at)
        if (
            consumer.heavy
            and not _beside_the_root(merge)
            and not all(node.kind is Kind.PAD for node in producer.members)
        ):
            return _into_root(merge, graph)
        if merge.regrouped and (consumer.moves or not producer.moves):
            return WhyNot("reshape-between", "a reshape regroups the dimensions", at)
        return Legal() if producer.moves else _computed(merge, graph)


def _computed(merge: Merge, graph: FusionGraph) -> Answer:
    """Of a producer that computes, for a reader that is no root."""
    at = merge.consumer.root.name
    if _widens_on_the_way(merge):
        return Legal()
    factor = recompute_factor(merge.reads)
    if rank_in(merge.consumer) is not None and isfinite(factor):
        factor = evaluated_in_order(merge.reads)
        return Legal({"recompute": factor, EVALUATION_NS: _again_ns(merge, factor)})
    if only_walked(merge):
        return Legal({"recompute": factor, EVALUATION_NS: _again_ns(merge, evaluations(merge, factor))})
    if all(is_gathered(read) for read in merge.reads) and isfinite(factor):
        return Legal({"recompute": factor, EVALUATION_NS: evaluated_by_element_ns(merge, graph)})
    if factor > 1:
        return WhyNot("recompute", f"each element would be computed {_times(factor)} times", at, _numbers(factor))
    return Legal({"recompute": factor})


def _beside_the_root(merge: Merge) -> bool:
    """Whether only epilogues read the producer: then it is evaluated once per point, as in any other group."""
    return all(not read.consumer.heavy and not merge.consumer.is_inlined(read.consumer) for read in merge.reads)


def _widens_on_the_way(merge: Merge) -> bool:
    """Whether a producer only widens what elementwise ops load: each element once per point, however often in all. Or
    converts what a walk loads."""
    if only_walked(merge):
        return loaded_on_the_way(merge.producer)
    return only_converts(merge.producer, WIDENINGS) and not any(read.consumer.reduces for read in merge.reads)


def _into_root(merge: Merge, graph: FusionGraph) -> Answer:
    """A root reads moved data where it lies; what is computed is evaluated once per block of rows or columns, into
    scratch."""
    inlined = {node.op for node in merge.consumer.inlined}
    mine = {node.op for node in merge.producer.members}
    total, costs = 0.0, merge.target.costs
    for node in merge.consumer.members:
        view = node.structured
        if not node.heavy or view is None or node in merge.consumer.inlined:
            continue
        after = _prologues(view, inlined | mine, graph, merge.target)
        for found, chain in after.values():
            if not mine.isdisjoint(chain) and found.kind is None:
                return WhyNot("recompute", found.reason, node.name)
        if {"staged", "segmented"} <= {found.kind for found, _ in after.values()}:
            return WhyNot("recompute", "panels of a filter would reach over the parts of the image", node.name)
        before, times = _prologues(view, inlined, graph, merge.target), packed_in_blocks(node, view, merge)
        total += _evaluation_ns(view, after, graph, costs, times)
        total -= _evaluation_ns(view, before, graph, costs, times)
        boxed = _evaluated(after) - _evaluated(before)
        total -= sum(_pairing_ns(view, position, (inlined, inlined | mine), graph, costs) for position in boxed)
    kinds = {CONVERSION: only_converts(merge.producer, CONVERSIONS), QUANTIZES: all(map(quantizes_argument, mine))}
    return Legal({EVALUATION_NS: total, **{name: 1.0 for name, is_so in kinds.items() if is_so}})


QUANTISING_SHARE = 0.35
"""Of the time of as many operations, what those take that quantise an argument: each is one instruction of a whole
vector, with nothing to load beside the argument (measured .17 ns per element, its load and store included, AVX-512)."""

_EVALUATED = ("packed", "boxed", "filtered", "staged", "strips")
"""How operands are read that are evaluated into scratch."""

Through = Mapping[int, tuple[Prologue, tuple[Operation, ...]]]
"""By operand of a root, how it is read and through which ops."""


def _prologues(
    view: StructuredOp, members: Collection[Operation], graph: FusionGraph, target: TargetDescription
) -> Through:
    """Of the operands that `members` make."""
    chains = ((i, graph.prologues.chain(view, i, members)) for i in range(len(view.inputs)))
    through, machine = graph.prologues.through, (target.costs, target.threads)
    return {i: (through(view, i, chain, *machine), chain) for i, chain in chains if chain}


def packed_in_blocks(node: Node, view: StructuredOp, merge: Merge) -> Mapping[int, float]:
    """How often operands of a product are packed, by position, in a group whose workgroups are blocks: in there nothing
    is shared out, so that a workgroup packs what it reads once. Those are all but rows that several of them read."""
    consumer = merge.consumer
    placed = consumer.grid_loop_of.get(node)
    if node.kind is not Kind.CONTRACTION or not consumer.blocked or placed is None:
        return {}
    used = [used_dims(map_) for map_ in view.input_maps]
    often = {i: block_passes(consumer, {placed[loop] for loop in mine}, merge.target) for i, mine in enumerate(used)}
    return {i: times for i, times in often.items() if times == 1.0 or node.innermost in used[i]}


def _evaluation_ns(
    view: StructuredOp, through: Through, graph: FusionGraph, costs: MachineCosts, times: Mapping[int, float]
) -> float:
    """How much longer elements take in the root than by themselves, and stored ones that are packed more often for
    them; `times`: how often operands are packed where that is known."""
    packed = {i: through[i] for i in _evaluated(through)}
    sides = multiply_add_operands(view.op) if is_generic(view.op) and packed else None
    total = 0.0
    for position in sides or packed:
        elements = assumed_size(product(graph.shapes.dims(view.inputs[position])))
        if position in packed:
            found, chain = packed[position]
            often = times.get(position, found.recompute if len(packed) == 1 else found.beside_packed)
            if position not in times and found.kind == "packed" and any(map(graph.has_copies, chain)):
                often = max(often, packings(view, position, graph.shapes, costs.block_uses)[0])
            computing = [op for op in chain if operations(op)]
            share = QUANTISING_SHARE if all(map(quantizes_argument, computing)) else 1.0
            element_ns = share * found.operations * costs.operation_ns + _copying_ns(found, costs)
            total += elements * often * element_ns - share * _alone_ns(chain, graph, costs)
        elif position not in times and not graph.is_constant(view.inputs[position]):
            alone, beside = packings(view, position, graph.shapes, costs.block_uses)
            total += elements * (beside - alone) * costs.packing_ns
    return total


def _evaluated(through: Through) -> set[int]:
    """The operands that are evaluated into scratch."""
    return {i for i, (found, _) in through.items() if found.kind in _EVALUATED}


def _pairing_ns(
    view: StructuredOp, position: int, made: tuple[Collection[Operation], Collection[Operation]], graph: FusionGraph,
    costs: MachineCosts,
) -> float:  # fmt: skip
    """What a sum of narrow products takes less over an image that is evaluated: channels that lie apart, as they are
    stored, come one at a time, and in pairs from the box (two such convolutions: .35 to .62 of the time); three of a
    pixel come as a pair and one (16x16 over 3 channels: .76). `made`: what is not stored before, and afterwards."""
    before, after = ((lambda value, ops=ops: is_stored(value, ops)) for ops in made)
    apart = paired_steps(view, position, graph.shapes, before)
    if apart is None:
        return 0.0
    box = image_box(view, position, graph.shapes, after)
    less = apart - (0.5 if box is None else in_pairs(box.run))
    return max(0.0, less) * root_ns([assumed_size(extent) for extent in view.loops(graph.shapes)], costs)


def _alone_ns(chain: Sequence[Operation], graph: FusionGraph, costs: MachineCosts) -> float:
    """What the ops take by themselves: those of few elements that others read again and again, for each once."""
    points = (assumed_size(product(graph.shapes.dims(op.results[0]))) for op in chain)
    return sum(count * operations(op) for count, op in zip(points, chain, strict=True)) * costs.operation_ns


def _copying_ns(found: Prologue, costs: MachineCosts) -> float:
    """To put an element into scratch that is only put there to be evaluated; tiles are copied in any case."""
    if found.kind == "filtered":
        return 0.0
    return costs.gathering_ns if found.gathered else costs.packing_ns


def _times(factor: float) -> str:
    return f"{factor:g}" if isfinite(factor) else "an unknown number of"


def _numbers(factor: float) -> dict[str, float]:
    """For the record, which holds finite numbers only."""
    return {"recompute": factor} if isfinite(factor) else {}


def _again_ns(merge: Merge, factor: float) -> float:
    """What it takes to compute each element `factor` times, beyond the first."""
    work = sum(assumed_size(product(node.loops)) * node.operations for node in merge.producer.members)
    return (factor - 1.0) * work * merge.target.costs.operation_ns


EXPORT = ReadInPlace
