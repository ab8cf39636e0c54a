"""One function in one round: its regions opened, known again, and put back as they were."""

from __future__ import annotations

import pytest
from xdsl.dialects import tensor
from xdsl.dialects.func import FuncOp

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.ir.flow import DispatchRegionOp
from fuseline.ir.text import parse_module
from fuseline.passes.dispatch.elide_concats import ElideConcatsPass
from fuseline.passes.dispatch.form_dispatch_regions import FormDispatchRegionsPass
from fuseline.passes.dispatch.function_round import FunctionRound
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.merging import align, merged
from fuseline.passes.fusion.node import Node
from fuseline.passes.fusion.rule_choice import JOINS
from tests.graphs.program import Program


def _chain() -> Program:
    """A product and two ops behind it, and one by itself."""
    p = Program((9, 6), (6, 7), (5, 3))
    return p.done(p.unary(p.relu(p.matmul(p.x[0], p.x[1]))), p.unary(p.x[2]))


def _formed(p: Program, **options: object) -> FuncOp:
    FormDispatchRegionsPass(**options).apply(new_context(), p.module)  # pyright: ignore[reportArgumentType]
    return p.function


def _graph(function: FuncOp) -> FusionGraph:
    return FusionGraph(function.body.block, ShapeAnalysis({}))


def _regions(function: FuncOp) -> int:
    return sum(isinstance(op, DispatchRegionOp) for op in function.body.block.ops)


def _whole(nodes: list[Node]) -> Group:
    first, *rest = [Group.of(node) for node in nodes]
    for other in rest:
        first = merged(first, other, align(first, other))
    return first


def test_a_function_without_regions_is_not_copied():
    function = _chain().function
    body = function.body
    found = FunctionRound.of(function, {})
    assert function.body is body and found.before is None and not found.opened
    graph = _graph(function)
    assert found.starting_groups(graph, []) == []
    groups = [Group.of(node) for node in graph.nodes]
    assert not any(found.had(group) for group in groups) and not found.changes_nothing(groups)


def test_regions_are_opened_in_a_copy_and_known_by_their_ops():
    function = _formed(_chain(), without=JOINS)
    body, dispatches = function.body, _regions(function)
    found = FunctionRound.of(function, {})
    assert found.before is body and function.body is not body
    assert _regions(function) == 0 and len(found.opened) == dispatches == 2
    graph = _graph(function)
    starts = found.starting_groups(graph, [])
    assert sorted(len(start.nodes) for start in starts) == [1, 3]
    groups = [group for start in starts for group in start.groups]
    assert all(found.had(group) for group in groups) and found.changes_nothing(groups)
    (three,) = [group for group in groups if len(group.members) == 3]
    part = Group.of(three.members[0])
    assert not found.had(part) and not found.changes_nothing([*groups, part])


def test_a_function_gets_the_body_back_that_it_had():
    function = _formed(_chain())
    before, body = function.clone(), function.body
    found = FunctionRound.of(function, {})
    assert not function.is_structurally_equivalent(before)
    found.restore()
    assert function.body is body and function.is_structurally_equivalent(before)
    function.verify()


def test_what_a_round_without_regions_had_cannot_be_put_back():
    with pytest.raises(AssertionError):
        FunctionRound.of(_chain().function, {}).restore()


def test_merging_what_was_apart_changes_something():
    function = _formed(_chain(), level="none")
    found = FunctionRound.of(function, {})
    starts = found.starting_groups(graph := _graph(function), [])
    assert len(starts) == 4 and all(len(start.nodes) == 1 for start in starts)
    product, *rest = sorted(graph.nodes, key=lambda node: node.position)
    chain = [product, *(node for node in rest if node.loops == (9, 7))]
    assert len(chain) == 3 and not found.had(_whole(chain))
    assert not found.changes_nothing([_whole(chain)])


def test_a_concat_that_needed_no_dispatch_is_known():
    p = Program((4, 6), (3, 6))
    p.done(p.unary(p.concat(p.unary(p.x[0]), p.unary(p.x[1]), axis=0)))
    function = _formed(p, level="none")
    ElideConcatsPass().apply(new_context(), p.module)
    assert any(isinstance(op, tensor.ConcatOp) for op in function.body.block.ops)
    found = FunctionRound.of(function, {})
    graph = _graph(function)
    found.starting_groups(graph, [])
    nodes = sorted(graph.nodes, key=lambda node: node.position)
    concat = next(node for node in nodes if isinstance(node.op, tensor.ConcatOp))
    assert len(found.placed) == 1 and len(found.opened) == len(nodes) - 1 == 3
    groups = [Group.of(node) for node in nodes]
    assert all(found.had(group) for group in groups) and found.changes_nothing(groups)
    assert not found.had(_whole([concat, nodes[-1]]))
    found.placed = frozenset()
    assert not found.had(Group.of(concat))


def test_a_malformed_region_is_refused_by_name():
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %r = flow.dispatch.region -> (tensor<4xf32>) attributes {fuseline.members = ["a", "b"]} { flow.return }
      return %r : tensor<4xf32>
    }"""
    (function,) = parse_module(text, new_context(), verify=False).ops
    assert isinstance(function, FuncOp)
    with pytest.raises(FuselineError) as caught:
        FunctionRound.of(function, {})
    assert (caught.value.code, caught.value.node) == ("E0302", "b")
