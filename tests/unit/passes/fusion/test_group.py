"""What a group says of itself: what it is built around, what it stores, binds and keeps in scratch."""

from __future__ import annotations

from dataclasses import replace

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.build import dims_map
from fuseline.ir.costs import LINE_BYTES
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import BLOCK_POINTS, Group
from fuseline.passes.fusion.loop_classes import loop_classes
from fuseline.passes.fusion.merging import align, cut_behind, inline_into, joined, merged
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.streamed_softmax import online_reductions

from .programs import TARGET, Program, nodes_of


def chained(p: Program) -> Group:
    """All ops as one group, merged in program order."""
    first, *rest = [Group.of(node) for node in nodes_of(p)]
    for other in rest:
        first = merged(first, other, align(first, other))
    return first


def _product(columns: int = 48) -> Node:
    p = Program((64, 32), (32, columns))
    (node,) = nodes_of(p.done(p.matmul(p.x[0], p.x[1])))
    return node


def test_one_op_has_its_parallel_loops_as_its_grid():
    node = _product()
    group = Group.of(node)
    assert (group.grid, group.grid_loop_of[node], group.inner(node)) == ((64, 48), (0, 1, None), [2])
    assert group.root is node and group.heavy and group.reduces and not group.moves and not group.blocked
    assert group.parallel_iterations() == 64 * 48


def test_a_root_with_parallel_loops_inside_is_blocked():
    whole, unit = _product(), _product(1)
    assert Group([whole], (64,), {whole: (0, None, None)}).blocked
    assert not Group([unit], (64,), {unit: (0, None, None)}).blocked


def test_the_root_is_the_heaviest_and_the_last_of_equals():
    p = Program((64, 32), (32, 48))
    m = p.matmul(p.x[0], p.x[1])
    y = p.unary(p.unary(m))
    product, first, last = nodes_of(p.done(y))
    assert chained(p).root.kind is product.kind
    both = Group([first, last], (64, 48), {first: (0, 1), last: (0, 1)})
    assert both.root is max((first, last), key=lambda node: node.order)
    inlined = Group([product, last], (64, 48), {last: (0, 1)}, {product})
    assert inlined.root is last
    assert Group([product], (), {}, {product}).root is product


def test_what_is_stored_is_what_others_read_and_the_caller_gets():
    p = Program((16, 32), (16, 32))
    a = p.unary(p.x[0])
    b = p.binary(a, p.x[1])
    c = p.reduce(b)
    one, two, three = nodes_of(p.done(c, a))
    group = Group([one, two], (16, 32), {one: (0, 1), two: (0, 1)})
    assert list(group.results()) == [a, b]
    assert group.buffers() == {p.x[0], p.x[1], a, b}
    assert group.bindings() == 4
    assert [read.value for read in group.outside_reads()] == [p.x[0], p.x[1]]
    assert [read.value for read in Group.of(three).reads_from(group)] == [b]
    assert list(Group.of(one).reads_from(Group.of(three))) == []


def test_a_value_in_scratch_is_a_line_of_cache_longer():
    """The row that two members read, once per workgroup; for a root, of as many rows as a workgroup has."""
    p = Program((16, 32))
    e = p.unary(p.x[0])
    group = chained(p.done(p.binary(e, p.reduce(e), dims_map(2, [0]))))
    assert group.grid == (16,) and not group.blocked
    assert group.scratch_bytes == 32 * 4 + LINE_BYTES
    q = Program((16, 8), (8, 32))
    rows = chained(q.done(q.reduce(q.matmul(q.x[0], q.x[1]))))
    assert rows.blocked
    assert rows.scratch_bytes == BLOCK_POINTS * 32 * 4 + LINE_BYTES


def test_what_is_read_in_place_needs_no_scratch():
    p = Program((16, 32))
    e = p.unary(p.x[0])
    exp, total = (Group.of(node) for node in nodes_of(p.done(p.reduce(e))))
    assert inline_into(exp, total).scratch_bytes == 0


def test_arms_lie_side_by_side():
    p = Program((16, 32), (8, 4))
    arms = [Group.of(node) for node in nodes_of(p.done(p.unary(p.x[0]), p.reduce(p.x[1])))]
    both = joined(list(reversed(arms)))
    assert both.members == [arm.root for arm in arms]
    assert (both.grid, both.inlined, both.arms) == ((), set(), tuple(reversed(arms)))
    assert both.key == min(node.id for node in both.members)


def test_softmaxes_of_both_are_streamed_on():
    p = Program((64, 32), (32, "k"), ("k", 32), (64, 32))
    attended = p.matmul(p.softmax(p.matmul(p.x[0], p.x[1])), p.x[2])
    p.done(p.binary(p.columns(attended, 0, 32), p.x[3]))
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    (stream,) = online_reductions(graph, replace(TARGET, streamed_points=64))
    one, two = (Group.of(node) for node in nodes_of(p)[-2:])
    streaming = replace(one, online=(stream,))
    for make in (lambda a, b: merged(a, b, align(a, b)), inline_into, cut_behind):
        assert make(streaming, two).online == (stream,)
        assert make(one, replace(two, online=(stream,))).online == (stream,)
        assert make(streaming, replace(two, online=(stream,))).online == (stream, stream)


def test_what_is_cut_has_no_loops_of_its_own():
    p = Program((16, 32))
    first, last = nodes_of(p.done(p.columns(p.unary(p.x[0]), 0, 30)))
    group = cut_behind(Group.of(first), Group.of(last))
    assert (group.members, group.grid, group.inlined) == ([first, last], (16, 32), {last})
    assert group.grid_loop_of == {first: (0, 1)}


def test_loops_of_one_are_of_no_class():
    p = Program((1, 32))
    first, second = nodes_of(p.done(p.unary(p.unary(p.x[0]))))
    classes = loop_classes([first, second])
    assert classes.of((first, 0)) != classes.of((second, 0)) and classes.of((first, 1)) == classes.of((second, 1))
    assert classes.shared([first, second]) == [classes.of((second, 1))]


def test_units_of_the_last_are_left_out():
    p = Program((1, 32))
    nodes = nodes_of(p.done(p.unary(p.unary(p.unary(p.x[0]), permutation=(1, 0)), permutation=(1, 0))))
    classes = loop_classes(nodes)
    assert classes.shared(nodes) == [classes.of((nodes[2], 1))]


def test_loops_that_are_known_to_be_one():
    p = Program((16, 32), (16, 32))
    first, second = nodes_of(p.done(p.unary(p.x[0]), p.unary(p.x[1])))
    alike = loop_classes([first, second], [(first, 1), (second, 1)])
    assert alike.shared([first, second]) == [alike.of((second, 1))]
    assert loop_classes([first, second]).shared([first, second]) == []


def test_the_order_is_that_of_the_last():
    p = Program((16, 32))
    first, turned = nodes_of(p.done(p.unary(p.unary(p.x[0]), permutation=(1, 0))))
    classes = loop_classes([first, turned])
    assert classes.shared([first, turned]) == [classes.of((first, 1)), classes.of((first, 0))]
    assert classes.shared([turned, first]) == [classes.of((first, 0)), classes.of((first, 1))]


def test_a_summed_loop_is_shared_by_nobody():
    p = Program((16, 32))
    first, total = nodes_of(p.done(p.reduce(p.unary(p.x[0]))))
    classes = loop_classes([first, total])
    assert classes.shared([total, first]) == [classes.of((first, 0))]
