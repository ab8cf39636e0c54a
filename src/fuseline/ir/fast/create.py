"""Ops made straight from their parts, for what a compile makes by the thousand.

xDSL's constructors match their arguments with the op's definition and make every attribute anew (a `linalg.generic` 64
us, a `linalg.fill` 143 us); here the caller answers for the parts (14 and 27 us). The IR is the same: `verify` holds as
for any other op.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias, cast

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, UNKNOWN_LOC, ArrayAttr, LocationAttr, StringAttr, TensorType
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.ir.fast import attributes
from fuseline.ir.fast.build import block_with, create_op, region_with
from fuseline.ir.fast.direct import append

IteratorTypes = ArrayAttr[IteratorTypeAttr]
_Pattern: TypeAlias = tuple[dict[str, Attribute], list[Attribute]]  # properties and result types


def create_generic(
    inputs: Sequence[SSAValue],
    outputs: Sequence[SSAValue],
    body: Region,
    maps: Sequence[AffineMap],
    iterators: Sequence[str] | IteratorTypes,
    *,
    doc: StringAttr | None = None,
    library_call: StringAttr | None = None,
    location: LocationAttr = UNKNOWN_LOC,
) -> linalg.ops.GenericOp:
    """`linalg.generic` with a result per output (tensors); `maps` has one map per operand, inputs first."""
    properties: dict[str, Attribute] = {
        "indexing_maps": attributes.affine_maps(tuple(maps)),
        "iterator_types": iterators if isinstance(iterators, ArrayAttr) else attributes.iterators(tuple(iterators)),
        "operandSegmentSizes": attributes.segments((len(inputs), len(outputs))),
    }
    for name, text in (("doc", doc), ("library_call", library_call)):
        if text is not None:
            properties[name] = text
    types = [value.type for value in outputs]
    return create_op(linalg.ops.GenericOp, [*inputs, *outputs], types, properties, [body], location)


def create_yield(values: Sequence[SSAValue], location: LocationAttr = UNKNOWN_LOC) -> linalg.ops.YieldOp:
    """`linalg.yield`."""
    return create_op(linalg.ops.YieldOp, values, (), {}, (), location)


def create_fill(scalar: SSAValue, into: SSAValue, location: LocationAttr = UNKNOWN_LOC) -> linalg.ops.FillOp:
    """`linalg.fill` of the tensor `into` with `scalar`."""
    type_ = cast(TensorType[Attribute], into.type)
    block = block_with([scalar.type, type_.element_type])
    append(create_yield([block.args[0]]), block)
    properties = {"operandSegmentSizes": attributes.segments((1, 1))}
    return create_op(linalg.ops.FillOp, [scalar, into], [type_], properties, [region_with(block)], location)


def create_empty(
    type_: TensorType[Any], sizes: Sequence[SSAValue] = (), location: LocationAttr = UNKNOWN_LOC
) -> tensor.EmptyOp:
    """`tensor.empty`; `sizes` are the index values of the sizes of `type_` that are no numbers."""
    return create_op(tensor.EmptyOp, sizes, [type_], {}, (), location)


def create_constant(value: Attribute, type_: Attribute, location: LocationAttr = UNKNOWN_LOC) -> arith.ConstantOp:
    """`arith.constant`."""
    return create_op(arith.ConstantOp, (), [type_], {"value": value}, (), location)


def create_concat(
    pieces: Sequence[SSAValue], axis: int, type_: TensorType[Any], location: LocationAttr = UNKNOWN_LOC
) -> tensor.ConcatOp:
    """`tensor.concat` of `pieces` along `axis`."""
    return create_op(tensor.ConcatOp, pieces, [type_], {"dim": attributes.integer64(axis)}, (), location)


def create_pad(
    source: SSAValue,
    low: Sequence[int | SSAValue],
    high: Sequence[int | SSAValue],
    value: SSAValue,
    type_: TensorType[Any],
    location: LocationAttr = UNKNOWN_LOC,
) -> tensor.PadOp:
    """`tensor.pad` of `source` with the scalar `value`; amounts per axis are numbers or index values."""
    block = block_with([attributes.INDEX] * len(low))
    append(create_op(tensor.YieldOp, [value], (), {}, (), location), block)
    below, above = _values(low), _values(high)
    properties: dict[str, Attribute] = {
        "static_low": _numbers(low),
        "static_high": _numbers(high),
        "operandSegmentSizes": attributes.segments((1, len(below), len(above))),
    }
    operands = [source, *below, *above]
    return create_op(tensor.PadOp, operands, [type_], properties, [region_with(block)], location)


def _values(items: Sequence[int | SSAValue]) -> list[SSAValue]:
    return [item for item in items if not isinstance(item, int)]


def _numbers(items: Sequence[int | SSAValue]) -> Attribute:
    return attributes.dense(tuple(item if isinstance(item, int) else DYNAMIC_INDEX for item in items))


class ScalarOps:
    """Scalar ops of bodies, each kind constructed once: what its properties and result types are depends on nothing but
    the kind, the types of its operands and its other arguments, and both are read off the first one."""

    def __init__(self, most: int = 4096) -> None:
        self._known: dict[Hashable, _Pattern | None] = {}
        # By the identity of the operand types, which are kept alive, where the operands are all that there is: most
        # ops.
        self._plain: dict[tuple[Any, ...], tuple[list[Attribute], _Pattern]] = {}
        self._most = most

    def make(
        self, kind: Callable[..., Operation], operands: Sequence[Any], options: dict[str, Any], location: LocationAttr
    ) -> Operation:
        """What `kind(*operands, **options)` makes, at `location`."""
        values = [operand for operand in operands if type(operand) is OpResult or type(operand) is BlockArgument]
        if options or len(values) < len(operands):
            return self._made(kind, operands, options, location, values)[0]
        key = (kind, *[id(value.type) for value in values])
        known = self._plain.get(key)
        if known is not None:
            return create_op(cast(type[Operation], kind), values, known[1][1], known[1][0], (), location)
        op, pattern = self._made(kind, operands, options, location, values)
        if pattern is not None and len(self._plain) < self._most:
            self._plain[key] = [value.type for value in values], pattern
        return op

    def _made(
        self,
        kind: Callable[..., Operation],
        operands: Sequence[Any],
        options: dict[str, Any],
        location: LocationAttr,
        values: Sequence[SSAValue],
    ) -> tuple[Operation, _Pattern | None]:
        key = _key(kind, operands, options)
        found = self._known.get(key) if key is not None else None
        if found is not None:
            return create_op(cast(type[Operation], kind), values, found[1], found[0], (), location), found
        op = kind(*operands, **options)
        op.location = location
        pattern = _pattern(kind, op, values)
        if key is not None and key not in self._known and len(self._known) < self._most:
            self._known[key] = pattern
        return op, pattern


def _key(kind: Any, operands: Sequence[Any], options: dict[str, Any]) -> Hashable | None:
    """What the properties of the op depend on; None where that cannot be told."""
    entries = [operand.type if isinstance(operand, SSAValue) else operand for operand in (*operands, *options.values())]
    if any(not isinstance(entry, Attribute | int | str) for entry in entries):
        return None
    return (
        kind,
        *options,
        *((type(entry), entry) for entry in entries),
        tuple(isinstance(operand, SSAValue) for operand in operands),
    )


def _pattern(kind: Any, op: Operation, values: Sequence[SSAValue]) -> _Pattern | None:
    plain = (
        isinstance(kind, type)
        and issubclass(kind, Operation)
        and not op.regions
        and not op.attributes
        and not op.successors
        and list(op.operands) == list(values)
    )
    return (dict(op.properties), [result.type for result in op.results]) if plain else None
