"""Canonical identities of the nodes of a fusion graph: what decides them is structure; names, weights and the order of
the program do not enter.

    neighbourhood  a digest of a node and of what lies within two edges of it, with a number where several nodes look
                   alike that far
    order          a total order (`Node.order`) by depth, then by a digest of what a node reads and of what reads it
    id             the neighbourhood: a change elsewhere in the model leaves it as it is, so that plans match group by
                   group

Nodes that no digest tells apart are interchangeable by all that the digests see. One of them is singled out, which
settles its neighbours, until all are told apart (colour refinement with individualisation: McKay and Piperno, Practical
graph isomorphism II, 2014).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from xdsl.ir import SSAValue

from fuseline.analysis.code_text import Texts, digest
from fuseline.ir.rounds import rounds
from fuseline.passes.fusion.node import Node, Read
from fuseline.passes.fusion.node_digests import local_digest

RADIUS = 2
"""How many edges around a node its id looks at."""

SWEEPS = 3
"""How often digests travel from inputs to outputs and back before ties are broken one by one."""

MAX_SHARED_READERS = 16
"""Readers of one input or constant that are looked at to tell them apart; what more of them share says little."""

ID_DIGITS = 8

Colours: TypeAlias = "dict[Node, str]"


def assign_ids(nodes: Sequence[Node], taken: dict[str, int] | None = None) -> str:
    """Set the id and the digest of each of `nodes` (in program order) and answer the fingerprint of the graph.

    `taken` counts how often each neighbourhood occurs in the functions of a program read before this one; it is brought
    up to date.
    """
    labels = _Reads(nodes)
    texts = Texts()
    local = {node: local_digest(node, texts) for node in nodes}
    colours = _refined(nodes, local, labels)
    fingerprint = digest("graph", *sorted(colours.values()))
    depth = _depths(nodes)
    _break_ties(nodes, colours, depth, labels)
    order = sorted(nodes, key=lambda node: (depth[node], colours[node]))
    seen = taken if taken is not None else dict[str, int]()
    neighbourhoods = _neighbourhoods(nodes, local)
    for number, node in enumerate(order):
        node.order, node.digest = number, local[node]
        neighbourhood = neighbourhoods[node][:ID_DIGITS]
        count = seen[neighbourhood] = seen.get(neighbourhood, 0) + 1
        node.id = neighbourhood if count == 1 else f"{neighbourhood}-{count}"
    return fingerprint


# the graph ------------------------------------------------------------------------------------------------------------


class _Reads:
    """How a node reads: the position of the read among its reads, and, for a value from outside the graph, who else
    reads it."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._labels: dict[int, str] = {
            id(read): f"{i}.{_result_index(read)}" for node in nodes for i, read in enumerate(node.reads)
        }
        self.outside: dict[SSAValue, list[Read]] = defaultdict(list)
        for node in nodes:
            for read in node.reads:
                if read.producer is None:
                    self.outside[read.value].append(read)

    def of(self, read: Read) -> str:
        """Which read of its node, of which result of its producer."""
        return self._labels[id(read)]

    def sharing_readers(self, read: Read) -> list[Read]:
        """The reads of a value from outside the graph that few read; of one that many read none."""
        found = self.outside[read.value]
        return found if len(found) <= MAX_SHARED_READERS else []


def _result_index(read: Read) -> int:
    return read.producer.result_index(read.value) if read.producer is not None else 0


def _neighbourhoods(nodes: Sequence[Node], local: Mapping[Node, str]) -> dict[Node, str]:
    """Digests of the neighbourhoods within `RADIUS`."""
    neighbourhoods = dict(local)
    for _ in range(RADIUS):
        neighbourhoods = {node: _neighbourhood(node, neighbourhoods) for node in nodes}
    return neighbourhoods


def _neighbourhood(node: Node, of: Mapping[Node, str]) -> str:
    before = [of[read.producer] if read.producer is not None else "-" for read in node.reads]
    return digest(of[node], *before, "|", *sorted(of[read.consumer] for read in node.readers))


def _refined(nodes: Sequence[Node], local: Mapping[Node, str], labels: _Reads) -> Colours:
    """Digests that have seen the whole graph: down to the outputs and up again, until no more nodes are told apart."""
    colours: Colours = dict(local)
    classes = len(set(colours.values()))
    for _ in range(SWEEPS):
        outside = {
            value: digest(*sorted(f"{labels.of(read)}:{colours[read.consumer]}" for read in reads))
            for value, reads in labels.outside.items()
        }
        for node in nodes:
            colours[node] = digest(colours[node], *_before(node, colours, outside, labels))
        for node in reversed(nodes):
            colours[node] = digest(colours[node], *_after(node, colours, labels))
        found = len(set(colours.values()))
        if found in (classes, len(nodes)):
            break
        classes = found
    return colours


def _before(node: Node, colours: Colours, outside: Mapping[SSAValue, str], labels: _Reads) -> Iterable[str]:
    for read in node.reads:
        yield f"{labels.of(read)}:{colours[read.producer] if read.producer is not None else outside[read.value]}"


def _after(node: Node, colours: Colours, labels: _Reads) -> list[str]:
    return sorted(f"{labels.of(read)}:{colours[read.consumer]}" for read in node.readers)


def _depths(nodes: Sequence[Node]) -> dict[Node, int]:
    """The longest path from the inputs to each node."""
    depth: dict[Node, int] = {}
    for node in nodes:
        depth[node] = 1 + max((depth[read.producer] for read in node.reads if read.producer is not None), default=-1)
    return depth


def _break_ties(nodes: Sequence[Node], colours: Colours, depth: Mapping[Node, int], labels: _Reads) -> None:
    """Give the nodes that share a colour colours of their own: single one out, let that settle its neighbours, go on
    with the next."""
    alike = _Alike(nodes, colours, labels)
    for colour in sorted(alike.members, key=lambda c: (depth[alike.members[c][0]], c)):
        for _ in rounds("telling equal nodes apart", most=len(nodes)):  # one leaves its class each time
            if len(alike.members.get(colour, ())) <= 1:
                break
            alike.single_out(alike.members[colour][0])


class _Alike:
    """The nodes of each colour, in program order, while colours split."""

    def __init__(self, nodes: Sequence[Node], colours: Colours, labels: _Reads) -> None:
        self.colours, self.labels = colours, labels
        self.members: dict[str, list[Node]] = defaultdict(list)
        for node in nodes:
            self.members[colours[node]].append(node)

    def single_out(self, node: Node) -> None:
        """Recolour `node`, then in rounds the neighbours of what was recoloured that still look like others."""
        changed = [node]
        self._recolour({node: digest(self.colours[node], "first")})
        for _ in rounds("recolouring nodes", most=len(self.colours)):  # each round splits a class
            if not changed:
                break
            new = self._settled(changed)
            self._recolour(new)
            changed = list(new)

    def _settled(self, changed: Iterable[Node]) -> Colours:
        """New colours of the nodes next to `changed`, where they tell members of a class apart."""
        touched = {
            other: None
            for node in changed
            for other in self._neighbours(node)
            if len(self.members[self.colours[other]]) > 1
        }
        signs = {node: self._sign(node) for node in touched}
        by_class: dict[str, set[str]] = defaultdict(set)
        counts: dict[str, int] = defaultdict(int)
        for node, sign in signs.items():
            by_class[self.colours[node]].add(sign)
            counts[self.colours[node]] += 1
        return {node: sign for node, sign in signs.items() if self._splits(self.colours[node], by_class, counts)}

    def _splits(self, colour: str, signs: Mapping[str, set[str]], counts: Mapping[str, int]) -> bool:
        return len(signs[colour]) > 1 or counts[colour] < len(self.members[colour])

    def _sign(self, node: Node) -> str:
        before = [
            self.colours[read.producer] if read.producer is not None else self._company(read) for read in node.reads
        ]
        after = sorted(f"{self.labels.of(read)}:{self.colours[read.consumer]}" for read in node.readers)
        return digest(self.colours[node], *before, "|", *after)

    def _company(self, read: Read) -> str:
        """Who else reads a value from outside the graph."""
        return digest(
            *sorted(
                f"{self.labels.of(other)}:{self.colours[other.consumer]}" for other in self.labels.sharing_readers(read)
            )
        )

    def _neighbours(self, node: Node) -> Iterable[Node]:
        for read in node.reads:
            if read.producer is not None:
                yield read.producer
            else:
                yield from (other.consumer for other in self.labels.sharing_readers(read))
        yield from (read.consumer for read in node.readers)

    def _recolour(self, new: Colours) -> None:
        for node, colour in new.items():
            self.members[self.colours[node]].remove(node)
            self.colours[node] = colour
            self.members[colour].append(node)
