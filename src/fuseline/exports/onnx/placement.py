"""Which nodes of the model stand in which function, so that each dispatch is one where that can be said in nodes.

node in one dispatch              => in its function
node in several, computed in each => in each function that reads it (`repeated`)
node in several, split            => those dispatches share one function
node in none (views, sizes)       => in the function that alone reads it, else in the one that alone makes
                                     what it reads, else in the main graph
functions that need each other    => one function, with what lies between them
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from fuseline.analysis.disjoint_sets import DisjointSets
from fuseline.exports.onnx.acyclic import components, in_order
from fuseline.exports.onnx.graph import Graph
from fuseline.ir.rounds import rounds

_MOST_ROUNDS = 1 << 20
_SIZES = frozenset(("Shape", "Size"))

MainNode = tuple[str, int]
"""What the new main graph has as one node: `("function", its first dispatch)` or `("node", number)`."""


@dataclass(frozen=True)
class Placement:
    """`functions`: the nodes of each, in order, by its first dispatch; `dispatches`: those that it stands for;
    `main_nodes`: the new main graph in order; `exporter`: the function that hands out a value; `repeated`: nodes in
    several functions; `live`: the functions of each node, none for one of the main graph."""

    functions: dict[int, list[int]]
    dispatches: dict[int, list[int]]
    main_nodes: list[MainNode]
    exporter: dict[str, int]
    repeated: list[int]
    live: dict[int, list[int]]

    def is_read_outside(self, graph: Graph, name: str, function: int) -> bool:
        """Whether `function` hands out a value: the caller, the main graph or a function without it reads it."""
        if self.exporter.get(name) != function:
            return False
        own = self.live[graph.maker[name]]
        return name in graph.outputs or any(
            not self.live[reader] or any(one not in own for one in self.live[reader]) for reader in graph.readers[name]
        )


def place(
    graph: Graph,
    homes: Mapping[int, Sequence[int]],
    *,
    repeatable: Callable[[int], bool],
    fixed: Collection[int],
    small: Collection[int],
    apart: Collection[int] = (),
) -> Placement:
    """Where each node goes.

    Args:
        homes: dispatches by node, those preferred first. repeatable: whether a node in several dispatches is computed
        in each. fixed: nodes that stay in the main graph. small: constants that are repeated wherever they are read.
        apart: nodes that may be in no function, whatever needs them.
    """
    found = _Placing(graph, dict(homes), repeatable, {*fixed, *apart}, small, apart)
    for _ in rounds("joining functions that need each other", most=_MOST_ROUNDS):
        found.settle()
        if not found.join_cycles():
            return found.placement()
    raise AssertionError("a round that joins nothing is the last")


@dataclass
class _Placing:
    graph: Graph
    homes: dict[int, Sequence[int]]
    repeatable: Callable[[int], bool]
    fixed: Collection[int]
    small: Collection[int]
    apart: Collection[int]
    _sets: DisjointSets[int] = field(default_factory=DisjointSets[int])
    _drawn: dict[int, int] = field(default_factory=dict[int, int])
    _live: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    _exporter: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        for node, numbers in self.homes.items():
            if not self.repeatable(node):
                for other in numbers[1:]:
                    self._join(numbers[0], other)

    def _join(self, one: int, other: int) -> None:
        """The first dispatch stands for its set."""
        first, second = sorted((self._sets.of(one), self._sets.of(other)))
        if first != second:
            self._sets.join(second, first)

    def _own(self, node: int) -> list[int]:
        """The functions that a node belongs to, those preferred first."""
        drawn = self._drawn.get(node)
        return list(dict.fromkeys(map(self._sets.of, self.homes.get(node, [] if drawn is None else [drawn]))))

    def settle(self) -> None:
        """Decide for every node, from the last to the first, in which functions it is needed."""
        self._live, self._exporter = {}, {}
        for node in reversed(range(len(self.graph.nodes))):
            self._live[node] = self._needed(node)
        for node in range(len(self.graph.nodes)):
            if not self._live[node] and self._may_follow(node):
                self._follow(node)

    def _needed(self, node: int) -> list[int]:
        inside, outside = self._readers(node)
        own = self._own(node)
        if not own:
            return self._drawn_in(node, inside, outside)
        if len(own) == 1:
            needed = own
        else:
            needed = [function for function in own if function in inside]
            if (outside or inside - set(own)) and own[0] not in needed:
                needed.insert(0, own[0])
        self._hand_out(node, needed, inside, outside)
        return needed

    def _hand_out(self, node: int, needed: Sequence[int], inside: set[int], outside: bool) -> None:
        if needed and (outside or inside - set(needed)):
            self._exporter.update((name, needed[0]) for name in self.graph.writes[node])

    def _readers(self, node: int) -> tuple[set[int], bool]:
        """The functions that read a node's results, and whether the main graph or the caller does."""
        inside: set[int] = set()
        outside = self.graph.is_output(node)
        for name in self.graph.writes[node]:
            for reader in self.graph.readers[name]:
                inside.update(self._live[reader])
                outside = outside or not self._live[reader]
        return inside, outside

    def _drawn_in(self, node: int, inside: set[int], outside: bool) -> list[int]:
        """A node of no dispatch goes where it is read, if that is one function."""
        if node in self.fixed or outside or not inside:
            return []
        return sorted(inside) if len(inside) == 1 or node in self.small else []

    def _may_follow(self, node: int) -> bool:
        return node not in self.fixed and not self.homes.get(node) and self.graph.nodes[node].op_type not in _SIZES

    def _follow(self, node: int) -> None:
        """A node of no dispatch goes where all that it reads is made, if that is one function."""
        names = [name for name in self.graph.reads[node] if name in self.graph.maker]
        makers = {self._maker(name) for name in names if not self._is_constant(self.graph.maker[name])}
        function = makers.pop() if len(makers) == 1 else None
        if function is None:
            return
        self._live[node] = [function]
        self._exporter.update((name, function) for name in self.graph.writes[node])

    def _maker(self, name: str) -> int | None:
        """The function that hands out a value; None where the main graph makes it."""
        return self._exporter.get(name)

    def _is_constant(self, node: int) -> bool:
        return not self.graph.reads[node]

    # -- cycles --------------------------------------------------------------------------------------------------------

    def _main_nodes(self) -> dict[MainNode, list[int]]:
        found: dict[MainNode, list[int]] = {}
        for node in range(len(self.graph.nodes)):
            for main_node in [("function", one) for one in self._live[node]] or [("node", node)]:
                found.setdefault(main_node, []).append(node)
        return found

    def _edges(self, main_nodes: Mapping[MainNode, Sequence[int]]) -> dict[MainNode, set[MainNode]]:
        """The main nodes whose results each one reads."""
        return {
            main_node: {other for node in nodes for other in self._sources(main_node, node)}
            for main_node, nodes in main_nodes.items()
        }

    def _sources(self, main_node: MainNode, node: int) -> set[MainNode]:
        found: set[MainNode] = set()
        for name in self.graph.reads[node]:
            maker = self.graph.maker.get(name)
            if maker is not None and not (main_node[0] == "function" and main_node[1] in self._live[maker]):
                found.add(("function", self._exporter[name]) if self._live[maker] else ("node", maker))
        return found - {main_node}

    def join_cycles(self) -> bool:
        """Make one function of those that need each other; answers whether there were any."""
        main_nodes = self._main_nodes()
        cycles = [cycle for cycle in components(self._edges(main_nodes)) if len(cycle) > 1]
        for cycle in cycles:
            outside = {number for what, number in cycle if what == "node"} & {*self.apart}
            functions = sorted(number for what, number in cycle if what == "function")
            if outside:
                self._separate(outside, functions)
                continue
            for other in functions[1:]:
                self._join(functions[0], other)
            self._drawn.update((number, functions[0]) for what, number in cycle if what == "node")
        return bool(cycles)

    def _separate(self, outside: Collection[int], functions: Collection[int]) -> None:
        """Take what needs nodes that are in no function out of those functions, too."""
        behind = {*outside}
        for node in range(min(outside), len(self.graph.nodes)):
            if any(maker in behind for maker in self.graph.makers(node)):
                behind.add(node)
        for node in behind:
            if set(self._live[node]) & set(functions):
                self.homes.pop(node, None)
                self._drawn.pop(node, None)

    def placement(self) -> Placement:
        """The functions as they stand, once there are no cycles."""
        main_nodes = self._main_nodes()
        functions = {number: nodes for (what, number), nodes in main_nodes.items() if what == "function"}
        dispatches: dict[int, set[int]] = {}
        for number in sorted({number for numbers in self.homes.values() for number in numbers}):
            dispatches.setdefault(self._sets.of(number), set()).add(number)
        return Placement(
            functions,
            {number: sorted(dispatches.get(number, {number})) for number in functions},
            in_order(self._edges(main_nodes), {main_node: nodes[0] for main_node, nodes in main_nodes.items()}),
            self._exporter,
            sorted(node for node, own in self._live.items() if len(own) > 1),
            self._live,
        )
