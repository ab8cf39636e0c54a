"""What a node is by itself: the kind of numbers, sizes and body enter, their values and names do not."""

from __future__ import annotations

from fuseline.analysis.code_text import Texts, digest
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.node_digests import local_digest

from .programs import Program


def _digest(*shape: int | str, relu: bool = False) -> str:
    p = Program(shape)
    p.done(p.relu(p.x[0]) if relu else p.unary(p.x[0]))
    (node,) = FusionGraph(p.function.body.block, ShapeAnalysis()).nodes
    return local_digest(node, Texts())


def test_equal_ops_have_equal_digests():
    assert _digest(4, 8) == _digest(4, 8)


def test_sizes_and_bodies_tell_ops_apart():
    assert len({_digest(4, 8), _digest(8, 4), _digest(32), _digest(4, 8, relu=True)}) == 4


def test_names_of_sizes_do_not_enter():
    assert _digest("rows", 8) == _digest("n", 8) != _digest(4, 8)


def test_what_is_hashed_is_a_list_of_texts():
    assert digest("ab", "c") != digest("a", "bc")
