"""Workgroups that a merge leaves for the threads, and when fewer of them take less time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects import arith, math

import fuseline
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.build import dims_map
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.merging import align, merged
from fuseline.passes.fusion.parallelism import becomes_serial, elapsed_ns, loses_parallelism
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

from .programs import TARGET, Program

COSTS = TARGET.costs


def _groups(p: Program) -> tuple[FusionGraph, list[Group]]:
    """The groups of one op each, in program order."""
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    return graph, [Group.of(node) for node in sorted(graph.nodes, key=lambda node: node.position)]


def _merged(producer: Group, consumer: Group) -> Group:
    return merged(producer, consumer, align(producer, consumer))


def _summed(rows: int, columns: int, costly: bool) -> tuple[FusionGraph, list[Group]]:
    """What is evaluated at every point, far more work than bytes or hardly any, and the sum of each row of it."""
    p = Program((rows, columns))
    return _groups(p.done(p.reduce(p.unary(p.x[0], math.CosOp if costly else arith.NegfOp))))


@pytest.mark.parametrize(("rows", "threads", "serial"), [(3, 4, True), (4, 4, False), (1, 1, True), (2, 1, False)])
def test_as_many_workgroups_as_threads(rows: int, threads: int, serial: bool):
    _, (first, total) = _summed(rows, 1 << 16, costly=False)
    both = _merged(first, total)
    assert both.grid == (rows,)
    assert becomes_serial(both, (first, total), replace(TARGET, threads=threads)) == serial


@pytest.mark.parametrize(("rows", "threads"), [(1, 2), (1, 16), (3, 4), (5, 32)])
def test_costly_points_keep_their_threads(rows: int, threads: int):
    graph, (first, total) = _summed(rows, 1 << 16, costly=True)
    both, target = _merged(first, total), replace(TARGET, threads=threads)
    refusal = loses_parallelism(both, (first, total), graph, target)
    assert refusal is not None and (refusal.code, refusal.at) == ("parallelism", both.root.name)
    assert refusal.detail == f"{rows} parallel iterations would be left for {threads} threads"
    lost = elapsed_ns(both, graph, target) - elapsed_ns(first, graph, target) - elapsed_ns(total, graph, target)
    assert refusal.numbers == {
        "parallel_iterations": float(rows),
        "threads": float(threads),
        "predicted_loss_ns": round(lost),
    }


@pytest.mark.parametrize("threads", [1, 2, 16])
@pytest.mark.parametrize("costly", [False, True])
def test_one_thread_and_cheap_points_are_together(threads: int, costly: bool):
    """By itself, the sum has one workgroup, too: points that are stored for it take longer than those that are not."""
    graph, (first, total) = _summed(1, 1 << 20, costly)
    refusal = loses_parallelism(_merged(first, total), (first, total), graph, replace(TARGET, threads=threads))
    assert (refusal is None) == (not costly or threads == 1)


def test_small_work_needs_no_threads():
    p = Program((1, COSTS.serial_elements))
    graph, (total, last) = _groups(p.done(p.binary(p.x[0], p.reduce(p.x[0]), dims_map(2, [0]))))
    both = _merged(total, last)
    assert becomes_serial(both, (total, last), TARGET)
    assert loses_parallelism(both, (total, last), graph, TARGET) is None


def test_roots_are_cut_for_their_caches_whatever_it_saves():
    p = Program((1, 4096), (4096, 512))
    graph, (product, total) = _groups(p.done(p.reduce(p.matmul(p.x[0], p.x[1]))))
    both, free = _merged(product, total), replace(TARGET, costs=replace(COSTS, launch_ns=1e9), threads=1)
    assert elapsed_ns(both, graph, free) < elapsed_ns(product, graph, free) + elapsed_ns(total, graph, free)
    assert loses_parallelism(both, (product, total), graph, free) is not None


def test_blocks_of_eight_rows_are_workgroups():
    p = Program((1024, 64), (64, 256))
    _, (product, total) = _groups(p.done(p.reduce(p.matmul(p.x[0], p.x[1]))))
    both = _merged(product, total)
    assert not becomes_serial(both, (product, total), replace(TARGET, threads=128))
    assert becomes_serial(both, (product, total), replace(TARGET, threads=129))


def test_a_dispatch_takes_its_operations_or_its_bytes():
    p = Program((1, 1 << 18))
    graph, (point, total) = _groups(p.done(p.reduce(p.unary(p.x[0], arith.NegfOp))))
    alone = replace(TARGET, threads=1)
    stored = replace(alone, costs=replace(COSTS, operation_ns=0.0))
    assert elapsed_ns(point, graph, stored) == COSTS.launch_ns + 2 * (1 << 20) / COSTS.stored_bytes_per_ns
    assert elapsed_ns(total, graph, stored) == COSTS.launch_ns + ((1 << 20) + 4) / COSTS.stored_bytes_per_ns
    worked = replace(alone, costs=replace(COSTS, operation_ns=100.0))
    assert elapsed_ns(point, graph, worked) == COSTS.launch_ns + (1 << 18) * point.root.operations * 100.0
    assert elapsed_ns(point, graph, replace(worked, threads=4)) - COSTS.launch_ns == pytest.approx(
        (elapsed_ns(point, graph, worked) - COSTS.launch_ns) / 4
    )
    assert elapsed_ns(total, graph, replace(worked, threads=4)) == elapsed_ns(total, graph, worked)


LOSS: Callable[[str, str], str] = "(float[{0}] x, float[{0}] y) => (o) {{ d = Sub(x, y) {1} }}".format


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("shape", [(833, 833), (7, 311, 129), (1, 200003), ("n", "m")])
@pytest.mark.parametrize(
    "reduced",
    [
        "q = Mul(d, d) o = ReduceMean<keepdims = 0>(q)",
        "q = Abs(d) o = ReduceMax<keepdims = 0>(q)",
        "q = Abs(d) o = ReduceSum(q)",
    ],
)
def test_a_loss_over_all_elements_is_one_dispatch(
    reduced: str, shape: tuple[int | str, ...], threads: int, tmp_path: Path
):
    path = tmp_path / "loss.onnx"
    path.write_bytes(onnx_model(LOSS(", ".join(map(str, shape)), reduced), {}, opset=13).SerializeToString())
    sizes = [size if isinstance(size, int) else int(RNG.integers(400, 500)) for size in shape]
    feeds = {name: RNG.standard_normal(sizes).astype(np.float32) for name in "xy"}
    program = fuseline.compile(path, threads=threads)
    (found,) = program.run(feeds).values()
    d = feeds["x"].astype(np.float64) - feeds["y"]
    expected = {"Mul": (d * d).mean(), "Max": np.abs(d).max(), "Sum": np.abs(d).sum()}
    name = next(name for name in ("Mul", "Max", "Sum") if name in reduced)
    np.testing.assert_allclose(np.asarray(found).ravel(), expected[name], rtol=1e-4)
    assert program.stats["dispatches"] == 1


@pytest.mark.parametrize("threads", [1, 2])
def test_what_reads_elsewhere_is_not_weighed(threads: int):
    """It may ask for an element again and again: one thread would evaluate it as often."""
    p = Program((1, 1 << 20))
    turned = p.unary(p.x[0], arith.NegfOp)
    graph, groups = _groups(p.done(p.reduce(p.pad(turned, [0, 1], [0, 3]))))
    first, padded = groups[:2]
    both = _merged(_merged(first, padded), groups[2])
    assert both.reads_elsewhere and becomes_serial(both, groups, TARGET)
    assert loses_parallelism(both, groups, graph, replace(TARGET, threads=threads)) is not None


@pytest.mark.parametrize(("columns", "size", "threads", "serial"), [
    (16, 512, 2, True),  # register tiles are two vectors wide
    (32, 512, 2, False),
    (32, 512, 4, True),
    (16, 512, 1, False),
    (16, 34, 2, False),  # so little stays on the calling thread
])  # fmt: skip
def test_columns_are_shared_out_in_whole_register_tiles(columns: int, size: int, threads: int, serial: bool):
    p = Program((size, 32), (3, 32, columns))
    _, groups = _groups(p.done(p.reduce(p.convolution(p.x[0], p.x[1]), axis=0)))
    product, total = groups[-2:]
    both = _merged(product, total)
    assert both.blocked and both.grid == (columns,)
    assert becomes_serial(both, (product, total), replace(TARGET, threads=threads)) == serial
