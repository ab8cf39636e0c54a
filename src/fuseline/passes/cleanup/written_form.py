"""Which of two generics of one value is written as the first of them: the program that comes out does not depend on
which of them the source has first.

    mul(%x, %r)  ..  mul(%r, %x)        or the other way round:  one form stays, whichever came first

Forms are ordered by their text (maps and body), then by what their inputs are made of: names, weights and the order of
the program are no part of either.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from xdsl.dialects import linalg
from xdsl.ir import Block, Operation, SSAValue

from fuseline.analysis.code_text import Texts, code_text, digest
from fuseline.analysis.structured import StructuredOp, captured
from fuseline.ir.fast.direct import operands_of, ops_of, set_operands
from fuseline.ir.fast.nesting import ops_inside


class WrittenForms:
    """Orders the forms of the generics of one block that have equal keys (`generic_key.py`)."""

    def __init__(self, block: Block) -> None:
        self._block, self._texts = block, Texts()

    def settle(self, first: linalg.ops.GenericOp, other: linalg.ops.GenericOp) -> None:
        """Write `first`, which stands before `other` and will stay, as the first of their forms."""
        if self._is_less(other, first) and _ids(captured(other)) <= _ids(captured(first)):
            _write_as(first, other)

    def _is_less(self, op: linalg.ops.GenericOp, than: linalg.ops.GenericOp) -> bool:
        texts = [tuple(code_text(one, self._texts)) for one in (op, than)]
        if texts[0] != texts[1]:
            return texts[0] < texts[1]
        inputs = [StructuredOp(one).inputs for one in (op, than)]
        digests = [[self._digests.get(id(value), "") for value in one] for one in inputs]
        return digests[0] < digests[1]

    @cached_property
    def _digests(self) -> dict[int, str]:
        """By the identity of a value what it is made of, the same for all forms of it."""
        found = {id(argument): f"argument {argument.index}" for argument in self._block.args}
        for op in ops_of(self._block):
            inputs = sorted({found.get(id(value), "") for value in operands_of(op)})
            made_of = digest(op.name, *_parts(op), "|", *inputs, size=8)
            found |= {id(result): f"{made_of}.{i}" for i, result in enumerate(op.results)}
        return found


def _parts(op: Operation) -> list[str]:
    """The ops in a body, by name, and the types of results."""
    return [*sorted([inner.name for inner in ops_inside(op)]), "|", *[str(result.type) for result in op.results]]


def _ids(values: Iterable[SSAValue]) -> set[int]:
    return set(map(id, values))


def _write_as(first: linalg.ops.GenericOp, other: linalg.ops.GenericOp) -> None:
    """Exchange the bodies of two generics and let the first read as the other does; it keeps what its results start
    from."""
    set_operands(first, [*StructuredOp(other).inputs, *StructuredOp(first).outputs])
    first.properties = dict(other.properties)
    bodies = [op.detach_region(0) for op in (first, other)]
    first.add_region(bodies[1])
    other.add_region(bodies[0])
