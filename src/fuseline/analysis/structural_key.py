"""Structural identity of IR: equal keys mean equal code; names of values, symbols and locations do not enter.

Source: iree-org/iree#1144 and #4000 (what a deduplicator has to compare).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import lru_cache

from xdsl.ir import Attribute, Operation, Region

from fuseline.ir.fast.direct import operands_of, ops_of

IGNORED_PROPERTIES = frozenset({"sym_name", "sym_visibility", "function_ref"})
_NOTHING = frozenset[str]()


class AttributeNumbers:
    """Numbers for attributes, equal ones the same: by identity first, so that a big map or constant is hashed once
    however many ops share it."""

    def __init__(self) -> None:
        self._by_identity: dict[int, int] = {}
        self._by_value: dict[Attribute, int] = {}
        self._kept: list[Attribute] = []

    def number(self, attribute: Attribute) -> int:
        """The number of `attribute`."""
        number = self._by_identity.get(id(attribute))
        if number is None:
            number = self._by_value.setdefault(attribute, len(self._by_value))
            self._by_identity[id(attribute)] = number
            self._kept.append(attribute)  # so that the identity is not given to another attribute
        return number

    def of(self, parts: Mapping[str, Attribute], ignored: frozenset[str] = _NOTHING) -> Hashable:
        """What the properties or attributes in `parts` are, by name; those in `ignored` aside."""
        if not parts:
            return ()
        names = _sorted(tuple(parts), ignored)
        return names, tuple([self.number(parts[name]) for name in names])


@lru_cache(maxsize=256)
def _sorted(names: tuple[str, ...], ignored: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(name for name in names if name not in ignored))


def structural_key(op: Operation, numbers: AttributeNumbers) -> Hashable:
    """A hashable value that is equal for two ops exactly when their code is; comparable among keys made with the same
    `numbers`."""
    return _op_key(op, numbers, {})


def _op_key(op: Operation, numbers: AttributeNumbers, values: dict[int, int]) -> Hashable:
    """`values` numbers what was met, by identity."""
    operands = tuple([values.setdefault(id(value), len(values)) for value in operands_of(op)])
    properties, attributes = numbers.of(op.properties, IGNORED_PROPERTIES), numbers.of(op.attributes)
    for result in op.results:
        values[id(result)] = len(values)
    regions = tuple([_region_key(region, numbers, values) for region in op.regions]) if op.regions else ()
    return (
        op.name,
        operands,
        properties,
        attributes,
        tuple([numbers.number(result.type) for result in op.results]),
        regions,
    )


def _region_key(region: Region, numbers: AttributeNumbers, values: dict[int, int]) -> Hashable:
    blocks: list[Hashable] = []
    for block in region.blocks:
        for argument in block.args:
            values[id(argument)] = len(values)
        types = tuple([numbers.number(argument.type) for argument in block.args])
        blocks.append((types, tuple([_op_key(op, numbers, values) for op in ops_of(block)])))
    return tuple(blocks)
