"""Ops, blocks and regions made from their parts, without xDSL's constructors, which ask an op's definition about each
(see `direct.py`)."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from xdsl.dialects.builtin import UNKNOWN_LOC, LocationAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.ir.core import SSAValues
from xdsl.irdl import IRDLOperation, OptionalDef

from fuseline.ir.fast.direct import body_of, link_operands

OpT = TypeVar("OpT", bound=Operation)


def block_with(types: Sequence[Attribute]) -> Block:
    """An empty block with arguments of `types`."""
    block = Block.__new__(Block)
    block._first_op = block._last_op = None
    block._args = tuple([BlockArgument(type_, block, index, UNKNOWN_LOC) for index, type_ in enumerate(types)])
    return block


def region_with(block: Block) -> Region:
    """A region of one block, which belongs to none."""
    assert block.parent is None
    region = Region.__new__(Region)
    region._first_block = region._last_block = block
    block.parent = region
    return region


def take_body(op: Operation) -> Region:
    """A new region with the only block of the first region of `op`, which keeps an empty one."""
    emptied, block = op.regions[0], body_of(op)
    emptied._first_block = emptied._last_block = None
    block.parent = None
    return region_with(block)


def create_op(
    kind: type[OpT],
    operands: Sequence[SSAValue],
    types: Sequence[Attribute],
    properties: Mapping[str, Attribute],
    regions: Sequence[Region] = (),
    location: LocationAttr = UNKNOWN_LOC,
) -> OpT:
    """`kind.create(...)`: an op from its parts, for which the caller answers."""
    plain, defaults, attributes = _defaults(kind)
    if not plain:
        return kind.create(
            operands=operands, result_types=types, properties=properties, regions=regions, location=location
        )
    op = kind.__new__(kind)
    link_operands(op, operands)
    op.results = SSAValues([OpResult(type_, op, index) for index, type_ in enumerate(types)])
    op.properties = {**defaults, **properties} if defaults else dict(properties)
    op.attributes = dict(attributes)
    op.location = location
    op.regions = tuple(regions)
    for region in regions:
        assert region.parent is None
        region.parent = op
    return op


@lru_cache(maxsize=1024)
def _defaults(kind: type[Operation]) -> tuple[bool, dict[str, Attribute], dict[str, Attribute]]:
    """Whether nothing but filling in defaults follows the construction of a `kind`; its default properties and
    attributes."""
    if not issubclass(kind, IRDLOperation) or kind.__post_init__ is not IRDLOperation.__post_init__:
        return False, {}, {}
    definition = kind.get_irdl_definition()
    found = [
        {
            name: attribute_def.default_value
            for name, attribute_def in declared.items()
            if not isinstance(attribute_def, OptionalDef) and attribute_def.default_value is not None
        }
        for declared in (definition.properties, definition.attributes)
    ]
    return True, found[0], found[1]
