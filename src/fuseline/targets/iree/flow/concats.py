"""Concats whose parts the dispatches that make them write where they belong.

    %a = region { .. return %x }        %t = tensor.empty
    %b = region { .. return %y }        %1 = region { .. return insert_slice %x into %t[0] }
    %c = concat(%a, %b)                 %2 = region { .. return insert_slice %y into %1[n] }    stands for %c

IREE writes such a result in place: each version of the tensor is the one before it, with one more part. What reads a
part reads its range of the version that is the latest there, so that none has to be kept.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from fuseline.ir.build import Emitter, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_empty
from fuseline.ir.fast.direct import replace_uses, set_operand, set_type
from fuseline.ir.flow import DispatchRegionOp
from fuseline.targets.iree.flow.concat_groups import ConcatGroup, concat_groups, region_of


def concats_in_place(module: ModuleOp, apart: Collection[Operation] = ()) -> set[Operation]:
    """Let regions write the parts of the concats outside of regions; those in `apart` stay as they are. Answers the
    regions that were changed: they write, or read, a range of a larger tensor."""
    changed: set[Operation] = set()
    for function in module.ops:
        if not isinstance(function, FuncOp) or function.is_declaration:
            continue
        block = function.body.block
        for group in concat_groups(block, apart):
            places = {op: place for place, op in enumerate(block.ops)}
            sizes = _sizes(group, places)
            if sizes is not None:
                changed |= _Writer(group, block, places, sizes).write()
    return changed


@dataclass(frozen=True)
class _Event:
    """At `place` of the block, part `number` is put into the tensor: by `region`, or by an op of its own before it."""

    place: int
    number: int
    region: DispatchRegionOp | None


def _events(group: ConcatGroup, places: dict[Operation, int]) -> list[_Event]:
    found: list[_Event] = []
    for number in range(len(group.whole.operands)):
        region = group.written.get(number)
        found.append(_Event(places[region] if region is not None else _needed(group, number, places), number, region))
    return sorted(found, key=lambda event: event.place)


def _needed(group: ConcatGroup, number: int, places: dict[Operation, int]) -> int:
    """The place of the first concat that has part `number`."""
    having = [op for op, first in group.ranges.items() if first <= number < first + len(op.operands)]
    return min(places[op] for op in (group.whole, *having))


def _sizes(group: ConcatGroup, places: dict[Operation, int]) -> list[SSAValue] | None:
    """The unknown sizes of the tensor, as values that are there where the first part is put; None where none are."""
    if DYNAMIC_INDEX not in shape_of(group.whole.results[0]):
        return []
    first = _events(group, places)[0].region
    if first is None:
        return None
    part = next(group.whole.operands[number] for number, region in group.written.items() if region is first)
    sizes = iter(first.result_dims)
    for result in first.res:
        own = [next(sizes) for size in shape_of(result) if size == DYNAMIC_INDEX]
        if result is part:
            return own
    return None


@dataclass(frozen=True)
class _Reading:
    """`region` reads the part, or the parts in a row, that begin at `offset`: operand `index` of `op` in it."""

    region: DispatchRegionOp
    op: Operation
    index: int
    offset: int
    shape: tuple[int, ...]


def _readings(group: ConcatGroup, block: Block) -> list[_Reading]:
    """What regions read of the parts that are written in place and of the concats that are ranges."""
    parts = [(group.whole.operands[number], number) for number in group.written]
    ranges = [(op.results[0], first) for op, first in group.ranges.items()]
    return [
        _Reading(region, use.operation, use.index, group.offsets[number], shape_of(value))
        for value, number in (*parts, *ranges)
        for use in value.uses
        if (region := region_of(use.operation, block)) is not None
    ]


class _Writer:
    def __init__(
        self, group: ConcatGroup, block: Block, places: dict[Operation, int], sizes: Sequence[SSAValue]
    ) -> None:
        self.group, self.places, self.sizes = group, places, sizes
        self.ops, self.readings = list(block.ops), _readings(group, block)
        self.kind = group.whole.results[0].type
        self.versions: list[tuple[int, SSAValue]] = []

    def write(self) -> set[Operation]:
        """Put the parts in, read them there; the concats go. Answers the regions that changed."""
        events = _events(self.group, self.places)
        assert isinstance(self.kind, TensorType)
        version: SSAValue = Emitter.before(self.ops[events[0].place]).add(create_empty(self.kind, self.sizes)).tensor
        for event in events:
            version = self._put(event, version)
            self.versions.append((event.place, version))
        self._read()
        replace_uses(self.group.whole.results[0], version)
        for op in self.group.concats:
            op.detach()
            op.erase()
        return {*self.group.written.values(), *(reading.region for reading in self.readings)}

    def _put(self, event: _Event, into: SSAValue) -> SSAValue:
        """The tensor with one more part: a result of the part's region, or of an op."""
        part, offset = self.group.whole.operands[event.number], self.group.offsets[event.number]
        if event.region is None:
            return self._inserted(Emitter.before(self.ops[event.place]), part, shape_of(part), into, offset)
        end = event.region.body.block.last_op
        assert end is not None and isinstance(part, OpResult)
        made = self._inserted(Emitter.before(end), end.operands[part.index], shape_of(part), into, offset)
        set_operand(end, part.index, made)
        set_type(part, self.kind)
        return part

    def _inserted(self, emit: Emitter, part: SSAValue, shape: Sequence[int], into: SSAValue, offset: int) -> SSAValue:
        properties = self._range(shape, offset, operands=2)
        operands = [part, into, *self.sizes]
        return emit.add(
            tensor.InsertSliceOp.create(operands=operands, result_types=[self.kind], properties=properties)
        ).result

    def _read(self) -> None:
        """Let regions read their ranges of the latest version."""
        made: dict[tuple[Operation, int, tuple[int, ...]], SSAValue] = {}
        for reading in self.readings:
            key = reading.region, reading.offset, reading.shape
            if key not in made:
                made[key] = self._extracted(reading)
            set_operand(reading.op, reading.index, made[key])

    def _extracted(self, reading: _Reading) -> SSAValue:
        place = self.places[reading.region]
        version = next(value for at, value in reversed(self.versions) if at < place)
        first = reading.region.body.block.first_op
        assert first is not None and isinstance(self.kind, TensorType)
        kind = attributes.tensor_type(self.kind.element_type, reading.shape)
        properties = self._range(reading.shape, reading.offset, operands=1)
        return (
            Emitter.before(first)
            .add(
                tensor.ExtractSliceOp.create(
                    operands=[version, *self.sizes], result_types=[kind], properties=properties
                )
            )
            .result
        )

    def _range(self, shape: Sequence[int], offset: int, operands: int) -> dict[str, Attribute]:
        """The properties of a slice that begins at `offset` of the concat's axis, of an op with so many operands before
        its offsets."""
        offsets = tuple(offset if axis == self.group.axis else 0 for axis in range(len(shape)))
        numbers = {"static_offsets": offsets, "static_sizes": tuple(shape), "static_strides": (1,) * len(shape)}
        properties: dict[str, Attribute] = {name: attributes.dense(values) for name, values in numbers.items()}
        segments = (*(1 for _ in range(operands)), 0, len(self.sizes), 0)
        properties["operandSegmentSizes"] = attributes.segments(segments)
        return properties
