"""Common subexpression elimination: of equal ops, the first stays and takes over the uses and the provenance of the
others.

    %a = math.exp %x          %a = math.exp %x      (from both source nodes)
    %b = math.exp %x    =>
    use(%a, %b)               use(%a, %a)

What a generic computes counts, not in which order its loops and the operands of what commutes are written
(`generic_key.py`); which of two forms stays does not depend on which came first (`written_form.py`). Works within one
block at a time: bodies and dispatch regions keep values of their own, so that ops which were cloned into a region on
purpose stay there.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from fuseline.analysis.structured import is_generic
from fuseline.ir.fast.direct import body_of, erase, ops_of, replace_uses
from fuseline.ir.provenance import carry
from fuseline.passes.cleanup.elimination import is_pure
from fuseline.passes.cleanup.value_numbering import ValueNumbering
from fuseline.passes.cleanup.written_form import WrittenForms


def merge_equal(block: Block, numbering: ValueNumbering) -> None:
    """Merge equal pure ops of `block`, after those of the blocks inside it."""
    ops = ops_of(block)
    # Equal ops are of one kind; most bodies have one of each.
    if len({type(op) for op in ops}) == len(ops) and not any([op.regions for op in ops]):
        return
    known, forms = _Known(numbering), WrittenForms(block)
    merged: dict[Operation, list[Operation]] = {}
    for op in ops:
        for region in op.regions:
            for inner in region.blocks:
                merge_equal(inner, numbering)
        if not is_pure(op):
            continue
        first = known.first_like(op)
        if first is not op:
            if is_generic(op) and is_generic(first):
                forms.settle(first, op)
            _replace_uses(op, first)
            merged.setdefault(first, []).append(op)
    for first, others in merged.items():
        carry(others, (first,))  # at once: one op may stand for hundreds
        for op in others:
            erase(op)


class _Known:
    """The ops met so far. Bodies are compared only where two ops are alike from outside: most differ in what they
    read."""

    def __init__(self, numbering: ValueNumbering) -> None:
        self._numbering = numbering
        self._outside: dict[Hashable, Operation] = {}
        self._whole: dict[Hashable, Operation] = {}

    def first_like(self, op: Operation) -> Operation:
        """The first op that equals `op`, itself where none did."""
        first = self._outside.setdefault(self._numbering.outside(op), op)
        if first is op or not op.regions:
            return first
        self._whole.setdefault(self._numbering.key(first), first)
        return self._whole.setdefault(self._numbering.key(op), op)


def _replace_uses(op: Operation, first: Operation) -> None:
    for old, new in zip(op.results, first.results, strict=True):
        replace_uses(old, new)


@dataclass(frozen=True)
class CsePass(ModulePass):
    """Merge equal ops."""

    name = "cse"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Merge within each block of `op`."""
        merge_equal(body_of(op), ValueNumbering())


EXPORT = CsePass
