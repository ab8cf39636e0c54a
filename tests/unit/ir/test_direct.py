"""What `ir/fast/direct.py` does to the IR is what xDSL's own methods do, down to the order of uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from xdsl.dialects import arith, cf, scf, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, TensorType, f32, i32, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fuseline.ir.fast import build, direct
from fuseline.ir.provenance import location_of


def _constant(value: int) -> arith.ConstantOp:
    return arith.ConstantOp(IntegerAttr(value, IndexType()))


def _sums(seed: int, count: int = 9) -> tuple[Block, list[Operation]]:
    """A block of sums of random earlier values."""
    rng = np.random.default_rng(seed)
    ops: list[Operation] = [_constant(3), _constant(5)]
    for _ in range(count):
        left, right = (ops[int(i)].results[0] for i in rng.integers(len(ops), size=2))
        ops.append(arith.AddiOp(left, right))
    return Block(ops), ops


def _uses(ops: Sequence[Operation]) -> list[list[tuple[int, int]]]:
    """For every result of `ops` its users, by position, and the operands as which they use it; in the order of its
    uses."""
    position = {id(op): i for i, op in enumerate(ops)}
    return [[(position[id(use.operation)], use.index) for use in result.uses] for op in ops for result in op.results]


def _operands(ops: Sequence[Operation]) -> list[list[int]]:
    position = {id(op): i for i, op in enumerate(ops)}
    return [[position[id(value.owner)] for value in op.operands] for op in ops]


def _order(block: Block) -> list[int]:
    return [id(op) for op in block.ops]


def test_views():
    block, ops = _sums(1)
    assert direct.ops_of(block) == list(block.ops) == ops and direct.ops_of(Block()) == []
    assert list(direct.operands_of(ops[4])) == list(ops[4].operands)
    assert direct.operand_of(ops[4], 1) is ops[4].operands[1] and direct.result_of(ops[4]) is ops[4].results[0]
    for op in ops:
        assert direct.users_of_value(op.results[0]) == [use.operation for use in op.results[0].uses]
    module = ModuleOp([_constant(2)])
    assert direct.body_of(module) is module.body.block


Change = Callable[[list[Operation]], None]

CHANGES: dict[str, tuple[Change, Change]] = {
    "replace": (
        lambda ops: direct.replace_uses(ops[0].results[0], ops[1].results[0]),
        lambda ops: ops[0].results[0].replace_all_uses_with(ops[1].results[0]),
    ),
    "replace by itself": (
        lambda ops: direct.replace_uses(ops[0].results[0], ops[0].results[0]),
        lambda ops: ops[0].results[0].replace_all_uses_with(ops[0].results[0]),
    ),
    "replace where wanted": (
        lambda ops: direct.replace_uses_if(ops[0].results[0], ops[1].results[0], lambda user: ops.index(user) % 2 == 0),
        lambda ops: (
            ops[0].results[0].replace_uses_with_if(ops[1].results[0], lambda use: ops.index(use.operation) % 2 == 0)
        ),
    ),
    "operand": (
        lambda ops: direct.set_operand(ops[7], 1, ops[2].results[0]),
        lambda ops: ops[7].operands.__setitem__(1, ops[2].results[0]),
    ),
    "operands": (
        lambda ops: direct.set_operands(ops[6], [ops[5].results[0], ops[5].results[0]]),
        lambda ops: setattr(ops[6], "operands", [ops[5].results[0], ops[5].results[0]]),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("seed", range(4))
def test_uses_change_as_in_xdsl(name: str, seed: int):
    ours, theirs = CHANGES[name]
    (_, changed), (_, expected) = _sums(seed), _sums(seed)
    ours(changed)
    theirs(expected)
    assert _operands(changed) == _operands(expected)
    assert _uses(changed) == _uses(expected)


def test_replaced_value_hands_its_name_on():
    _, ops = _sums(2)
    ops[0].results[0].name_hint = "size"
    direct.replace_uses(ops[0].results[0], ops[1].results[0])
    assert ops[1].results[0].name_hint == "size"
    ops[2].results[0].name_hint = "other"
    direct.replace_uses(ops[1].results[0], ops[2].results[0])
    assert ops[2].results[0].name_hint == "other"


@pytest.mark.parametrize("place", [0, 4, 10])
def test_insertion(place: int):
    block, ops = _sums(3)
    new = _constant(8)
    direct.insert_before(new, ops[place])
    assert direct.ops_of(block) == [*ops[:place], new, *ops[place:]] and new.parent is block
    assert (
        list(reversed(block.ops)) == list(reversed(direct.ops_of(block))) and block.first_op is direct.ops_of(block)[0]
    )
    last = _constant(9)
    direct.append(last, block)
    assert block.last_op is last and list(block.ops)[-1] is last and last.prev_op is not None
    empty = Block()
    direct.append(only := _constant(1), empty)
    assert empty.first_op is empty.last_op is only


@pytest.mark.parametrize("place", [0, 4, 10])
def test_detached_op_stands_nowhere_and_keeps_its_operands(place: int):
    block, ops = _sums(8)
    before = _uses(ops)
    direct.detach(ops[place])
    rest = [op for op in ops if op is not ops[place]]
    assert direct.ops_of(block) == rest and list(reversed(block.ops)) == rest[::-1] and _uses(ops) == before
    assert ops[place].parent is ops[place].next_op is ops[place].prev_op is None


@pytest.mark.parametrize("count", [0, 3])
def test_ops_move_to_the_end_of_another_block(count: int):
    source, ops = _sums(9, 5)
    target = Block(there := [_constant(i) for i in range(count)])
    direct.move_ops(source, target)
    assert direct.ops_of(target) == [*there, *ops] and list(reversed(target.ops)) == [*there, *ops][::-1]
    assert all(op.parent is target for op in ops) and direct.ops_of(source) == [] and source.last_op is None
    direct.move_ops(source, target)
    assert direct.ops_of(target) == [*there, *ops]


def test_insertion_of_what_stands_elsewhere_is_refused():
    block, ops = _sums(4)
    with pytest.raises(AssertionError):
        direct.insert_before(ops[2], ops[5])
    with pytest.raises(AssertionError):
        direct.append(ops[2], block)


@pytest.mark.parametrize("place", ["first", "middle", "last", "only"])
def test_erase(place: str):
    def erased(
        erase: Callable[[Operation], None],
    ) -> tuple[list[list[int]], list[list[tuple[int, int]]], Operation, Block]:
        block, ops = _sums(5, 6)
        unused = arith.AddiOp(ops[0], ops[1])
        if place == "only":
            block = Block([unused])
        elif place == "last":
            block.add_op(unused)
        else:
            block.insert_op_before(unused, ops[0 if place == "first" else 4])
        erase(unused)
        return _operands(ops), _uses(ops), unused, block

    operands, uses, gone, block = erased(direct.erase)
    expected = erased(Rewriter.erase_op)
    assert (operands, uses) == expected[:2] and gone.parent is gone.next_op is gone.prev_op is None
    assert len(direct.ops_of(block)) == len(list(expected[3].ops)) == len(list(reversed(block.ops)))


def test_erase_of_what_is_used_is_refused():
    block, ops = _sums(6)
    used = next(op for op in ops if op.results[0].first_use is not None)
    with pytest.raises(ValueError, match="is used"):
        direct.erase(used)
    assert used.parent is block


def test_erase_reaches_into_regions():
    outer = _constant(4)
    body = Block([inner := arith.AddiOp(outer, outer), scf.YieldOp()], arg_types=[IndexType()])
    loop = scf.ForOp(outer, outer, outer, [], Region(body))
    block = Block([outer, loop])
    direct.erase(loop)
    assert outer.results[0].first_use is None and inner.parent is None and list(block.ops) == [outer]


def test_erase_drops_successors():
    target = Block()
    branch = cf.BranchOp(target)
    Block([branch])
    direct.erase(branch)
    assert target.first_use is None


def _values(count: int) -> list[SSAValue]:
    return [_constant(i).result for i in range(count)]


def test_created_op_equals_xdsls():
    left, right = _values(2)
    location = location_of(["node"])
    made = build.create_op(arith.AddiOp, [left, right], [IndexType()], {}, (), location)
    expected = arith.AddiOp.create(operands=[left, right], result_types=[IndexType()], location=location)
    assert (
        made.properties == expected.properties and made.attributes == expected.attributes and made.properties
    )  # a default is filled in
    assert made.location is location and made.parent is None and made.is_structurally_equivalent(expected)
    made.verify()
    assert [use.index for use in left.uses] == [0, 0] and [use.operation for use in left.uses] == [expected, made]


def test_created_properties_are_the_ops_own():
    properties = {"value": IntegerAttr(4, i64)}
    made = build.create_op(arith.ConstantOp, (), [i64], properties)
    made.properties["value"] = IntegerAttr(5, i64)
    assert properties == {"value": IntegerAttr(4, i64)}
    first, second = (build.create_op(arith.AddiOp, _values(2), [IndexType()], {}) for _ in range(2))
    first.attributes["mark"] = IntegerAttr(1, i32)
    first.properties.clear()
    assert not second.attributes and second.properties


def test_created_regions():
    block = build.block_with([f32, i32])
    assert [argument.type for argument in block.args] == [f32, i32] and [argument.index for argument in block.args] == [
        0,
        1,
    ]
    assert block.is_empty and block.args[0].owner is block
    module = build.create_op(ModuleOp, (), (), {}, [region := build.region_with(block)])
    assert module.regions == (region,) and region.parent is module and module.body.block is block
    with pytest.raises(AssertionError):
        build.create_op(ModuleOp, (), (), {}, [region])
    with pytest.raises(AssertionError):
        build.region_with(block)


def test_kinds_that_do_more_when_made_are_left_to_xdsl():
    class CountedOp(tensor.EmptyOp):
        made = 0

        def __post_init__(self) -> None:
            super().__post_init__()
            type(self).made += 1

    build.create_op(CountedOp, (), [TensorType(f32, [2])], {})
    assert CountedOp.made == 1


def test_insert_points_and_direct_insertion_agree():
    (ours, first), (theirs, second) = _sums(7), _sums(7)
    direct.insert_before(_constant(1), first[3])
    Rewriter.insert_op(_constant(1), InsertPoint.before(second[3]))
    assert len(_order(ours)) == len(_order(theirs)) and [op.name for op in ours.ops] == [op.name for op in theirs.ops]


def test_unused():
    _, ops = _sums(8)
    assert [direct.is_unused(op) for op in ops] == [not list(op.results[0].uses) for op in ops]
    assert any(direct.is_unused(op) for op in ops) and not all(direct.is_unused(op) for op in ops)


def test_taken_body():
    block = build.block_with([f32])
    module = ModuleOp(Region(block))
    region = build.take_body(module)
    assert region.block is block and block.parent is region and region.parent is None
    assert list(module.body.blocks) == [] and module.regions[0].parent is module
