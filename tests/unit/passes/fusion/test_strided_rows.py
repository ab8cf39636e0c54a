"""Which loops of a grid may become serial, by how rows then lie in memory."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pytest
from xdsl.dialects.builtin import f16
from xdsl.dialects.math import ExpOp

import fuseline
from fuseline.analysis.column_blocks import MOST_BESIDE
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.build import dims_map, identity_map
from fuseline.ir.costs import BLOCK_VECTORS, PAGE_BYTES
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.strided_rows import (
    COLUMNS,
    FEW_ROWS,
    HIGH_ROWS,
    LINE_BYTES,
    LOW_ROWS,
    WIDE_LANES,
    short_runs_ns,
    strided_rows,
)
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

from .programs import TARGET, Program

CACHED, SERIAL = TARGET.costs.cached_bytes, TARGET.costs.serial_elements


def _group(p: Program) -> tuple[FusionGraph, Group]:
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    (node,) = graph.nodes
    return graph, Group.of(node)


def _exp(*shape: int | str) -> tuple[FusionGraph, Group]:
    p = Program(shape)
    return _group(p.done(p.unary(p.x[0])))


def _asked(
    made: tuple[FusionGraph, Group], demoted: Collection[int], target: TargetDescription = TARGET
) -> WhyNot | None:
    graph, group = made
    return strided_rows(group, frozenset(demoted), graph, target)


def test_rows_along_memory_may_be_serial_however_long():
    assert _asked(_exp(1000, CACHED), {1}) is None
    assert _asked(_exp(1000, 1000, 1000), {1, 2}) is None
    assert _asked(_exp(1000, CACHED), {0, 1}) is None
    assert _asked(_exp(1000, CACHED), ()) is None


def test_columns_that_stay_in_the_cache_may_be_walked_side_by_side():
    rows = CACHED // 4 // 256
    assert _asked(_exp(rows, 256), {0}) is None
    graph, group = _exp(rows + 1, 256)
    refusal = _asked((graph, group), {0})
    assert refusal is not None and (refusal.code, refusal.at) == ("strided-inner", group.root.name)
    assert refusal.detail == f"{group.root.name} would walk {CACHED + 1024:,} bytes across rows, again"
    assert refusal.numbers == {"block_bytes": CACHED + 1024.0, "cached_bytes": float(CACHED)}


def test_few_rows_are_walked_down_their_columns_however_long_they_are():
    columns = int(RNG.integers(CACHED // 8, CACHED)) | 1
    assert _asked(_exp(LOW_ROWS, columns), {0}) is None
    assert _asked(_exp(2, LOW_ROWS // 4, 4, columns), {1, 2}) is None
    assert _asked(_exp(LOW_ROWS + 1, columns), {0}).code == "strided-inner"  # pyright: ignore[reportOptionalMemberAccess]
    assert _asked(_exp(LOW_ROWS, columns, 16), {0, 2}) is not None  # runs of a row, beside those of others


def test_rows_that_lie_on_top_of_each_other_in_a_cache_are_fewer():
    pages = int(RNG.integers(64, 200))
    for shape in ((PAGE_BYTES // 4 * pages,), (PAGE_BYTES // 64, 16 * pages)):
        assert _asked(_exp(FEW_ROWS, *shape), {0}) is None
        assert _asked(_exp(8 * FEW_ROWS, *shape), {0}) is not None
    assert _asked(_exp(LOW_ROWS, PAGE_BYTES // 64, 16 * pages + 1), {0}) is None


def test_wide_vectors_take_enough_of_such_rows():
    wide = replace(TARGET, costs=replace(TARGET.costs, block_uses=BLOCK_VECTORS * WIDE_LANES))
    columns = PAGE_BYTES // 4 * int(RNG.integers(64, 200))
    assert _asked(_exp(LOW_ROWS, columns), {0}) is not None
    assert _asked(_exp(LOW_ROWS, columns), {0}, wide) is None
    assert _asked(_exp(LOW_ROWS + 1, columns), {0}, wide) is not None


def test_rows_that_the_run_tells_begin_at_any_place_of_a_page():
    shape = (LOW_ROWS, "columns", PAGE_BYTES)
    assert _asked(_exp(*shape), {0}) is None
    assert _asked(_exp(LOW_ROWS, 128, PAGE_BYTES), {0}) is not None


def test_rows_of_halves_are_as_many():
    for rows in (LOW_ROWS, LOW_ROWS + 1):
        p = Program((rows, CACHED // 8 + 1), element=f16)
        assert (_asked(_group(p.done(p.unary(p.x[0]))), {0}) is None) == (rows <= LOW_ROWS)


ROWS_OF = {
    "softmax": "y = Softmax <axis = 0> (x)",
    "log-softmax": "y = LogSoftmax <axis = 0> (x)",
    "norm": "m = ReduceMean <keepdims = 1> (x, a)  d = Sub(x, m)  q = Mul(d, d)  v = ReduceMean <keepdims = 1> (q, a)"
    "  e = Sqrt(v)  y = Div(d, e)",
    "functions": "s = ReduceSum <keepdims = 1> (x, a)  t = Sub(x, s)  y = Tanh(t)",
    "differences": "s = ReduceSum <keepdims = 1> (x, a)  y = Sub(x, s)",
}


@pytest.mark.parametrize("element", ["float", "float16"])
@pytest.mark.parametrize("name", ROWS_OF)
@pytest.mark.parametrize("threads", (1, 2))
def test_more_rows_are_walked_down_where_that_saves_several_traversals(name: str, element: str, threads: int):
    rows = int(RNG.integers(LOW_ROWS + 1, HIGH_ROWS + 1))
    columns = (2 * CACHED // rows) | 1
    for many, expected in ((rows, 1 + (name == "differences")), (HIGH_ROWS + 1 + rows, 2)):
        text = f"({element}[{many}, {columns}] x) => ({element}[{many}, {columns}] y) {{ {ROWS_OF[name]} }}"
        model = onnx_model(text, {"a": np.array([0])})
        dispatches = fuseline.compile(model, target="null", threads=threads).record.dispatches
        assert (len(dispatches) == 1) == (expected == 1)


@pytest.mark.parametrize("columns", [LINE_BYTES // 4, LINE_BYTES // 4 + 1])
def test_rows_of_one_line_of_memory_are_walked_in_any_order(columns: int):
    refused = _asked(_exp(2, CACHED, columns), {1}) is not None
    assert refused == (columns * 4 > LINE_BYTES)


@pytest.mark.parametrize("columns", [17, MOST_BESIDE * TARGET.costs.lanes, MOST_BESIDE * TARGET.costs.lanes + 1])
def test_one_thread_walks_rows_of_few_vectors_whole(columns: int):
    made, alone = _exp(2, CACHED, columns), replace(TARGET, threads=1)
    assert (_asked(made, {1}, alone) is None) == (columns <= MOST_BESIDE * TARGET.costs.lanes)
    assert _asked(made, {1}) is not None  # several would share the columns out
    assert _asked(_exp(CACHED, columns, 20), {0, 2}, alone) is not None  # runs of a row, beside those of others


def test_rows_of_unknown_length_are_not_walked_whole():
    assert _asked(_exp(CACHED, "columns"), {0}, replace(TARGET, threads=1)) is not None


def test_lines_are_counted_in_bytes():
    p = Program((CACHED, LINE_BYTES // 2), element=f16)
    assert _asked(_group(p.done(p.unary(p.x[0]))), {0}, replace(TARGET, threads=1)) is None


def test_there_are_blocks_of_columns_for_all_threads():
    rows = SERIAL // COLUMNS + 1
    assert _asked(_exp(rows, 2 * COLUMNS), {0}) is None
    graph, group = _exp(rows, 2 * COLUMNS - 1)
    refusal = _asked((graph, group), {0})
    assert refusal is not None and (refusal.code, refusal.at) == ("parallelism", group.root.name)
    assert refusal.detail == "1 blocks of columns for 2 threads"
    assert refusal.numbers == {"workgroups": 1.0, "threads": 2.0}
    assert _asked(_exp(rows, COLUMNS), {0}, replace(TARGET, threads=1)) is None
    assert _asked(_exp(2, rows, COLUMNS), {1}) is None


def test_what_is_not_reduced_is_not_walked_in_columns():
    """Where it is too much for a cache, or threads would take its lines from each other."""
    alone = replace(TARGET, threads=1)
    for target, columns in ((alone, CACHED // 8 // 256), (TARGET, SERIAL // 256)):
        graph, group = _exp(256, columns)
        assert strided_rows(group, frozenset({0}), graph, target, in_rows=False) is None
        graph, group = _exp(256, columns + 1)
        refusal = strided_rows(group, frozenset({0}), graph, target, in_rows=False)
        assert refusal is not None and (refusal.code, refusal.at) == ("strided-inner", group.root.name)
        walked = 256 * (columns + 1) * 8
        assert refusal.detail == f"{group.root.name} would be walked in columns, {walked:,} bytes that lie in rows"
        assert refusal.numbers == {"walked_bytes": float(walked)}
        assert strided_rows(group, frozenset({0}), graph, target) is None


def test_few_elements_need_one_thread():
    assert _asked(_exp(SERIAL // COLUMNS, COLUMNS), {0}) is None
    assert _asked(_exp(SERIAL // COLUMNS + 1, COLUMNS), {0}) is not None


def test_runs_beside_those_of_other_workgroups_are_walked_while_they_stay_in_the_cache():
    rows = CACHED // 4 // (32 * 8)
    assert _asked(_exp(rows, 32, 8), {0, 2}) is None
    graph, group = _exp(rows + 1, 32, 8)
    refusal = _asked((graph, group), {0, 2})
    assert refusal is not None and (refusal.code, refusal.at) == ("strided-inner", group.root.name)


@pytest.mark.parametrize("run", [2, 3, 5, 6, 9, 10, 12])
def test_rows_of_groups_whose_runs_leave_lanes_empty_are_walked_along_memory(run: int):
    assert _asked(_exp(CACHED, 32, run), {0, 2}) is None


def test_groups_are_shared_out_whole():
    """48 columns, the least that are whole groups of 12 and whole vectors, for each thread."""
    assert _asked(_exp(SERIAL, 5, 12), {0, 2}) is None
    refusal = _asked(_exp(SERIAL, 4, 12), {0, 2})
    assert refusal is not None and refusal.code == "parallelism"
    assert _asked(_exp(2, SERIAL, 4, 12), {1, 3}) is None


@pytest.mark.parametrize("shape", [(0, 5, 4), (7, 0, 4), (7, 5, 0)])
def test_empty_rows_may_be_walked_in_any_way(shape: tuple[int, ...]):
    graph, group = _exp(*shape)
    assert _asked((graph, group), {0, 2}) is None and short_runs_ns(group, frozenset({0, 2}), TARGET.costs) == 0.0


def test_runs_of_one_workgroup_are_too_few_for_all_threads():
    graph, group = _exp(SERIAL // 8, 3, 8)
    assert _asked((graph, group), {0, 2}) is None
    assert _asked((graph, group), {0, 2}, replace(TARGET, threads=4)).code == "parallelism"  # pyright: ignore[reportOptionalMemberAccess]


@pytest.mark.parametrize(("run", "wasted"), [(7, 1 / 7), (13, 3 / 13), (14, 1 / 7), (16, 0.0), (20, 0.2), (48, 0.0)])
def test_lanes_that_a_run_leaves_empty_cost_arithmetic(run: int, wasted: float):
    _, group = _exp(7, 5, run)
    costs = TARGET.costs
    assert costs.lanes == 8
    longer = short_runs_ns(group, frozenset({0, 2}), costs)
    assert longer == pytest.approx(wasted * 35 * run * group.root.operations * costs.operation_ns)
    assert short_runs_ns(group, frozenset({0}), costs) == short_runs_ns(group, frozenset({2}), costs) == 0.0


@pytest.mark.parametrize(("groups", "run", "wasted"), [(4, 2, 0.0), (2, 2, 1.0), (3, 5, 0.0), (2, 3, 1 / 3)])
def test_lanes_run_on_from_one_group_to_the_next(groups: int, run: int, wasted: float):
    _, group = _exp(7, groups, run)
    longer = short_runs_ns(group, frozenset({0, 2}), TARGET.costs)
    assert longer == pytest.approx(wasted * 7 * groups * run * group.root.operations * TARGET.costs.operation_ns)


def test_loops_inside_already_are_serial_too():
    graph, group = _exp(8, 300, 300)
    assert _asked((graph, group), {1}) is None
    inside = Group(group.members, (300, 300), {group.root: (None, 0, 1)})
    refusal = _asked((graph, inside), {0})
    assert refusal is not None and refusal.numbers["block_bytes"] == 8 * 300 * 300 * 4


def test_what_is_read_in_place_and_loops_of_one_do_not_count():
    graph, group = _exp(4, 8, 4)
    inlined = Group(group.members, group.grid, {}, set(group.members))
    assert _asked((graph, inlined), {0, 2}) is None
    assert _asked(_exp(SERIAL * 2, 1), {0}) is None


def test_rows_lie_as_the_result_is_written():
    p = Program((300, 3000))
    maps = [identity_map(2), dims_map(2, [1, 0])]
    turned = _group(
        p.done(p.elementwise([p.x[0]], p.empty(3000, 300), lambda b: b.op(ExpOp, b.args[0]), maps)),
    )
    assert _asked(turned, {0}) is None
    refusal = _asked(turned, {1})
    assert refusal is not None and refusal.code == "strided-inner"
