"""What the families refuse, by code; the loop nest takes these."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import f16, i32
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import dims_map, identity_map
from fuseline.targets.cpu.families.contraction.convolution import ConvolutionFamily
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.family import Family, Refusal
from fuseline.targets.cpu.families.window.family import WindowFamily
from fuseline.targets.cpu.isa import machine
from tests.graphs.program import Program

dim = AffineExpr.dimension


def code(family: Family, view: DispatchView) -> str:
    found = family.accepts(view, machine("avx2"))
    assert isinstance(found, Refusal)
    assert found.detail
    return found.code


def plain_product() -> DispatchView:
    p = Program((4, 5), (5, 6))
    return p.dispatch(p.matmul(p.x[0], p.x[1]))


def test_each_family_wants_its_own_kind_of_root():
    p = Program((4, 5))
    elementwise = p.dispatch(p.relu(p.x[0]))
    assert code(ContractionFamily(), elementwise) == "not-a-contraction"
    assert code(ConvolutionFamily(), plain_product()) == "not-a-convolution"
    assert code(WindowFamily(), plain_product()) == "not-a-window"


def test_half_precision_is_refused():
    p = Program((4, 5), (5, 6), element=f16)
    assert code(ContractionFamily(), p.dispatch(p.matmul(p.x[0], p.x[1]))) == "element-type"


def test_integers_are_refused():
    p = Program((4, 5), (5, 6), element=i32)
    maps = [dims_map(3, [0, 2]), dims_map(3, [2, 1]), dims_map(3, [0, 1])]
    y = p.emit.generic(
        p.x[:2], [p.empty(4, 6)], maps, ["parallel", "parallel", "reduction"],
        lambda b: [b.op(arith.AddiOp, b.args[2], b.op(arith.MuliOp, b.args[0], b.args[1]))],
    ).results[0]  # fmt: skip
    assert code(ContractionFamily(), p.dispatch(y)) == "element-type"


def test_a_dot_product_has_no_columns():
    p = Program((3, 5), (3, 5))
    maps = [dims_map(2, [0, 1]), dims_map(2, [0, 1]), dims_map(2, [0])]
    assert code(ContractionFamily(), p.dispatch(p.multiply_add(p.x[0], p.x[1], p.zeros(3), maps, "pr"))) == "no-columns"


def test_an_empty_loop_is_refused():
    p = Program((4, 0), (0, 6))
    assert code(ContractionFamily(), p.dispatch(p.matmul(p.x[0], p.x[1]))) == "empty"


def test_a_reduction_in_one_operand_only():
    p = Program((4, 5, 3), (5, 6))
    maps = [dims_map(4, [0, 2, 3]), dims_map(4, [2, 1]), dims_map(4, [0, 1])]
    assert (
        code(ContractionFamily(), p.dispatch(p.multiply_add(p.x[0], p.x[1], p.zeros(4, 6), maps, "pprr")))
        == "loop-role"
    )


def test_a_result_beside_the_root():
    p = Program((4, 5), (5, 6), (7,))
    assert code(ContractionFamily(), p.dispatch(p.matmul(p.x[0], p.x[1]), p.relu(p.x[2]))) == "result-beside-root"


def test_an_epilogue_that_widens():
    p = Program((4, 5), (5, 6))
    y = p.matmul(p.x[0], p.x[1])
    wide = p.elementwise([y], p.empty(3, 4, 6), lambda b: b.args[0], [dims_map(3, [1, 2]), identity_map(3)])
    assert code(ContractionFamily(), p.dispatch(wide)) == "result-beside-root"


@pytest.mark.parametrize("family", ["contraction", "window"])
def test_a_second_reduction(family: str):
    p = Program((4, 5), (5, 6), (4, 6, 3))
    kinds = ["parallel", "parallel", "reduction"]
    maps = [dims_map(3, [0, 1, 2]), dims_map(3, [0, 1])]
    total = p.emit.generic(
        [p.x[2]], [p.zeros(4, 6)], maps, kinds, lambda b: [b.op(arith.AddfOp, b.args[1], b.args[0])]
    ).results[0]
    if family == "contraction":
        y = p.matmul(p.x[0], p.x[1])
        assert code(ContractionFamily(), p.dispatch(p.add(total, y))) == "second-reduction"
        return
    q = Program((3, 4, 6), (3, 4, 6))
    first = [dims_map(3, [2, 0, 1]), dims_map(3, [0, 1])]
    one, two = (
        q.emit.generic(
            [x], [q.zeros(4, 6)], first, kinds, lambda b: [b.op(arith.AddfOp, b.args[1], b.args[0])]
        ).results[0]
        for x in q.x
    )
    assert code(WindowFamily(), q.dispatch(q.add(one, two))) == "second-reduction"


MANY = 10
"""Taps along a line that are too many to be written out: windows of fewer go over strips."""


def pooled(*, channels_first: bool = False, arguments: int = 1, pixels: int = 6) -> tuple[Program, AffineMap]:
    p = Program(*[(8, 6, pixels) if channels_first else (6, pixels, 8)] * arguments)
    space = [dim(1) + dim(3), dim(2) + dim(4)]
    return p, AffineMap(5, 0, (dim(0), *space) if channels_first else (*space, dim(0)))


def test_a_pooling_whose_channels_are_not_contiguous():
    p, _ = pooled(channels_first=True, pixels=MANY + 20)
    kinds = ["parallel"] * 3 + ["reduction"] * 2
    maps = [
        AffineMap(5, 0, (dim(0), dim(1) * 2 + dim(3), dim(2) * 2 + dim(4))),
        dims_map(5, [3, 4]),
        dims_map(5, [1, 2, 0]),
    ]
    y = p.emit.generic(
        [p.x[0], p.empty(2, MANY)],
        [p.zeros(3, 11, 8)],
        maps,
        kinds,
        lambda b: [b.op(arith.MaximumfOp, b.args[2], b.args[0])],
    )
    assert code(WindowFamily(), p.dispatch(y.results[0])) == "channels-not-contiguous"


def test_a_pooling_of_a_computed_image():
    p, image = pooled(pixels=MANY + 20)
    kinds = ["parallel"] * 3 + ["reduction"] * 2
    maps = [image, dims_map(5, [3, 4]), dims_map(5, [1, 2, 0])]
    x = p.relu(p.x[0])
    y = p.emit.generic(
        [x, p.empty(2, MANY)],
        [p.zeros(5, 21, 8)],
        maps,
        kinds,
        lambda b: [b.op(arith.MaximumfOp, b.args[2], b.args[0])],
    )
    assert code(WindowFamily(), p.dispatch(y.results[0])) == "image-computed"


def test_a_window_over_two_images():
    p, image = pooled(arguments=2)
    kinds = ["parallel"] * 3 + ["reduction"] * 2
    maps = [image, image, dims_map(5, [3, 4]), dims_map(5, [1, 2, 0])]
    y = p.emit.generic(
        [*p.x, p.empty(2, 2)], [p.zeros(5, 5, 8)], maps, kinds,
        lambda b: [b.op(arith.AddfOp, b.args[3], b.op(arith.MaximumfOp, b.args[0], b.args[1]))],
    )  # fmt: skip
    assert code(WindowFamily(), p.dispatch(y.results[0])) == "window-body"


@pytest.mark.parametrize(("combine", "wanted"), [(arith.SubfOp, "window-body"), (arith.AddfOp, "")])
def test_a_window_that_depends_on_its_order(combine: type[arith.SubfOp | arith.AddfOp], wanted: str):
    """Places are walked as the image lies: what comes before what is not the program's."""
    p, image = pooled()
    y = p.emit.generic(
        [p.x[0], p.empty(2, 2)], [p.zeros(5, 5, 8)], [image, dims_map(5, [3, 4]), dims_map(5, [1, 2, 0])],
        ["parallel"] * 3 + ["reduction"] * 2, lambda b: [b.op(combine, b.args[2], b.args[0])],
    )  # fmt: skip
    view = p.dispatch(y.results[0])
    if wanted:
        assert code(WindowFamily(), view) == wanted
    else:
        assert not isinstance(WindowFamily().accepts(view, machine("avx2")), Refusal)


def test_a_pooling_to_one_element():
    p = Program((2, 2, 1))
    kinds = ["parallel"] * 3 + ["reduction"] * 2
    maps = [AffineMap(5, 0, (dim(1) + dim(3), dim(2) + dim(4), dim(0))), dims_map(5, [3, 4]), dims_map(5, [1, 2, 0])]
    y = p.emit.generic(
        [p.x[0], p.empty(2, 2)],
        [p.zeros(1, 1, 1)],
        maps,
        kinds,
        lambda b: [b.op(arith.MaximumfOp, b.args[2], b.args[0])],
    )
    assert code(WindowFamily(), p.dispatch(y.results[0])) == "no-channels"


def test_a_result_written_with_gaps():
    p = Program((4, 5), (5, 6), (8, 6))
    maps = [dims_map(3, [0, 2]), dims_map(3, [2, 1]), AffineMap(3, 0, (dim(0) * 2, dim(1)))]
    assert code(ContractionFamily(), p.dispatch(p.multiply_add(p.x[0], p.x[1], p.x[2], maps, "ppr"))) == "output-map"


def test_padding_across_two_window_loops():
    p = Program((9, 8))
    kinds = ["parallel"] * 2 + ["reduction"] * 2
    x = p.pad(p.x[0], [1, 0], [1, 0])
    maps = [AffineMap(4, 0, (dim(0) + dim(2) + dim(3), dim(1))), dims_map(4, [2, 3]), dims_map(4, [0, 1])]
    y = p.emit.generic(
        [x, p.empty(2, 2)], [p.zeros(9, 8)], maps, kinds, lambda b: [b.op(arith.MaximumfOp, b.args[2], b.args[0])]
    )
    assert code(WindowFamily(), p.dispatch(y.results[0])) == "window-map"
