"""What of a kernel is no number, op by op: kernels of one outline may be one kernel, others are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from fuseline.targets.cpu.kernel_ir.types import I64, Block, Kernel, Loop, Value, When

EFFECTS = frozenset({"load", "store", "gather", "scatter", "prefetch"})


def is_index_work(value: Value) -> bool:
    """Whether a value is index arithmetic, or made of it alone: what kernels compute of their numbers."""
    if value.op in EFFECTS or value.type.is_float:
        return value.op == "splat"
    if value.op in ("mask", "splat", "select_address"):
        return True
    return value.type.lanes == 1 and (value.type == I64 or value.type.dtype in ("i1", "i32"))


class Step(NamedTuple):
    """An op that is traversed side by side with others, and the divisions before it."""

    op: Any
    divisions: Sequence[Value]


def steps_of(block: Block) -> Iterator[Step]:
    """What of a block is no index arithmetic, in order."""
    divisions: list[Value] = []
    for op in block.ops:
        if not (isinstance(op, Value) and is_index_work(op)):
            yield Step(op, divisions)
            divisions = []
        elif op.op in ("udiv", "urem"):
            divisions.append(op)


def outline(kernel: Kernel) -> tuple[str, ...]:
    """The buffers, effects, control flow and arithmetic on data of a kernel, in order."""
    memories = (*kernel.bindings, *kernel.scratch, *kernel.tables)
    buffers = [f"{memory.kind} {memory.name} of {memory.dtype}" for memory in memories]
    return (f"{len(kernel.sizes)} sizes", *buffers, *ops_of(kernel.body))


def ops_of(block: Block) -> Iterator[str]:
    """The effects, control flow and arithmetic on data of a block, in order."""
    for op in block.ops:
        if isinstance(op, Value):
            if not is_index_work(op):
                yield f"{op.op} {op.type} {op.attr if op.op != 'shuffle' else hash(op.attr)}"
        elif isinstance(op, Loop):
            yield f"loop in steps of {op.step} with {len(op.carried)} values"
            yield from ops_of(op.body)
            yield "end of a loop"
        elif isinstance(op, When):
            yield f"branch with {len(op.results)} values"
            yield from ops_of(op.then)
            yield "otherwise"
            yield from ops_of(op.otherwise)
            yield "end of a branch"
        else:
            yield f"loop while, with {len(op.carried)} values"
            yield from ops_of(op.test)
            yield from ops_of(op.body)
            yield "end of a loop"


def first_difference(one: Sequence[str], other: Sequence[str]) -> str:
    """The first op in which two outlines differ, in words."""
    for number, (a, b) in enumerate(zip_longest(one, other, fillvalue="the end")):
        if a != b:
            return f"op {number}: {a} beside {b}"
    return "nothing but numbers"
