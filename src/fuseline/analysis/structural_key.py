"""Structural identity of IR: equal keys mean equal code; names of values, symbols and locations do not enter.

A constant counts where it is read: where it stands, and whether two readers share it, is not code. Source:
iree-org/iree#1144 and #4000 (what a deduplicator has to compare).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Hashable, Mapping
from functools import lru_cache

from xdsl.dialects.arith import ConstantOp
from xdsl.ir import Attribute, Operation, OpResult, Region, SSAValue

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

    def of(self, entries: Mapping[str, Attribute], ignored: frozenset[str] = _NOTHING) -> Hashable:
        """What the properties or attributes in `entries` are, by name; those in `ignored` aside."""
        if not entries:
            return ()
        names = _sorted(tuple(entries), ignored)
        return names, tuple([self.number(entries[name]) for name in names])


class StableNumbers(AttributeNumbers):
    """Numbers that are the same in every process: digests (64 bits) of how attributes are written."""

    def number(self, attribute: Attribute) -> int:
        """The number of `attribute`."""
        number = self._by_value.get(attribute)
        if number is None:
            digest = hashlib.blake2b(str(attribute).encode(), digest_size=8).digest()
            number = self._by_value[attribute] = int.from_bytes(digest, "little")
        return number


@lru_cache(maxsize=256)
def _sorted(names: tuple[str, ...], ignored: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(name for name in names if name not in ignored))


def structural_key(
    op: Operation, numbers: AttributeNumbers, erased: Collection[tuple[Operation, int]] = frozenset()
) -> Hashable:
    """A hashable value that is equal for two ops exactly when their code is; comparable among keys made with the same
    `numbers`.

    Args:
        erased: readers, as operations and operand numbers, of whose constants only the type counts.
    """
    return KeyBuilder(numbers, erased).key(op)


def structural_digest(op: Operation, size: int = 6) -> str:
    """A digest of `size` bytes, as hexadecimal digits, that is equal for two ops whose code is, in every process."""
    return hashlib.blake2b(repr(structural_key(op, StableNumbers())).encode(), digest_size=size).hexdigest()


class KeyBuilder:
    """The key of an op and what is inside it, built in one traversal; `values` numbers what was met, by identity."""

    def __init__(self, numbers: AttributeNumbers, erased: Collection[tuple[Operation, int]] = frozenset()) -> None:
        self.numbers, self.erased = numbers, erased
        self.values: dict[int, int] = {}

    def key(self, op: Operation) -> Hashable:
        """The key of `op`, which may read what was met before."""
        operands = tuple([self._operand(op, i, value) for i, value in enumerate(operands_of(op))])
        said = self.said(op)
        for result in op.results:
            self.values[id(result)] = len(self.values)
        regions = tuple([self._region(region) for region in op.regions]) if op.regions else ()
        return op.name, operands, said, tuple([self.form(result.type) for result in op.results]), regions

    def said(self, op: Operation) -> Hashable:
        """What the properties and attributes of `op` say."""
        return self.numbers.of(op.properties, IGNORED_PROPERTIES), self.numbers.of(op.attributes)

    def form(self, attribute: Attribute) -> Hashable:
        """What counts of a type, or of the value of a constant."""
        return self.numbers.number(attribute)

    def _operand(self, op: Operation, index: int, value: SSAValue) -> Hashable:
        if type(value) is OpResult and type(value.op) is ConstantOp:
            known = value.type if (op, index) in self.erased else value.op.value
            return "constant", self.form(known)
        return self.values.setdefault(id(value), len(self.values))

    def _region(self, region: Region) -> Hashable:
        blocks: list[Hashable] = []
        for block in region.blocks:
            for argument in block.args:
                self.values[id(argument)] = len(self.values)
            types = tuple([self.form(argument.type) for argument in block.args])
            blocks.append((types, tuple([self.key(op) for op in ops_of(block) if type(op) is not ConstantOp])))
        return tuple(blocks)
