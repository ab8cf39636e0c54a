"""What is computed at compile time: how large it may be, what it is called, and what is given back for it."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import arith, func, linalg, math, tensor
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, DenseResourceAttr, IndexType, ModuleOp, TensorType, f32, i64
from xdsl.ir import Block, OpResult, Region, SSAValue

from fuseline.ir.build import PARALLEL, REDUCTION, Body, Emitter, dims_map, identity_map
from fuseline.ir.constant_budget import ALWAYS_WORDS, ConstantBudget, folded_name
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.fast.create import create_constant
from fuseline.ir.splats import one_element, splat_attribute
from fuseline.passes.cleanup.fold_constants import ALWAYS_BYTES, MOST_BYTES, ConstantFolder, FoldConstantsPass
from fuseline.passes.layout.rewriting.pads import pad

SOME = ALWAYS_BYTES // 4 + 4000
"""More numbers in f32 than are stored whatever they are made from."""


class Program:
    """A block with a weight `w` of `size` numbers, in which folding is tried."""

    def __init__(self, size: int = SOME) -> None:
        self.ctx: CompilerContext = new_context()
        self.block = Block(arg_types=[TensorType(f32, [size])])
        self.at = Emitter.at_end(self.block, ["node"])
        self.size = size
        self.numbers = np.random.default_rng(3).standard_normal(size).astype(np.float32)
        self.w = self.at.constant(self.numbers, self.ctx, "w")

    def padded(self, value: SSAValue, more: int) -> SSAValue:
        (size,) = value.type.get_shape()  # pyright: ignore[reportAttributeAccessIssue]
        return pad(self.at, value, [0], [more], self.at.scalar(0.0, f32), [size + more]).result

    def folded(self, *results: SSAValue, left: int | None = None, most_bytes: int | None = None) -> ConstantFolder:
        """Fold, with so much left for constants."""
        self.block.add_op(func.ReturnOp(*results))
        folder = ConstantFolder(self.ctx, ConstantBudget(self.ctx.resources, self.block.ops))
        if left is not None:
            folder.budget.left = left
        if most_bytes is not None:
            folder.most_bytes = most_bytes
        folder.run(self.block)
        return folder

    def result(self, number: int = 0) -> SSAValue:
        end = self.block.last_op
        assert end is not None
        return end.operands[number]

    def array(self, number: int = 0) -> np.ndarray:
        """The constant that is returned now."""
        value = self.result(number)
        assert isinstance(value, OpResult) and isinstance(value.op, arith.ConstantOp)
        assert isinstance(value.op.value, DenseResourceAttr)
        return self.ctx.resources[value.op.value.resource_handle.data]

    def is_folded(self, number: int = 0) -> bool:
        return isinstance(self.result(number).owner, arith.ConstantOp)


@pytest.mark.parametrize(
    ("size", "more", "expected"),
    [
        (SOME, SOME * 3, True),
        (SOME, SOME * 3 + 1, False),
        (100, ALWAYS_BYTES // 4 - 100, True),
        (100, ALWAYS_BYTES // 4 - 99, False),
    ],
    ids=["thrice as much", "more than that", "little", "more than that"],
)
def test_a_pad_may_be_four_times_as_large_or_small(size: int, more: int, expected: bool):
    p = Program(size)
    p.folded(p.padded(p.w, more))
    assert p.is_folded() == expected
    if expected:
        np.testing.assert_array_equal(p.array(), np.pad(p.numbers, [(0, more)]))


@pytest.mark.parametrize(("more", "expected"), [(SOME // 2, True), (SOME // 2 + 1, False)])
def test_another_result_may_be_half_as_large_again(more: int, expected: bool):
    """What is read again from the start."""
    p = Program()

    def body(b: Body) -> SSAValue:
        wrapped = b.op(arith.RemUIOp, b.op(linalg.ops.IndexOp, 0), b.constant(SOME, IndexType()))
        return b.op(tensor.ExtractOp, p.w, [wrapped], f32)

    p.folded(p.at.elementwise([], p.at.empty(f32, [SOME + more]), body, []))
    assert p.is_folded() == expected


@pytest.mark.parametrize(("left", "expected"), [(SOME + 500, True), (SOME + 499, False)])
def test_all_constants_have_a_budget(left: int, expected: bool):
    p = Program()
    folder = p.folded(p.padded(p.w, 500), left=left)
    assert p.is_folded() == expected
    assert folder.budget.left == (left - (SOME + 500) + SOME if expected else left)  # the weight is read no more


def test_what_others_read_is_not_given_back():
    p = Program()
    folder = p.folded(p.padded(p.w, 500), p.w, left=1 << 20)
    assert p.is_folded() and folder.budget.left == (1 << 20) - (SOME + 500)


@pytest.mark.parametrize(("spare", "expected"), [(0, True), (-1, False)])
def test_an_evaluation_may_hold_so_many_bytes(spare: int, expected: bool):
    p = Program()
    p.folded(p.padded(p.w, 500), most_bytes=4 * (SOME + 500) + spare)
    assert p.is_folded() == expected


@pytest.mark.parametrize(("spare", "expected"), [(0, True), (-1, False)])
def test_what_is_one_number_everywhere_is_made_whole_where_it_is_worked_with(spare: int, expected: bool):
    """What is read of it beside stored weights takes memory, once however often it is read."""
    p = Program()
    ones = p.at.fill(1.5, p.at.empty(f32, [SOME]))
    y = p.at.elementwise(
        [p.w, ones, ones],
        p.at.empty(f32, [SOME]),
        lambda b: b.op(arith.AddfOp, b.op(arith.AddfOp, b.args[0], b.args[1]), b.args[2]),
    )
    p.folded(y, most_bytes=2 * 4 * SOME + spare)
    assert p.is_folded() == expected


@pytest.mark.parametrize(("spare", "expected"), [(0, True), (-1, False)])
def test_memory_that_nobody_has_written_to_is_not_worked_with(spare: int, expected: bool):
    """The one weight of a model is turned, too."""
    p = Program()
    y = p.at.elementwise([p.w], p.at.empty(f32, [SOME]), lambda b: b.op(arith.NegfOp, b.args[0]))
    p.folded(y, most_bytes=4 * SOME + spare)
    assert p.is_folded() == expected


def test_limits_come_from_what_the_model_holds():
    p = Program()
    folder = ConstantFolder(p.ctx, ConstantBudget(p.ctx.resources, p.block.ops))
    assert folder.most_bytes == MOST_BYTES
    assert folder.budget.left == ALWAYS_WORDS
    resources = {"w": np.empty(ALWAYS_WORDS + 7, np.float32), folded_name("w"): np.empty(5, np.float32)}
    assert ConstantBudget(resources, []).left == 2 * (ALWAYS_WORDS + 7)
    assert ConstantBudget({"w": np.empty(ALWAYS_WORDS, np.float64)}, []).left == 4 * ALWAYS_WORDS
    assert ConstantBudget({"w": np.empty(ALWAYS_WORDS, np.int8)}, []).left == 2 * ALWAYS_WORDS
    p.ctx.resources["large"] = np.empty(MOST_BYTES + 8, np.int8)
    assert ConstantFolder(p.ctx, ConstantBudget({}, [])).most_bytes == MOST_BYTES + 8 + p.numbers.nbytes


def test_a_constant_in_the_text_counts_as_a_weight():
    p = Program()
    type_ = TensorType(f32, [SOME])
    numbers = DenseIntOrFPElementsAttr.from_list(type_, [float(number) for number in p.numbers])
    inline = p.at.add(arith.ConstantOp(numbers)).result
    folder = p.folded(p.padded(inline, SOME // 2), p.w, left=2 * SOME)
    assert p.is_folded()
    np.testing.assert_array_equal(p.array(), np.pad(p.numbers, [(0, SOME // 2)]))
    assert folder.budget.left == 2 * SOME - (SOME + SOME // 2) + SOME


def test_a_chain_keeps_nothing_in_between():
    p = Program()
    once = p.padded(p.w, 500)
    p.folded(p.padded(once, 300))
    np.testing.assert_array_equal(p.array(), np.pad(p.numbers, [(0, 800)]))
    assert sorted(p.ctx.resources) == ["w", "w_folded_1"]
    assert [type(op) for op in p.block.ops if isinstance(op, tensor.PadOp)] == []
    value = p.result()
    assert isinstance(value, OpResult) and "node" in str(value.op.location)


@pytest.mark.parametrize(
    ("name", "folded"),
    [("w", "w_folded"), ("w_folded", "w_folded"), ("w_folded_12", "w_folded"), ("w_folded_1_2", "w_folded")],
)
def test_names_do_not_grow(name: str, folded: str):
    assert folded_name(name) == folded


def test_one_number_everywhere_stays_one_number():
    """However large it is: nothing is stored."""
    p = Program()
    large = TensorType(f32, [1 << 20, 1 << 14])
    splat = p.at.add(create_constant(splat_attribute(large, 0.25), large)).result
    out = p.at.empty(f32, [1 << 14, 1 << 20])
    turned = p.at.generic(
        [splat], [out], [dims_map(2, [1, 0]), identity_map(2)], [PARALLEL] * 2, lambda b: [b.op(math.SqrtOp, b.args[0])]
    ).results[0]
    summed = p.at.generic(
        [splat],
        [p.at.fill(0.0, p.at.empty(f32, [1 << 20]))],
        [identity_map(2), dims_map(2, [0])],
        [PARALLEL, REDUCTION],
        lambda b: [b.op(arith.AddfOp, b.args[0], b.args[1])],
    ).results[0]
    p.folded(turned, summed, left=0)
    made = p.result()
    assert isinstance(made, OpResult) and isinstance(made.op, arith.ConstantOp)
    assert isinstance(made.op.value, DenseIntOrFPElementsAttr) and one_element(made.op.value) == 0.5
    assert made.type == TensorType(f32, [1 << 14, 1 << 20])
    assert not p.is_folded(1)


def test_places_are_no_one_number():
    p = Program()
    large = TensorType(f32, [1 << 26])
    splat = p.at.add(create_constant(splat_attribute(large, 0.25), large)).result
    e = p.at

    def body(b: Body) -> SSAValue:
        position = b.op(arith.IndexCastOp, b.op(linalg.ops.IndexOp, 0), i64)
        return b.op(arith.AddfOp, b.args[0], b.op(arith.SIToFPOp, position, f32))

    p.folded(e.elementwise([splat], e.empty_like(splat), body))
    assert not p.is_folded()


def test_fills_shapes_and_what_is_given_stay():
    p = Program()
    fill = p.at.fill(1.0, p.at.empty(f32, [4]))
    twice = p.at.elementwise(
        [p.block.args[0], p.w], p.at.empty_like(p.w), lambda b: b.op(arith.AddfOp, b.args[0], b.args[1])
    )
    p.folded(fill, twice)
    assert isinstance(p.result(0).owner, linalg.ops.FillOp)
    assert isinstance(p.result(1).owner, linalg.ops.GenericOp)


def test_every_function_is_folded_on_one_budget():
    p = Program()
    y = p.padded(p.w, 500)
    p.block.add_op(func.ReturnOp(y))
    function = func.FuncOp("main", ([TensorType(f32, [SOME])], [TensorType(f32, [SOME + 500])]), Region(p.block))
    outside = func.FuncOp.external("host", [f32], [f32])
    FoldConstantsPass().apply(p.ctx, ModuleOp([outside, function]))
    np.testing.assert_array_equal(p.array(), np.pad(p.numbers, [(0, 500)]))
