"""What one evaluation of an op takes."""

from __future__ import annotations

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.node import BORDERED, node_operations

from .programs import Program


def test_operations_of_one_evaluation():
    """Each part of a concat is told apart by itself; moves without borders are two operations per read."""
    p = Program((8, 4), (8, 6), (8, 5))
    padded = p.pad(p.binary(p.x[0], p.x[0]), [0, 1], [0, 1])
    joined = p.concat(padded, p.unary(p.x[1]), p.unary(p.x[2]))
    graph = FusionGraph(p.done(p.columns(joined, 1, 3)).function.body.block, ShapeAnalysis())
    found = {node.kind.name: node for node in graph.nodes}
    counts = {name: node_operations(node) for name, node in found.items()}
    parts = {name: len(node.reads) for name, node in found.items()}
    assert counts == {
        "ELEMENTWISE": found["ELEMENTWISE"].operations,
        "PAD": BORDERED[found["PAD"].kind] * parts["PAD"],
        "CONCAT": BORDERED[found["CONCAT"].kind] * parts["CONCAT"],
        "SLICE": 2,
    }
    assert (parts["PAD"], parts["CONCAT"]) == (1, 3) and counts["ELEMENTWISE"] > 0
