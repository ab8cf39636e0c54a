"""Which loops and dimensions of size 1 go, case by case."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.dialects import linalg
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, IndexType, f32, i64
from xdsl.ir import Block
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.build import Emitter
from fuseline.ir.fast.direct import set_operand
from fuseline.passes.layout.rewriting.broadcasts import broadcast_source
from fuseline.passes.layout.rewriting.mixed import joined
from fuseline.passes.layout.rewriting.unit_loop_plan import UnitPlan, plan_of, start_value
from tests.unit.analysis.generics import generic, op_of

PRODUCT = "%m = arith.mulf %a0, %a1 : f32\n %s = arith.addf %a2, %m : f32\n linalg.yield %s : f32"
COPY = "linalg.yield %a0 : f32"


def _plan(
    maps: list[str], kinds: str, ins: Sequence[str], out: str, body: str, *, filled: bool = False
) -> UnitPlan | None:
    function = generic(
        maps, kinds, [f"tensor<{shape}xf32>" for shape in ins], [f"tensor<{out}xf32>" if out else "tensor<f32>"], body
    )
    op = op_of(function)
    if filled:
        emit = Emitter.before(op)
        set_operand(op, len(op.operands) - 1, emit.fill(0.0, emit.empty_like(op.outputs[0], f32)))
    return plan_of(ShapeAnalysis(), op)


def _map(rank: int, *results: int | None) -> AffineMap:
    """Loops by number, None for 0."""
    return AffineMap(rank, 0, tuple(AffineExpr.constant(0) if r is None else AffineExpr.dimension(r) for r in results))


def test_nothing_of_size_one_is_no_plan():
    assert _plan(["d0, d1", "d0, d1"], "pp", ["3x4"], "3x4", COPY) is None


def test_a_unit_loop_goes_from_everything_that_names_it():
    plan = _plan(["d0, d1, d2", "d1, d2", "d0, d1, d2"], "ppp", ["1x3x4", "3x4"], "1x3x4", COPY)
    assert plan == UnitPlan((1, 2), ("parallel",) * 2, (_map(2, 0, 1),) * 3, ((1, 2), (0, 1), (1, 2)), (), False)


def test_a_unit_dimension_that_no_loop_walks_goes():
    plan = _plan(["0, d0", "d0"], "p", ["1x4"], "4", COPY)
    assert plan == UnitPlan((0,), ("parallel",), (_map(1, 0),) * 2, ((1,), (0,)), (), False)


def test_a_result_keeps_a_loop_that_inputs_need_not_name():
    plan = _plan(["d0, d1", "d0, d1"], "pp", ["1x1"], "1x1", COPY)
    assert plan == UnitPlan((1,), ("parallel",), (_map(1, None), _map(1, 0)), ((1,), (1,)), (0,), False)


def test_a_result_keeps_its_last_loop_only_where_no_other_is_left():
    plan = _plan(["d0, d1", "d0, d1"], "pp", ["3x1"], "3x1", COPY)
    assert plan is not None and (plan.loops, plan.axes) == ((0,), ((0,), (0,)))


def test_a_sum_of_everything_writes_no_loop():
    plan = _plan(["d0, d1", ""], "rr", ["3x1"], "", "%s = arith.addf %a1, %a0 : f32\n linalg.yield %s : f32")
    assert plan is not None and (plan.loops, plan.iterators) == ((0,), ("reduction",))


@pytest.mark.parametrize("filled", [False, True])
def test_the_last_summed_loop_goes_only_where_the_start_is_known(filled: bool):
    plan = _plan(["d0, d2", "d2, d1", "d0, d1"], "ppr", ["3x1", "1x4"], "3x4", PRODUCT, filled=filled)
    if filled:
        assert plan == UnitPlan(
            (0, 1), ("parallel",) * 2, (_map(2, 0), _map(2, 1), _map(2, 0, 1)), ((0,), (1,), (0, 1)), (), True
        )
    else:
        assert plan is None


def test_of_two_summed_loops_the_longer_one_stays():
    plan = _plan(["d0, d1, d2", "d0"], "prr", ["3x1x5"], "3", "%s = arith.addf %a1, %a0 : f32\n linalg.yield %s : f32")
    assert plan is not None and (plan.loops, plan.iterators, plan.emptied) == ((0, 2), ("parallel", "reduction"), False)


@pytest.mark.parametrize(("image", "size", "loops"), [("d0 + d2, d3", "6", (0, 1, 3)), ("d0 * 2 + d2, d3", "11", None)])
def test_a_window_of_one_stays_where_the_image_is_strided(image: str, size: str, loops: tuple[int, ...] | None):
    plan = _plan([image, "d2, d3, d1", "d0, d1"], "pprr", [f"{size}x3", "1x3x4"], "6x4", PRODUCT)
    assert (plan.loops if plan is not None else None) == loops


def test_unknown_sizes_that_are_one_go_as_well():
    function = generic(["d0, d1", "d0, d1"], "pp", ["tensor<1x?xf32>"], ["tensor<1x?xf32>"], COPY)
    plan = plan_of(ShapeAnalysis(), op_of(function))
    assert plan is not None and (plan.loops, plan.axes) == ((1,), ((1,), (1,)))


def test_the_value_a_sum_starts_from():
    op = op_of(
        generic(
            ["d0, d1", "d0"],
            "pr",
            ["tensor<3x5xf32>"],
            ["tensor<3xf32>"],
            "%s = arith.addf %a1, %a0 : f32\n linalg.yield %s : f32",
        )
    )
    assert start_value(op) is None
    emit = Emitter.before(op)
    set_operand(op, 1, emit.fill(2.0, emit.empty_like(op.outputs[0], f32)))
    fill = op.outputs[0].owner
    assert isinstance(fill, linalg.ops.FillOp) and start_value(op) is fill.inputs[0]


@pytest.mark.parametrize(
    ("maps", "kinds", "source", "result", "found"),
    [
        (["d1", "d0, d1"], "pp", "4", "3x4", True),
        (["", "d0, d1"], "pp", "", "3x4", True),
        (["d1, d0", "d0, d1"], "pp", "4x3", "3x4", False),
        (["0, d1", "d0, d1"], "pp", "1x4", "3x4", False),
        (["d1", "d1, d0"], "pp", "4", "4x3", False),
    ],
)
def test_what_only_repeats(maps: list[str], kinds: str, source: str, result: str, found: bool):
    function = generic(
        maps, kinds, [f"tensor<{source}xf32>" if source else "tensor<f32>"], [f"tensor<{result}xf32>"], COPY
    )
    made = broadcast_source(op_of(function).results[0])
    assert (made is not None) == found
    if made is not None:
        assert made[0] is function.args[0] and made[1] == op_of(function).indexing_maps.data[0].data
        assert broadcast_source(function.args[0]) is None


def test_what_computes_does_not_only_repeat():
    negated = generic(
        ["d1", "d0, d1"],
        "pp",
        ["tensor<4xf32>"],
        ["tensor<3x4xf32>"],
        "%n = arith.negf %a0 : f32\n linalg.yield %n : f32",
    )
    assert broadcast_source(op_of(negated).results[0]) is None
    summed = generic(["d0, d1", "d0"], "pr", ["tensor<3x4xf32>"], ["tensor<3xf32>"], COPY)
    assert broadcast_source(op_of(summed).results[0]) is None


def test_lists_of_numbers_and_values():
    n, m = Block(arg_types=[IndexType(), IndexType()]).args
    static = DenseArrayBase.from_list(i64, [DYNAMIC_INDEX, 3, DYNAMIC_INDEX])
    mixed = joined(static, [n, m])
    assert mixed == [n, 3, m] == joined([DYNAMIC_INDEX, 3, DYNAMIC_INDEX], [n, m])
    assert joined(DenseArrayBase.from_list(i64, [1, 2]), []) == [1, 2]
