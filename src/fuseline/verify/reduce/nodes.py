"""Fewer nodes: halves, quarters and single ones give way to what they made; operators give way to what they read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx
from onnx import helper

from fuseline.verify.reduce.candidate import Candidate, Feeds, reads, rebuilt, weight_of


def fewer_outputs(candidate: Candidate, values: Feeds, constants: frozenset[str]) -> Iterator[Candidate]:
    """One output alone."""
    outputs = [output.name for output in candidate.model.graph.output]
    for name in outputs if len(outputs) > 1 else ():
        yield from _made(candidate, candidate.nodes, [name], values, constants)


def fewer_nodes(candidate: Candidate, values: Feeds, constants: frozenset[str]) -> Iterator[Candidate]:
    """Without runs of nodes, long ones first."""
    nodes = list(candidate.nodes)
    length = len(nodes) // 2
    while length:
        for start in range(0, len(nodes), length):
            yield from _without(candidate, nodes[start : start + length], values, constants)
        length //= 2


def _without(
    candidate: Candidate, gone: Sequence[onnx.NodeProto], values: Feeds, constants: frozenset[str]
) -> Iterator[Candidate]:
    """What the nodes made is fed, what they read is an output where nothing else reads it."""
    lost = {id(node) for node in gone}
    kept = [node for node in candidate.nodes if id(node) not in lost]
    made = {name for node in kept for name in node.output}
    asked = [output.name for output in candidate.model.graph.output]
    outputs = dict.fromkeys([*asked, *(name for node in gone for name in reads(node))])
    yield from _made(candidate, kept, [name for name in outputs if name in made], values, constants)


def bypassed(candidate: Candidate, values: Feeds, constants: frozenset[str]) -> Iterator[Candidate]:
    """A node gives way to an operand of the same shape and type."""
    for index, node in enumerate(candidate.nodes):
        if len(node.output) != 1 or node.op_type == "Identity" or node.output[0] not in values:
            continue
        result = values[node.output[0]]
        for name in dict.fromkeys(node.input):
            like = values.get(name)
            if like is not None and like.shape == result.shape and like.dtype == result.dtype:
                copy = helper.make_node("Identity", [name], list(node.output), name=node.name)
                nodes = [copy if i == index else other for i, other in enumerate(candidate.nodes)]
                outputs = [output.name for output in candidate.model.graph.output]
                yield from _made(candidate, nodes, outputs, values, constants)


def frozen_inputs(candidate: Candidate, values: Feeds, constants: frozenset[str]) -> Iterator[Candidate]:
    """An input becomes a weight, where there is another."""
    names = list(candidate.feeds)
    outputs = [output.name for output in candidate.model.graph.output]
    for name in names if len(names) > 1 else ():
        yield from _made(candidate, candidate.nodes, outputs, values, constants | {name})


def _made(
    candidate: Candidate,
    nodes: Sequence[onnx.NodeProto],
    outputs: Sequence[str],
    values: Feeds,
    constants: frozenset[str],
) -> Iterator[Candidate]:
    """The candidate of these nodes, where there is one; what no input has a part in is held, not fed."""
    produced = {name for node in nodes for name in node.output}
    held = {tensor.name for tensor in candidate.model.graph.initializer}
    needed = {name for node in nodes for name in reads(node)}
    more = [weight_of(values[name], name) for name in sorted((needed & constants) - produced - held) if name in values]
    found = rebuilt(candidate, nodes, outputs, values, [*candidate.model.graph.initializer, *more]) if outputs else None
    if found is not None:
        yield found
