"""Hashable keys of ops: equal keys mean that two ops compute the same values.

Attributes are numbered once each, by identity first, so that a big map or constant is hashed once however many ops share it; a body is
keyed with its own values numbered and the values it captures by identity.
"""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation, Region, SSAValue

_COMMUTATIVE = (arith.AddiOp, arith.MuliOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp, arith.MaxSIOp, arith.MinSIOp, arith.MaxUIOp, arith.MinUIOp)


class ValueNumbering:
    """Numbers attributes, and makes keys of ops; keys of one numbering compare with each other only."""

    def __init__(self) -> None:
        self._by_identity: dict[int, int] = {}
        self._by_value: dict[Attribute, int] = {}
        self._kept: list[Attribute] = []

    def attribute(self, attribute: Attribute) -> int:
        """The number of `attribute`; equal attributes have one number."""
        number = self._by_identity.get(id(attribute))
        if number is None:
            number = self._by_value.setdefault(attribute, len(self._by_value))
            self._by_identity[id(attribute)] = number
            self._kept.append(attribute)  # so that the identity is not given to another attribute
        return number

    def key(self, op: Operation) -> Hashable:
        """A key of `op` by its name, operands, attributes, result types and regions; locations do not enter."""
        return self._key(op, {})

    def _key(self, op: Operation, local: dict[SSAValue, int]) -> Hashable:
        operands = [local.get(value, value) for value in op.operands]
        if isinstance(op, _COMMUTATIVE):
            operands.sort(key=_order)
        properties = tuple((name, self.attribute(value)) for name, value in sorted(op.properties.items()))
        attributes = tuple((name, self.attribute(value)) for name, value in sorted(op.attributes.items()))
        types = tuple(self.attribute(result.type) for result in op.results)
        for result in op.results:
            local[result] = len(local)
        regions = tuple(self._region(region, local) for region in op.regions)
        return (op.name, tuple(operands), properties, attributes, types, regions)

    def _region(self, region: Region, local: dict[SSAValue, int]) -> Hashable:
        blocks: list[Hashable] = []
        for block in region.blocks:
            for argument in block.args:
                local[argument] = len(local)
            types = tuple(self.attribute(argument.type) for argument in block.args)
            blocks.append((types, tuple(self._key(op, local) for op in block.ops)))
        return tuple(blocks)


def _order(operand: SSAValue | int) -> tuple[int, int]:
    return (0, operand) if isinstance(operand, int) else (1, id(operand))
