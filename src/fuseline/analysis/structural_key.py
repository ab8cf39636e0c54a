"""Structural identity of IR: equal keys mean equal code; names of values, symbols and locations do not enter.

Source: iree-org/iree#1144 and #4000 (what a deduplicator has to compare).
"""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.ir import Operation, Region, SSAValue

IGNORED_PROPERTIES = frozenset({"sym_name", "sym_visibility", "function_ref"})


def structural_key(op: Operation) -> Hashable:
    """A hashable value that is equal for two ops exactly when their code is."""
    return _op_key(op, {})


def _op_key(op: Operation, numbers: dict[SSAValue, int]) -> Hashable:
    operands = tuple(_number(value, numbers) for value in op.operands)
    properties = tuple(sorted(((k, v) for k, v in op.properties.items() if k not in IGNORED_PROPERTIES), key=lambda item: item[0]))
    attributes = tuple(sorted(op.attributes.items(), key=lambda item: item[0]))
    for result in op.results:
        numbers[result] = len(numbers)
    regions = tuple(_region_key(region, numbers) for region in op.regions)
    return (op.name, operands, properties, attributes, tuple(result.type for result in op.results), regions)


def _number(value: SSAValue, numbers: dict[SSAValue, int]) -> int:
    return numbers.setdefault(value, len(numbers))


def _region_key(region: Region, numbers: dict[SSAValue, int]) -> Hashable:
    blocks: list[Hashable] = []
    for block in region.blocks:
        for argument in block.args:
            numbers[argument] = len(numbers)
        blocks.append((tuple(argument.type for argument in block.args), tuple(_op_key(op, numbers) for op in block.ops)))
    return tuple(blocks)
