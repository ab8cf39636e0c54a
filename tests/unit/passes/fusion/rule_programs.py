"""Small programs of two or three ops that rules are asked about."""

from __future__ import annotations

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.build import dims_map
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group

from .programs import Program


def graph_of(p: Program) -> tuple[FusionGraph, list[Group]]:
    """The groups of one op each, in program order."""
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    return graph, [Group.of(node) for node in sorted(graph.nodes, key=lambda node: node.position)]


def product_collapsed() -> Program:
    p = Program((64, 32), (32, 48))
    return p.done(p.unary(p.collapse(p.matmul(p.x[0], p.x[1]))))


def product_turned() -> Program:
    p = Program((64, 32), (32, 64))
    m = p.matmul(p.x[0], p.x[1])
    return p.done(p.binary(m, m, dims_map(2, [1, 0])))


def product_spread() -> Program:
    p = Program((64, 32), (32, 48), (10, 64, 48))
    return p.done(p.binary(p.x[2], p.matmul(p.x[0], p.x[1]), dims_map(3, [1, 2])))


def product_and_exp() -> Program:
    p = Program((64, 32), (32, 48))
    return p.done(p.unary(p.matmul(p.x[0], p.x[1])))


def product_and_sum() -> Program:
    p = Program((64, 32), (32, 48))
    return p.done(p.reduce(p.matmul(p.x[0], p.x[1])))


def product_and_product() -> Program:
    p = Program((64, 32), (32, 48), (48, 16))
    return p.done(p.matmul(p.matmul(p.x[0], p.x[1]), p.x[2]))


def product_and_window() -> Program:
    p = Program((66, 16), (16, 24), (3, 24))
    return p.done(p.depthwise(p.matmul(p.x[0], p.x[1]), p.x[2]))


def product_and_convolution() -> Program:
    p = Program((66, 16), (16, 24), (3, 24, 8))
    return p.done(p.convolution(p.matmul(p.x[0], p.x[1]), p.x[2]))


def window_and_window() -> Program:
    p = Program((66, 24), (3, 24), (3, 24))
    return p.done(p.depthwise(p.depthwise(p.x[0], p.x[1]), p.x[2]))


def collapsed_window() -> Program:
    p = Program((64, 16), (16, 48), (3, 24))
    return p.done(p.depthwise(p.expand(p.collapse(p.matmul(p.x[0], p.x[1])), 128, 24), p.x[2]))


def window_and_product() -> Program:
    p = Program((66, 16), (3, 16), (16, 8))
    return p.done(p.matmul(p.depthwise(p.x[0], p.x[1]), p.x[2]))


def collapsed_sum() -> Program:
    p = Program((64, 32), (32, 48))
    return p.done(p.reduce(p.collapse(p.matmul(p.x[0], p.x[1]))))


def two_exps() -> Program:
    p = Program((64, 32))
    return p.done(p.unary(p.unary(p.x[0])))


def exps_collapsed() -> Program:
    p = Program((64, 32))
    return p.done(p.unary(p.collapse(p.unary(p.x[0]))))


def exp_spread() -> Program:
    p = Program((4, 4096), (4,))
    return p.done(p.binary(p.x[0], p.unary(p.x[1]), dims_map(2, [0])))


def exp_spread_without_bound() -> Program:
    p = Program((4, "n"), (4,))
    return p.done(p.binary(p.x[0], p.unary(p.x[1]), dims_map(2, [0])))


def exp_spread_over_rows() -> Program:
    p = Program((640, 384), (384,))
    return p.done(p.binary(p.x[0], p.unary(p.x[1]), dims_map(2, [1])))


def exp_spread_over_both_sides() -> Program:
    p = Program((64, 38, 40), (38,))
    return p.done(p.binary(p.x[0], p.unary(p.x[1]), dims_map(3, [1])))


def exp_and_sum() -> Program:
    p = Program((64, 32))
    return p.done(p.reduce(p.unary(p.x[0])))


def product_and_sum_without_bound() -> Program:
    p = Program((64, 32), (32, "n"))
    return p.done(p.reduce(p.matmul(p.x[0], p.x[1])))


def sum_and_spread() -> Program:
    p = Program((64, 32), (64, 32))
    return p.done(p.binary(p.x[1], p.reduce(p.x[0]), dims_map(2, [0])))


def columns_summed_and_spread() -> Program:
    p = Program((64, 56, 32))
    return p.done(p.binary(p.x[0], p.reduce(p.x[0], axis=1), dims_map(3, [0, 2])))


def sums_collapsed() -> Program:
    p = Program((4, 64, 32))
    return p.done(p.unary(p.collapse(p.reduce(p.x[0]))))


def exp_and_product() -> Program:
    p = Program((64, 32), (32, 48))
    return p.done(p.matmul(p.unary(p.x[0]), p.x[1]))


def exp_and_window(taps: int = 3) -> Program:
    p = Program((32, 16), (taps, 16))
    return p.done(p.depthwise(p.unary(p.x[0]), p.x[1]))


def exp_read_twice() -> Program:
    p = Program((64, 64))
    e = p.unary(p.x[0])
    return p.done(p.binary(e, e, dims_map(2, [1, 0])))


def exp_also_returned() -> Program:
    p = Program((64, 32))
    e = p.unary(p.x[0])
    return p.done(p.unary(e), e)


def slice_and_exp() -> Program:
    p = Program((64, 96))
    return p.done(p.unary(p.columns(p.x[0], 32, 32)))


def product_and_slice() -> Program:
    p = Program((64, 32), (32, 48))
    return p.done(p.columns(p.matmul(p.x[0], p.x[1]), 0, 45))


def product_regrouped_and_slice() -> Program:
    p = Program((64, 32), (32, 48))
    return p.done(p.columns(p.expand(p.collapse(p.matmul(p.x[0], p.x[1])), 32, 96), 0, 45))


def exp_and_slice() -> Program:
    p = Program((64, 32))
    return p.done(p.columns(p.unary(p.x[0]), 0, 30))
