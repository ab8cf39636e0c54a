"""xDSL's IR read and changed without the views it makes and the checks it runs at each access.

`op.operands`, `block.ops` and `value.uses` are objects made anew whenever they are asked for, `list(block.ops)` walks
the block twice, and inserting or erasing an op asks its ancestors and its results. A compile does each a hundred
thousand times. What stands here does the same to the same fields, in the same order (uses too: passes walk them), at a
third of the time. Nothing but this file and `build.py`, which makes ops, touches the private fields of xDSL 0.74, to
which the project is pinned.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.ir.core import SSAValues, Use


def operands_of(op: Operation) -> tuple[SSAValue, ...]:
    """The operands of `op`, as they are now."""
    return op._operands


def operand_of(op: Operation, index: int) -> SSAValue:
    """Operand `index` of `op`."""
    return tuple.__getitem__(op._operands, index)


def ops_of(block: Block) -> list[Operation]:
    """The ops of `block`, in order; without those in their regions."""
    found: list[Operation] = []
    op = block._first_op
    while op is not None:
        found.append(op)
        op = op._next_op
    return found


def collect_inside(op: Operation, found: list[Operation], blocks: set[int] | None) -> None:
    """Append every op in the regions of `op`, at any depth, in order; the identities of their blocks are added to
    `blocks`."""
    for region in op.regions:
        block = region._first_block
        while block is not None:
            if blocks is not None:
                blocks.add(id(block))
            inner = block._first_op
            while inner is not None:
                found.append(inner)
                if inner.regions:
                    collect_inside(inner, found, blocks)
                inner = inner._next_op
            block = block._next_block


def body_of(op: Operation) -> Block:
    """The only block of the first region of `op`."""
    block = op.regions[0]._first_block
    assert block is not None
    return block


def last_of(block: Block) -> Operation | None:
    """The last op of `block`, None where it has none."""
    return block._last_op


def move_ops(source: Block, target: Block) -> None:
    """Put all ops of `source` at the end of `target`, in order."""
    first, last = source._first_op, target._last_op
    if first is None:
        return
    op: Operation | None = first
    while op is not None:
        op.parent = target
        op = op._next_op
    first._prev_op = last
    if last is None:
        target._first_op = first
    else:
        last._next_op = first
    target._last_op = source._last_op
    source._first_op = source._last_op = None


def result_of(op: Operation) -> OpResult[Any]:
    """The first result of `op`."""
    return tuple.__getitem__(op.results, 0)


def is_unused(op: Operation) -> bool:
    """Whether nothing reads a result of `op`."""
    for result in op.results:
        if result.first_use is not None:
            return False
    return True


def users_of_value(value: SSAValue) -> list[Operation]:
    """The op of every use of `value`, the latest use first."""
    found: list[Operation] = []
    use = value.first_use
    while use is not None:
        found.append(use._operation)
        use = use._next_use
    return found


def link_operands(op: Operation, values: Sequence[SSAValue]) -> None:
    """Let `op`, which reads nothing, read `values`."""
    op._operands = SSAValues(values)
    uses = [Use(op, index) for index in range(len(values))]
    for value, use in zip(values, uses, strict=True):
        head = value.first_use
        if head is not None:
            use._next_use = head
            head._prev_use = use
        value.first_use = use
    op._operand_uses = tuple(uses)


def set_operands(op: Operation, values: Sequence[SSAValue]) -> None:
    """Let `op` read `values` in place of all its operands."""
    _drop_operands(op)
    link_operands(op, values)


def set_operand(op: Operation, index: int, value: SSAValue) -> None:
    """Let `op` read `value` as operand `index`."""
    use = op._operand_uses[index]
    values = list(op._operands)
    values[index].remove_use(use)
    value.add_use(use)
    values[index] = value
    op._operands = SSAValues(values)


def set_type(value: SSAValue, type_: Attribute) -> None:
    """Let `value` have `type_`; the caller answers for the op that makes it and for those that read it."""
    value._type = type_


def permute_arguments(block: Block, order: Sequence[int]) -> None:
    """Let the arguments of `block` stand in the order of these numbers of theirs."""
    block._args = tuple([block._args[i] for i in order])
    for index, argument in enumerate(block._args):
        argument.index = index


def _drop_operands(op: Operation) -> None:
    for value, use in zip(op._operands, op._operand_uses, strict=True):
        before, after = use._prev_use, use._next_use
        if before is None:
            value.first_use = after
        else:
            before._next_use = after
        if after is not None:
            after._prev_use = before


def replace_uses(old: SSAValue, new: SSAValue) -> None:
    """Let everything that reads `old` read `new`, which takes over the name of `old` if it has none."""
    if new is old:
        return
    use, head = old.first_use, new.first_use
    while use is not None:
        after = use._next_use
        values = list(use._operation._operands)
        values[use._index] = new
        use._operation._operands = SSAValues(values)
        use._prev_use, use._next_use = None, head
        if head is not None:
            head._prev_use = use
        head, use = use, after
    old.first_use, new.first_use = None, head
    if new._name is None:
        new._name = old._name


def replace_uses_if(old: SSAValue, new: SSAValue, wanted: Callable[[Operation], bool]) -> None:
    """Let the ops of which `wanted` is true read `new` in place of `old`; it takes over the name of `old` if it has
    none."""
    use = old.first_use
    while use is not None:
        after = use._next_use
        if wanted(use._operation):
            set_operand(use._operation, use._index, new)
        use = after
    if new._name is None:
        new._name = old._name


def insert_before(op: Operation, position: Operation) -> None:
    """Put `op`, which stands nowhere, right before `position`."""
    block = position.parent
    assert block is not None and op.parent is None
    before = position._prev_op
    op.parent, op._prev_op, op._next_op = block, before, position
    position._prev_op = op
    if before is None:
        block._first_op = op
    else:
        before._next_op = op


def append(op: Operation, block: Block) -> None:
    """Put `op`, which stands nowhere, at the end of `block`."""
    assert op.parent is None
    last = block._last_op
    op.parent, op._prev_op, op._next_op = block, last, None
    block._last_op = op
    if last is None:
        block._first_op = op
    else:
        last._next_op = op


def detach(op: Operation) -> None:
    """Take `op` out of its block."""
    block = op.parent
    assert block is not None
    before, after = op._prev_op, op._next_op
    if before is None:
        block._first_op = after
    else:
        before._next_op = after
    if after is None:
        block._last_op = before
    else:
        after._prev_op = before
    op._prev_op = op._next_op = op.parent = None


def erase(op: Operation) -> None:
    """Take `op` out of its block, and it and all inside it off what they read. Raises ValueError where a result is
    used."""
    for result in op.results:
        if result.first_use is not None:
            raise ValueError(f"a result of {op.name} is used")
    if op.parent is not None:
        detach(op)
    _drop(op)


def _drop(op: Operation) -> None:
    op.parent = None
    _drop_operands(op)
    op._operand_uses = ()
    for use in op._successor_uses:
        op._successors[use._index].remove_use(use)
    op._successor_uses, op._successors = (), ()
    for region in op.regions:
        region.parent = None
        block = region._first_block
        while block is not None:
            following = block._next_block
            block.parent = block._next_block = block._prev_block = None
            for inner in ops_of(block):
                _drop(inner)
            block = following
