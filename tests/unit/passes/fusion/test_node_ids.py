"""Ids: structure decides, names and order do not; a change far away leaves them, one nearby does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects import arith, math

from fuseline.analysis.code_text import digest
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.build import dims_map
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.node_ids import ID_DIGITS, assign_ids

from .programs import Program


def _nodes(p: Program, taken: dict[str, int] | None = None) -> list[Node]:
    graph = FusionGraph(p.function.body.block, ShapeAnalysis(), taken)
    return sorted(graph.nodes, key=lambda node: node.position)


def _chain(length: int, last: Callable[[Program, object], object] | None = None) -> Program:
    p = Program((4, 8))
    y = p.x[0]
    for _ in range(length):
        y = p.unary(y)
    return p.done(last(p, y) if last else y)  # pyright: ignore[reportArgumentType]


def test_ids_are_short_and_equal_for_equal_programs():
    one, two = ([node.id for node in _nodes(_chain(4))] for _ in range(2))
    assert one == two
    assert all(len(id_.split("-")[0]) == ID_DIGITS for id_ in one)
    assert len(set(one)) == 4


def test_a_change_three_edges_away_leaves_an_id():
    before = [node.id for node in _nodes(_chain(6))]
    after = [node.id for node in _nodes(_chain(6, lambda p, y: p.reduce(y)))]  # pyright: ignore[reportArgumentType]
    assert after[:3] == before[:3]
    assert after[4:6] != before[4:6]


def test_nodes_that_look_alike_are_numbered():
    p = Program((4, 8), (4, 8))
    nodes = _nodes(p.done(p.unary(p.x[0]), p.unary(p.x[1])))
    first, second = sorted((node.id for node in nodes), key=len)
    assert second == f"{first}-2"


def test_numbers_go_on_from_function_to_function():
    taken: dict[str, int] = {}
    one, two = (_nodes(_chain(1), taken)[0].id for _ in range(2))
    assert two == f"{one}-2"
    assert taken == {one: 2}


def test_order_follows_depth_first():
    p = Program((4, 8))
    a = p.unary(p.x[0])
    b = p.unary(p.unary(p.x[0], math.TanhOp))
    nodes = _nodes(p.done(p.binary(b, a)))
    depth = {"n1": 0, "n2": 0, "n3": 1, "n4": 2}
    assert sorted(node.order for node in nodes) == [0, 1, 2, 3]
    assert [depth[node.nodes[0]] for node in sorted(nodes, key=lambda node: node.order)] == [0, 0, 1, 2]


DIFFERENT: dict[str, tuple[Callable[[], Program], Callable[[], Program]]] = {
    "the op of the body": (lambda: _chain(1), lambda: (p := Program((4, 8))).done(p.unary(p.x[0], math.TanhOp))),
    "the size": (lambda: _chain(1), lambda: (p := Program((4, 9))).done(p.unary(p.x[0]))),
    "the map": (
        lambda: (p := Program((8, 8))).done(p.unary(p.x[0])),
        lambda: (p := Program((8, 8))).done(p.unary(p.x[0], permutation=(1, 0))),
    ),
    "the axis": (
        lambda: (p := Program((8, 8))).done(p.reduce(p.x[0], 0)),
        lambda: (p := Program((8, 8))).done(p.reduce(p.x[0], 1)),
    ),
    "a reshape on the way": (
        lambda: (p := Program((4, 8), (8, 4))).done(p.unary(p.x[0]), p.unary(p.collapse(p.unary(p.x[1])))),
        lambda: (p := Program((4, 8), (32,))).done(p.unary(p.x[0]), p.unary(p.unary(p.x[1]))),
    ),
    "the order of the body's operands": (
        lambda: (p := Program((8, 8), (8,))).done(
            p.by_row(p.x[0], p.x[1], lambda b: b.op(arith.SubfOp, b.args[0], b.args[1]))
        ),
        lambda: (p := Program((8, 8), (8,))).done(
            p.by_row(p.x[0], p.x[1], lambda b: b.op(arith.SubfOp, b.args[1], b.args[0]))
        ),
    ),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_what_a_node_is_enters_its_id(what: str):
    one, two = DIFFERENT[what]
    assert _nodes(one())[-1].id != _nodes(two())[-1].id


def test_a_reshape_before_the_only_op_is_seen():
    one, two = (Program(shape) for shape in ((4, 8), (32,)))
    nodes = [_nodes(p.done(p.unary(value)))[0] for p, value in ((one, one.collapse(one.x[0])), (two, two.x[0]))]
    assert nodes[0].reads[0].regrouped
    assert nodes[0].id != nodes[1].id


def test_the_name_of_a_size_does_not_enter():
    one, two = ((p := Program((name, 8))).done(p.unary(p.x[0])) for name in ("rows", "batch"))
    assert _nodes(one)[0].id == _nodes(two)[0].id
    three = (p := Program(("a", "b"))).done(p.unary(p.x[0]))
    assert _nodes(three)[0].id != _nodes(one)[0].id


def test_a_square_is_told_from_a_product_of_sizes():
    """Which loops have one size is structure, too."""
    one, two = ((p := Program(sizes)).done(p.unary(p.x[0])) for sizes in (("a", "a"), ("a", "b")))
    assert _nodes(one)[0].id != _nodes(two)[0].id


def test_the_fingerprint_is_of_the_graph():
    prints = [assign_ids(_nodes(p)) for p in (_chain(3), _chain(3), _chain(4))]
    assert prints[0] == prints[1] != prints[2]


def test_which_of_two_results_is_read_first_is_told_apart():
    """`a - b` and `b - a` of two equal ops over one operand: the roles of `a` and `b` differ, and so do their places in
    the order."""

    def program(swapped: bool) -> Program:
        p = Program((4, 8))
        a, b = p.unary(p.x[0]), p.unary(p.x[0], math.TanhOp)
        e = p.emit
        left, right = (b, a) if swapped else (a, b)
        return p.done(
            e.elementwise(
                [left, right], e.empty_like(a), lambda body: body.op(arith.SubfOp, body.args[0], body.args[1])
            )
        )

    assert assign_ids(_nodes(program(False))) != assign_ids(_nodes(program(True)))


def test_interchangeable_nodes_keep_their_company_apart():
    """Two equal pairs side by side: each second op reads its own first op, and ties are broken so that the pairs stay
    pairs."""
    p = Program((4, 8), (4, 8))
    firsts = [p.unary(x) for x in p.x]
    nodes = _nodes(p.done(*(p.unary(first) for first in firsts)))
    order = {node.nodes[0]: node.order for node in nodes}
    assert (order["n1"] < order["n2"]) == (order["n3"] < order["n4"])


def test_parts_of_a_digest_do_not_run_together():
    assert digest("ab", "c") != digest("a", "bc") != digest("abc")
    assert len(digest("x")) == 12


# what plans hold ------------------------------------------------------------------------------------------------------


def _attention() -> Program:
    p = Program(("q", 32), (32, "k"), ("k", 32))
    return p.done(p.matmul(p.softmax(p.matmul(p.x[0], p.x[1])), p.x[2]))


def _block() -> Program:
    p = Program((34, 16), (3, 16, 24), (24,))
    y = p.binary(p.convolution(p.pad(p.x[0], (1, 0), (1, 0)), p.x[1]), p.x[2], dims_map(2, [1]))
    return p.done(p.unary(y, math.TanhOp, permutation=(1, 0)), p.concat(y, p.unary(p.columns(y, 4, 8))))


def _alike() -> Program:
    p = Program((8, 8))
    a, b = p.unary(p.x[0]), p.unary(p.x[0])
    c = p.unary(a)
    return p.done(p.binary(p.reduce(a), p.reduce(b)), p.binary(c, p.unary(b)), p.unary(p.collapse(c)))


PINNED = [
    (_attention, "f9af749897ca", "49097483 042e6e52 0decbf76 882d8bb8 ebe66599 5e9ad649", "012345"),
    (_block, "ad91176f8991", "e7d22776 16188b90 b7dc469e c61137cb 154eeaaa 57df5398 71e03625", "0124356"),
    (
        _alike,
        "76bb34acadfd",
        "670a7266 565d9329 5af1e65b 5353e8dd 5353e8dd-2 1b13c5b4 60769a98 ad5b5f6c 9c1a66ca",
        "104238576",
    ),
]


@pytest.mark.parametrize(("program", "fingerprint", "ids", "order"), PINNED, ids=["attention", "block", "alike"])
def test_ids_are_those_that_plans_hold(program: Callable[[], Program], fingerprint: str, ids: str, order: str):
    """Plans that people keep name ops by them: what changes here makes those stale, and is told in CHANGELOG."""
    graph = FusionGraph(program().function.body.block, ShapeAnalysis())
    assert (graph.fingerprint(), " ".join(node.id for node in graph.nodes)) == (fingerprint, ids)
    assert "".join(str(node.order) for node in graph.nodes) == order
