"""Hashable keys of ops: equal keys mean that two ops compute the same values.

Attributes are numbered once each, by identity first, so that a big map or constant is hashed once however many ops
share it; a body is keyed with its own values numbered and the values it captures by identity.
"""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.ir import Operation, Region

from fuseline.analysis.structural_key import AttributeNumbers
from fuseline.analysis.structured import is_generic
from fuseline.ir.fast.direct import operands_of, ops_of
from fuseline.ir.scalar_ops import COMMUTATIVE_ON_INTEGERS
from fuseline.passes.cleanup.generic_key import GenericKeys


class ValueNumbering:
    """Numbers attributes, and makes keys of ops; keys of one numbering compare with each other only, while the values
    they name exist."""

    def __init__(self) -> None:
        self._numbers = AttributeNumbers()
        self._number = self._numbers.number
        self._generics = GenericKeys(self._numbers)

    def key(self, op: Operation) -> Hashable:
        """A key of `op` by its name, operands, attributes, result types and regions; locations do not enter, and
        neither does the order of a generic's loops and operands (`generic_key.py`)."""
        found = self._generics.key(op) if is_generic(op) else None
        return found if found is not None else self._key(op, {})

    def outside(self, op: Operation) -> Hashable:
        """The part of the key that is not in regions; ops with different ones are different."""
        return self._generics.outside(op) if is_generic(op) else self._outside(op, {})

    def region(self, region: Region) -> Hashable:
        """A key of everything in `region`."""
        return self._region(region, {})

    def _key(self, op: Operation, local: dict[int, int]) -> Hashable:
        """`local` numbers the values inside, from -1 down, by identity; others are their identity."""
        outside = self._outside(op, local)
        for result in op.results:
            local[id(result)] = -1 - len(local)
        return (outside, tuple([self._region(region, local) for region in op.regions])) if op.regions else outside

    def _outside(self, op: Operation, local: dict[int, int]) -> Hashable:
        number = self._number
        operands = [local.get(id(value), id(value)) for value in operands_of(op)]
        if type(op) in COMMUTATIVE_ON_INTEGERS:
            operands.sort()
        properties, attributes = self._numbers.of(op.properties), self._numbers.of(op.attributes)
        return (op.name, tuple(operands), properties, attributes, tuple([number(result.type) for result in op.results]))

    def _region(self, region: Region, local: dict[int, int]) -> Hashable:
        blocks: list[Hashable] = []
        for block in region.blocks:
            for argument in block.args:
                local[id(argument)] = -1 - len(local)
            types = tuple([self._number(argument.type) for argument in block.args])
            blocks.append((types, tuple([self._key(op, local) for op in ops_of(block)])))
        return tuple(blocks)
