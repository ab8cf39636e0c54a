"""Which node stands in which function."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import onnx
import onnx.parser
import pytest

from fuseline.exports.onnx.acyclic import components, in_order
from fuseline.exports.onnx.graph import Graph, names_read
from fuseline.exports.onnx.placement import Placement, place
from tests.draws import RNG


def _graph(text: str) -> Graph:
    return Graph(onnx.parser.parse_graph(f"g {text}"))


def _placed(
    graph: Graph,
    homes: Mapping[int, Sequence[int]],
    *,
    repeatable: Collection[int] = (),
    fixed: Collection[int] = (),
    small: Collection[int] = (),
    apart: Collection[int] = (),
) -> Placement:
    found = place(graph, homes, repeatable=lambda node: node in repeatable, fixed=fixed, small=small, apart=apart)
    _check(graph, found)
    return found


def _check(graph: Graph, found: Placement) -> None:
    """Every value is there before it is read, in the function itself or from one that hands it out."""
    done: set[str] = set()
    for what, number in found.main_nodes:
        nodes = found.functions[number] if what == "function" else [number]
        inside: set[str] = set()
        for node in nodes:
            assert all(name in inside or name in done for name in graph.reads[node] if name in graph.maker)
            inside.update(graph.writes[node])
        shown = [name for name in inside if what == "node" or found.is_read_outside(graph, name, number)]
        done.update(shown)
    assert graph.outputs & graph.maker.keys() <= done


CHAIN = "(float[4] x) => (float[4] d) { a = Exp(x)  b = Neg(a)  c = Abs(b)  d = Relu(c) }"


def test_each_dispatch_is_a_function():
    found = _placed(_graph(CHAIN), {0: [0], 1: [0], 2: [1], 3: [1]})
    assert found.functions == {0: [0, 1], 1: [2, 3]} and found.main_nodes == [("function", 0), ("function", 1)]


def test_a_split_node_joins_its_dispatches():
    found = _placed(_graph(CHAIN), {0: [0], 1: [0, 1], 2: [1], 3: [2]})
    assert found.functions == {0: [0, 1, 2], 2: [3]} and found.dispatches == {0: [0, 1], 2: [2]}


def test_a_repeated_node_is_in_each_function_that_reads_it():
    graph = _graph("(float[4] x) => (float[4] b, float[4] c) { a = Exp(x)  b = Neg(a)  c = Abs(a) }")
    found = _placed(graph, {0: [0, 1], 1: [0], 2: [1]}, repeatable=[0])
    assert found.functions == {0: [0, 1], 1: [0, 2]} and found.repeated == [0]
    assert not any(found.is_read_outside(graph, "a", number) for number in (0, 1))


def test_one_function_hands_out_what_is_repeated():
    graph = _graph(
        "(float[4] x) => (float[4] b, float[4] c, float[4] d) { a = Exp(x)  b = Neg(a)  c = Abs(a)  d = Relu(a) }"
    )
    found = _placed(graph, {0: [1, 0], 1: [0], 2: [1], 3: [2]}, repeatable=[0])
    assert found.functions == {0: [0, 1], 1: [0, 2], 2: [3]} and found.exporter["a"] == 1


def test_a_node_that_nothing_in_a_function_reads_is_not_repeated_there():
    graph = _graph("(float[4] x) => (float[4] b, float[4] c) { a = Exp(x)  b = Neg(a)  c = Abs(x) }")
    found = _placed(graph, {0: [0, 1], 1: [0], 2: [1]}, repeatable=[0])
    assert found.functions == {0: [0, 1], 1: [2]} and not found.repeated


def test_functions_that_need_each_other_are_one():
    found = _placed(_graph(CHAIN), {0: [0], 1: [1], 2: [0], 3: [2]})
    assert found.functions == {0: [0, 1, 2], 2: [3]} and found.dispatches[0] == [0, 1]


def test_what_lies_between_two_nodes_of_a_function_goes_into_it():
    found = _placed(_graph(CHAIN), {0: [0], 2: [0], 3: [0]}, fixed=[1])
    assert found.functions == {0: [0, 1, 2, 3]}


def test_a_node_that_may_be_in_no_function_parts_what_is_around_it():
    found = _placed(_graph(CHAIN), {0: [0], 2: [0], 3: [1]}, apart=[1])
    assert found.functions == {0: [0], 1: [2, 3]} and found.live[1] == []


def test_a_fixed_node_stays_outside():
    found = _placed(_graph(CHAIN), {0: [0], 2: [1], 3: [1]}, fixed=[1])
    assert found.main_nodes == [("function", 0), ("node", 1), ("function", 1)]


def test_a_view_goes_to_its_only_reader():
    found = _placed(_graph(CHAIN), {0: [0], 2: [1], 3: [1]})
    assert found.functions == {0: [0], 1: [1, 2, 3]}


def test_a_view_of_several_readers_goes_to_its_maker():
    graph = _graph("(float[4] x) => (float[4] c, float[4] d) { a = Exp(x)  b = Identity(a)  c = Abs(b)  d = Relu(b) }")
    assert _placed(graph, {0: [0], 2: [1], 3: [2]}).functions == {0: [0, 1], 1: [2], 2: [3]}


def test_a_size_of_several_readers_stays_outside():
    graph = _graph(
        "(float[4] x) => (float[4] c, float[4] d) { a = Exp(x)  b = Shape(a)  c = Expand(x, b)  d = Expand(a, b) }"
    )
    assert ("node", 1) in _placed(graph, {0: [0], 2: [1], 3: [2]}).main_nodes


@pytest.mark.parametrize("small", [True, False])
def test_a_small_constant_is_repeated(small: bool):
    text = """(float[1] x) => (float[1] b, float[1] c)
        { a = Constant<value = float[1] {1.0}>()  b = Add(x, a)  c = Mul(x, a) }"""
    found = _placed(_graph(text), {1: [0], 2: [1]}, small=[0] if small else [])
    assert found.functions == ({0: [0, 1], 1: [0, 2]} if small else {0: [1], 1: [2]})


def test_values_that_graphs_inside_a_node_read():
    text = """(float[4] x, bool c) => (float[4] y)
        { t = Exp(x)  y = If<then_branch = g () => (float[4] a) { s = Neg(t)  a = Add(s, x) },
                             else_branch = h () => (float[4] x) {}>(c) }"""
    assert names_read(_graph(text).nodes[1]) == ("c", "t", "x")


def test_random_graphs_run_in_order():
    for _ in range(60):
        count = int(RNG.integers(2, 30))
        lines = []
        for node in range(count):
            reads = [f"v{int(k)}" for k in RNG.integers(0, node, min(node, 2))] or ["x"]
            lines.append(f"v{node} = Sum({', '.join(reads)})")
        graph = _graph(f"(float[4] x) => (float[4] v{count - 1}) {{ {'  '.join(lines)} }}")
        homes = {
            node: list(dict.fromkeys(RNG.integers(0, 6, int(RNG.integers(0, 3))).tolist())) for node in range(count)
        }
        fixed = [node for node, own in homes.items() if not own and RNG.random() < 0.3]
        apart = [node for node in fixed if RNG.random() < 0.5]
        repeated = [node for node in range(count) if RNG.random() < 0.7]
        _placed(graph, {node: own for node, own in homes.items() if own}, repeatable=repeated, fixed=fixed, apart=apart)


def test_components_are_the_units_that_need_each_other():
    sources = {1: {2}, 2: {3}, 3: {1}, 4: {3}, 5: set[int]()}
    assert sorted(sorted(part) for part in components(sources)) == [[1, 2, 3], [4], [5]]


def test_a_long_chain_has_an_order():
    count = 5000
    sources = {number: {number + 1} if number + 1 < count else set[int]() for number in range(count)}
    assert in_order(sources, {number: number for number in sources}) == list(reversed(range(count)))
    assert len(components(sources)) == count
