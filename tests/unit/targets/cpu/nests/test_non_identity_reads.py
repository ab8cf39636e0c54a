"""Which dimensions of values are read at other coordinates than those of the loops."""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.dispatch.fused_loops import members_of
from fuseline.ir.build import dims_map, identity_map
from fuseline.targets.cpu.families.nests.non_identity_reads import non_identity_reads
from tests.graphs.program import Program


def _loose(p: Program, *results: SSAValue, stored: tuple[SSAValue, ...] = ()) -> dict[SSAValue, set[int]]:
    """What is read out of step; dimensions of nothing are left out."""
    p.done(*results)
    ops = members_of(p.function.body.block)
    found = non_identity_reads(ops, ShapeAnalysis({}), stored)
    return {value: axes for value, axes in found.items() if axes}


def _windows(p: Program, x: SSAValue) -> SSAValue:
    """`out[i, j] = x[i + 1, j]` along the first dimension."""
    maps = [AffineMap.from_callable(lambda i, j: (i + 1, j)), identity_map(2)]
    rows, columns = p.shape(x)
    assert isinstance(rows, int)
    return p.elementwise([x], p.empty(rows - 1, columns), lambda b: b.args[0], maps)


def test_what_is_read_along_the_loops_is_in_step():
    p = Program((6, 4), (4,))
    assert _loose(p, p.bias(p.unary(p.x[0], permutation=(1, 0)), p.x[1], 0)) == {}


def test_another_coordinate_is_out_of_step_along_its_dimension():
    p = Program((6, 4))
    assert _loose(p, _windows(p, p.x[0])) == {p.x[0]: {0}}


def test_it_passes_on_to_what_a_value_is_made_of():
    p = Program((6, 4))
    made = p.unary(p.unary(p.x[0]), permutation=(1, 0))
    turned = p.moved(made, [1, 0], 6, 4)
    found = _loose(p, _windows(p, turned))
    assert found[turned] == {0} and found[made] == {1} and found[p.x[0]] == {0}


def test_but_not_through_what_is_stored():
    p = Program((6, 4))
    made = p.unary(p.x[0])
    last = _windows(p, made)
    assert _loose(p, last, stored=(made,)) == {made: {0}}


def test_a_constant_coordinate_of_one_element_is_in_step():
    for rows, loose in ((1, False), (3, True)):
        p = Program((rows, 4))
        maps = [AffineMap.from_callable(lambda i, j: (0, j)), identity_map(2)]  # pyright: ignore
        result = p.elementwise([p.x[0]], p.empty(5, 4), lambda b: b.args[0], maps)
        assert (p.x[0] in _loose(p, result)) == loose


def test_pads_and_slices_are_out_of_step_where_they_move():
    p = Program((6, 4))
    assert _loose(p, p.pad(p.x[0], [1, 0], [0, 0])) == {p.x[0]: {0}}
    q = Program((6, 4))
    assert _loose(q, q.slice(q.x[0], [0, 1], [6, 2])) == {q.x[0]: {1}}


def test_what_is_picked_is_out_of_step_but_along_columns_of_its_own():
    p = Program((9, 4), (3, 4))
    found = _loose(p, p.gathered(p.x[0], p.x[1], 3, 4))
    assert found[p.x[0]] == {0}


def test_sums_read_their_operands_in_step():
    p = Program((6, 5), (5, 7), (6,))
    assert _loose(p, p.binary(p.matmul(*p.x[:2]), p.x[2], dims_map(2, [0]))) == {}
