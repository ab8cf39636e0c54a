"""What a group consists of and where it touches others: as built of its members, and as it grows."""

from __future__ import annotations

from collections.abc import Iterable

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group_body import GroupBody, is_stored
from fuseline.passes.fusion.node import Node

from .programs import Program


def _nodes(p: Program) -> list[Node]:
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    return sorted(graph.nodes, key=lambda node: node.position)


def _body(*members: Node, inlined: Iterable[Node] = ()) -> GroupBody:
    """Each loop of a member is the grid loop of its number."""
    apart = set(inlined)
    place: dict[Node, tuple[int | None, ...]] = {n: tuple(range(len(n.loops))) for n in members if n not in apart}
    return GroupBody.of(members, place, apart)


def _diamond() -> tuple[Program, list[Node]]:
    """`a(x)`, `b(a, y)`, `c(a)`, `d(b, c)`; `b` is returned, too."""
    p = Program((4, 6), (4, 6))
    a = p.unary(p.x[0])
    b, c = p.add(a, p.x[1]), p.unary(a)
    return p, _nodes(p.done(p.add(b, c), b))


def _values(found: dict[int, object]) -> set[int]:
    assert all(id(value) == key for key, value in found.items())
    return set(found)


def test_one_op_touches_what_it_reads_and_who_reads_it():
    p, (a, b, c, d) = _diamond()
    one = _body(b)
    assert _values({**one.inputs}) == {id(p.x[1]), id(a.op.results[0])} and _values({**one.results}) == {
        id(b.op.results[0])
    }
    assert list(one.entering) == [a] and one.leaving == {b} and one.nodes == {b}
    assert list(one.producers()) == [a] and list(one.consumers()) == [d]
    last = _body(d)
    assert list(last.producers()) == [b, c] and list(last.consumers()) == [] and last.leaving == {d}


def test_what_stays_inside_is_no_border():
    p, (a, b, c, d) = _diamond()
    whole = _body(a, b, c, d)
    assert _values({**whole.inputs}) == {id(p.x[0]), id(p.x[1])} and not whole.entering
    assert _values({**whole.results}) == {id(b.op.results[0]), id(d.op.results[0])} and whole.leaving == {b, d}
    assert list(whole.producers()) == [] and list(whole.consumers()) == [d]


def test_fills_are_no_inputs():
    p = Program((4, 6), (6, 5))
    (product,) = _nodes(p.done(p.matmul(*p.x)))
    assert _values({**_body(product).inputs}) == {id(x) for x in p.x}


def test_reads_between_two_come_in_program_order():
    _, (a, b, c, d) = _diamond()
    upper, lower = _body(a, b), _body(c, d)
    assert set(lower.sources_in(upper)) == {a, b} and upper.sources_in(lower) == []
    assert [(read.producer, read.consumer) for read in lower.reads_from(upper)] == [(a, c), (b, d)]
    assert upper.reads_from(lower) == [] and _body(d).sources_in(_body(a)) == []
    many = _body(b, c, d)
    assert [(read.producer, read.consumer) for read in many.reads_from(_body(a))] == [(a, b), (a, c)]


def _joined(producer: GroupBody, consumer: GroupBody, kept_inside: Iterable[int]) -> GroupBody:
    read = consumer.detach(producer, kept_inside)
    producer.absorb(consumer)
    producer.settle(read)
    return producer


def _is_like(found: GroupBody, wanted: GroupBody) -> None:
    assert found.nodes == wanted.nodes and found.grid_loop_of == wanted.grid_loop_of and found.inlined == wanted.inlined
    assert found.inputs == wanted.inputs and found.results == wanted.results and found.leaving == wanted.leaving
    assert list(found.producers()) == list(wanted.producers()) and list(found.consumers()) == list(wanted.consumers())
    assert {node: {entry[:2] for entry in entries} for node, entries in found.entering.items()} == {
        node: {entry[:2] for entry in entries} for node, entries in wanted.entering.items()
    }


def test_a_body_that_has_grown_is_as_one_built_at_once():
    _, (a, b, c, d) = _diamond()
    both = _joined(_body(a), _body(b), [])
    _is_like(both, _body(a, b))
    three = _joined(both, _body(c), [id(a.op.results[0])])
    _is_like(three, _body(a, b, c))
    _is_like(_joined(three, _body(d), [id(c.op.results[0])]), _body(a, b, c, d))


def test_the_larger_of_two_lists_of_entries_keeps_its_first_in_front():
    p = Program((4, 6))
    a = p.unary(p.x[0])
    readers = [p.unary(a) for _ in range(4)]
    first, *rest = _nodes(p.done(*readers))
    early, late = _body(rest[0]), _body(*rest[1:])
    late.absorb(early)
    assert late.entering[first][0][0] == rest[0].position and len(late.entering[first]) == 4
    assert [read.consumer for read in late.reads_from(_body(first))] == rest
    assert list(late.producers()) == [first]


def test_loops_get_other_numbers_or_become_inner():
    _, (a, b, *_) = _diamond()
    body = _body(a, b)
    body.renumber({0: 1})
    assert body.grid_loop_of == {a: (1, None), b: (1, None)}
    body.renumber({1: 3, None: 7})
    assert body.grid_loop_of == {a: (3, 7), b: (3, 7)}


def test_what_is_read_in_place_has_no_place():
    _, (a, b, c, _) = _diamond()
    body = _body(a, b, inlined=[a])
    assert body.inlined == {a} and set(body.grid_loop_of) == {b}
    body.inline()
    assert body.inlined == {a, b} and body.grid_loop_of == {}
    other = _body(c)
    other.absorb(body)
    assert other.inlined == {a, b} and set(other.grid_loop_of) == {c}


def test_a_value_is_stored_for_the_caller_or_a_reader_outside():
    _, (a, b, c, d) = _diamond()
    into_b, into_d = _body(b).reads_from(_body(a))[0], _body(d).reads_from(_body(c))[0]
    assert is_stored(into_b, [{a, b}]) and is_stored(into_b, [{a}, {b, d}])
    assert not is_stored(into_b, [{a, b, c}]) and not is_stored(into_b, [{a}, {b}, {c}])
    assert not is_stored(into_d, [{c, d}])
    returned = _body(d).reads_from(_body(b))[0]
    assert is_stored(returned, [{a, b, c, d}])


def test_sizes_that_are_taken_from_another_op_come_first():
    p = Program(("n", 6))
    first = p.unary(p.x[0])
    nodes = _nodes(p.done(p.unary(first)))
    one, two = nodes
    two.sized_by.append(one)
    one.sizes.append(two)
    assert list(_body(two).producers()) == [one, one] and list(_body(one).consumers()) == [two, two]
    assert _body(one, two).sized == [one, two] and _body(two).sized == [two]
